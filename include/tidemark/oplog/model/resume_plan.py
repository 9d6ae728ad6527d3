"""Where what a client has missed comes from, partition by partition.

Kafka and the commit log have every operation. The collection has only the newest one of each object, which is
enough to bring a client up to date, but not exact. Every function is given what was found; nothing is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidemark.oplog.model.vector import Vector


class Source(StrEnum):
    """Where the operations of one partition come from.

    Attributes:
        NONE: None are missing as far as the hub has read.
        KAFKA: From the topic.
        LOG: From the commit log, up to where Kafka can go on.
        COLLECTION: From the newest rows of objects: Kafka has lost some, and the log does not have them.
        AHEAD: From nowhere: the client's offset is beyond the end of the topic.
    """

    NONE = "none"
    KAFKA = "kafka"
    LOG = "log"
    COLLECTION = "collection"
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class KafkaOffsets:
    """What a partition has: from ``first`` up to ``end``, which is not included."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class LoggedOffsets:
    """What the commit log has of a partition without a gap: from ``first`` up to ``end``, which is not
    included.
    """

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """Where the operations after a vector come from.

    Attributes:
        vector: The client's vector.
        sources: By partition.
    """

    vector: Vector
    sources: tuple[Source, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the client gets every operation."""
        return not {Source.COLLECTION, Source.AHEAD} & {*self.sources}

    @property
    def is_foreign(self) -> bool:
        """Whether the vector cannot be of this topic as it is."""
        return Source.AHEAD in self.sources

    def of(self, source: Source) -> tuple[int, ...]:
        """The partitions with a source."""
        return tuple(number for number, one in enumerate(self.sources) if one is source)

    @property
    def beyond(self) -> tuple[int | None, ...]:
        """The offsets from which on the collection's rows are wanted; None for other partitions."""
        return tuple(
            offset if source is Source.COLLECTION else None
            for offset, source in zip(self.vector, self.sources, strict=True)
        )

    def after_rows(self, end: Sequence[int]) -> Vector:
        """The vector after the collection's rows were sent, which had everything up to ``end``.

        A partition that the rows were not wanted of goes on where it was: the collection may be ahead of the
        client there, and the client has not been given what lies between.
        """
        return tuple(
            max(mine, theirs) if source is Source.COLLECTION else mine
            for mine, theirs, source in zip(self.vector, end, self.sources, strict=True)
        )


def needs_log(vector: Sequence[int], kafka: Sequence[KafkaOffsets]) -> tuple[int, ...]:
    """The partitions of which Kafka does not have what follows a vector."""
    return tuple(number for number, one in enumerate(kafka) if vector[number] < one.first)


def plan_resume(
    vector: Vector, kafka: Sequence[KafkaOffsets], logged: Mapping[int, LoggedOffsets]
) -> ResumePlan:
    """The plan for a vector.

    Args:
        vector: What the client has.
        kafka: What Kafka has, by partition.
        logged: What the commit log has of the partitions that ``needs_log`` names; none where it has nothing
            that can be used.
    """
    return ResumePlan(
        vector,
        tuple(
            _source(offset, one, logged.get(number))
            for number, (offset, one) in enumerate(zip(vector, kafka, strict=True))
        ),
    )


def _source(offset: int, kafka: KafkaOffsets, logged: LoggedOffsets | None) -> Source:
    if offset > kafka.end:
        return Source.AHEAD
    if offset >= kafka.first:
        return Source.NONE if offset == kafka.end else Source.KAFKA
    # The log must reach to where Kafka begins: between them nothing may be missing.
    if logged is not None and logged.first <= offset and logged.end >= kafka.first:
        return Source.LOG
    return Source.COLLECTION
