"""Conflicts between pipeline files: two writers with the same folder, topic or other target, two equal names.

Decided from the declarations alone: a topic that two prefixes could match counts for both, and two
connections count as two clusters.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tidemark.pipeline import checks
from tidemark.pipeline.model import KafkaSource, Pipeline
from tidemark.pipeline.problems import Finding, dotted, quoted

_OWN = "Give each pipeline its own."


def conflicts(pipeline: Pipeline, earlier: Iterable[tuple[Path, Pipeline]]) -> Iterator[Finding]:
    """What this pipeline claims and an earlier one already has; texts begin with the key."""
    for file, other in earlier:
        if pipeline.name == other.name:
            yield Finding(("name",), f"`name` is `{other.name}`, which {file} has already. {_OWN}")
        yield from _same_targets(pipeline, other, file)
        for place, path in pipeline.locations:
            for other_place, taken in other.locations:
                if checks.overlap(path, taken):
                    shared = f"which shares a folder with {dotted(other_place)} of {file}"
                    yield Finding(place, f"{dotted(place)} is {quoted(path)}, {shared}. {_OWN}")


def _same_targets(pipeline: Pipeline, other: Pipeline, file: Path) -> Iterator[Finding]:
    shared = sorted(shared_topics(pipeline.source.kafka, other.source.kafka))
    taken = {claim.identity for _, claim in other.targets}
    for place, claim in pipeline.targets:
        if claim.identity not in taken:
            continue
        subject = f"{dotted(place)} is `{claim.shown}`"
        if not claim.per_topic:
            yield Finding(place, f"{subject}, which {file} writes to already. {_OWN}")
        elif shared:
            what = f"{subject}, where {file} writes {', '.join(shared)} already"
            yield Finding(place, f"{what}. Choose another {claim.key}, or read other topics.")


def shared_topics(one: KafkaSource, other: KafkaSource) -> set[str]:
    """The topics both sources read, or could come to read: ``orders.*`` for what begins with ``orders.``."""
    topics = set(one.topics) & set(other.topics)
    for source, against in ((one, other), (other, one)):
        topics |= {topic for topic in source.topics if topic.startswith(against.topic_prefixes)}
        topics |= {
            f"{prefix}*" for prefix in source.topic_prefixes if prefix.startswith(against.topic_prefixes)
        }
    return topics
