"""What two pipelines may not both have: a name, a (keyspace, topic), a topic to write to, a folder.

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
    """What this pipeline wants and one before it already has; texts begin with the key."""
    for file, other in earlier:
        if pipeline.name == other.name:
            yield Finding(("name",), f"`name` is `{other.name}`, which {file} has already. {_OWN}")
        yield from _same_rows(pipeline, other, file)
        yield from _same_target(pipeline, other, file)
        for place, path in pipeline.locations:
            for other_place, taken in other.locations:
                if checks.overlap(path, taken):
                    shared = f"which shares a folder with {dotted(other_place)} of {file}"
                    yield Finding(place, f"{dotted(place)} is {quoted(path)}, {shared}. {_OWN}")


def _same_rows(pipeline: Pipeline, other: Pipeline, file: Path) -> Iterator[Finding]:
    shared = sorted(shared_topics(pipeline.source.kafka, other.source.kafka))
    taken = {(writer.connection, writer.keyspace) for _, writer in other.journals}
    for i, writer in pipeline.journals:
        if shared and (writer.connection, writer.keyspace) in taken:
            place = ("writers", i, "keyspace")
            what = f"is `{writer.keyspace}`, where {file} writes {', '.join(shared)} already"
            yield Finding(place, f"{dotted(place)} {what}. Choose another keyspace, or read other topics.")


def _same_target(pipeline: Pipeline, other: Pipeline, file: Path) -> Iterator[Finding]:
    taken = {(writer.connection, writer.topic) for _, writer in other.republishers}
    for i, writer in pipeline.republishers:
        if (writer.connection, writer.topic) in taken:
            place = ("writers", i, "topic")
            yield Finding(
                place, f"{dotted(place)} is `{writer.topic}`, which {file} writes to already. {_OWN}"
            )


def shared_topics(one: KafkaSource, other: KafkaSource) -> set[str]:
    """The topics both sources read, or could come to read: ``orders.*`` for what begins with ``orders.``."""
    topics = set(one.topics) & set(other.topics)
    for source, against in ((one, other), (other, one)):
        topics |= {topic for topic in source.topics if topic.startswith(against.topic_prefixes)}
        topics |= {
            f"{prefix}*" for prefix in source.topic_prefixes if prefix.startswith(against.topic_prefixes)
        }
    return topics
