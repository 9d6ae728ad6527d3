"""Which topics ``tidemark topics create`` makes for a pipeline, and which it refuses to make.

A topic that was used before and is gone is not made again by mistake: under its old name it would be another
topic, and what the pipeline or the writer remembers of the old one would not be true of it.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.connections import KafkaConnection
from tidemark.errors import TidemarkError, with_fields
from tidemark.kafka.topic_creation import create_topics, missing_topics
from tidemark.kafka.topic_shape import TopicOutcome, TopicShape
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.pipeline.kinds import FORMATS
from tidemark.writers.kafka.kind import KafkaDeclaration


@with_fields
class NotOurTopic(TidemarkError):
    """A topic or a writer was named for which there is nothing to create."""

    pipeline: str
    problem: str

    text = "{pipeline}: {problem} Nothing was created."


@with_fields
class UsedBefore(TidemarkError):
    """A topic that the pipeline knows does not exist any more."""

    needs_person = True

    pipeline: str
    topic: str
    use: str
    consequence: str

    text = (
        "{pipeline}: topic {topic} is gone, and {use}. Nothing was created: made again, it is another topic, "
        "and {consequence}. Restore it, or make it again with --again."
    )


def create_topics_of(
    opened: OpenPipeline,
    writer: str | None,
    chosen: Sequence[str],
    asked: TopicShape,
    *,
    again: bool = False,
) -> list[TopicOutcome]:
    """Create what is missing of a pipeline's topics, or of one writer's; what was asked for goes first."""
    name = opened.pipeline.name
    if writer is None:
        topics, source = _source_topics(opened, chosen), opened.pipeline.source.kafka
        connection, timestamps = opened.connections.kafka, FORMATS.find(source.format).timestamps
        declared = replace(source.create.shape, timestamps=timestamps)
        used = {topic for topic, _ in LogControl(opened.consensus, name).bindings_head().reached}
        use, consequence = "this pipeline has read it", "the log's gate closes until that is accepted"
    else:
        target = _target(opened, writer)
        topics, declared = _of_target(opened, target, chosen), target.create.shape
        connection = opened.connections.kafka_targets[target.connection]
        state = opened.positions.load(writer)
        used = {target.topic} if state and state.reached > NOTHING_YET else set()
        use = f"writer {writer} has sent messages to it"
        consequence = "what was sent to the old one is not there until the writer is rewound"
    if not again:
        _refuse_used(name, connection, [topic for topic in topics if topic in used], use, consequence)
    shape = asked.over(declared)
    return create_topics(name, connection, dict.fromkeys(topics, shape))


def _refuse_used(
    pipeline: str, connection: KafkaConnection, used: Sequence[str], use: str, consequence: str
) -> None:
    if used and (gone := missing_topics(pipeline, connection, used)):
        raise UsedBefore(pipeline, gone[0], use, consequence)


def _source_topics(opened: OpenPipeline, chosen: Sequence[str]) -> list[str]:
    source, name = opened.pipeline.source.kafka, opened.pipeline.name
    for topic in chosen:
        if not source.reads(topic):
            declared = ", ".join([*source.topics, *(f"{prefix}…" for prefix in source.topic_prefixes)])
            raise NotOurTopic(name, f"it does not read topic {topic}, but {declared}. Correct the name.")
    if not chosen and not source.topics:
        first, prefixes = source.topic_prefixes[0], ", ".join(source.topic_prefixes)
        problem = f"it reads every topic that begins with {prefixes}. Name one: --topic {first}…"
        raise NotOurTopic(name, problem)
    return list(dict.fromkeys(chosen or source.topics))


def _target(opened: OpenPipeline, writer: str) -> KafkaDeclaration:
    targets = {one.name: one for one in opened.pipeline.writers if isinstance(one, KafkaDeclaration)}
    if writer in targets:
        return targets[writer]
    known = f"there is: {', '.join(targets)}" if targets else "it has none"
    raise NotOurTopic(opened.pipeline.name, f"{writer} is no writer of kind kafka; {known}.")


def _of_target(opened: OpenPipeline, target: KafkaDeclaration, chosen: Sequence[str]) -> list[str]:
    others = [topic for topic in chosen if topic != target.topic]
    if others:
        problem = f"writer {target.name} sends to {target.topic}, not to {others[0]}. Correct the name."
        raise NotOurTopic(opened.pipeline.name, problem)
    return [target.topic]
