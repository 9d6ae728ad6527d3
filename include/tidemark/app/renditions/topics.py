"""The topic of a new rendition of a kafka writer.

Deliveries never create a topic, because its number of partitions decides for good where each key goes. A
rendition's topic gets the number that the file asks for, or that of the active rendition's topic.
"""

from dataclasses import replace

from tidemark.app.renditions.neighbours import place_of
from tidemark.app.renditions.opened import WriterRenditions
from tidemark.errors import TidemarkError, with_fields
from tidemark.kafka.topic_creation import create_topics
from tidemark.outputs.model.rendition import Rendition
from tidemark.pipeline.writers import WriterDeclaration
from tidemark.writers.kafka.kind import KafkaDeclaration


@with_fields
class TopicNotMade(TidemarkError):
    """The topic of a rendition could not be created, or is not usable as it is."""

    pipeline: str
    writer: str
    number: int
    problem: str

    text = (
        "{pipeline}/{writer}: rendition {number} has no topic yet: {problem} The rendition is declared; run "
        "the same command again to go on with it."
    )


def ensure_topic(renditions: WriterRenditions, rendition: Rendition) -> None:
    """Create the topic of a kafka writer's rendition where it is missing; does nothing for other kinds."""
    declared = place_of(renditions, rendition)
    if not isinstance(declared, KafkaDeclaration):
        return
    of, shape = renditions, declared.create.shape
    connection = of.opened.connections.kafka_targets[declared.connection]
    if shape.partitions is None and (partitions := _partitions_of_active(renditions)):
        shape = replace(shape, partitions=partitions)
    (outcome,) = create_topics(of.pipeline, connection, {declared.topic: shape})
    if outcome.problem:
        raise TopicNotMade(of.pipeline, of.writer, rendition.number, outcome.problem)


def _partitions_of_active(renditions: WriterRenditions) -> int | None:
    """The partitions that the active rendition's consumer was registered with."""
    active: WriterDeclaration = place_of(renditions, renditions.output.active)
    state = renditions.opened.positions.load(renditions.consumer(renditions.output.active.number))
    known = state.shape.get("partitions") if state and isinstance(active, KafkaDeclaration) else None
    return int(known) if known is not None else None
