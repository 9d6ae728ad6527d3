"""The settings of an agent's streams."""

from dataclasses import dataclass
from enum import StrEnum

from tidemark.connections import KafkaConnection


class UnknownId(StrEnum):
    """What a stream does for a ``Last-Event-ID`` that it cannot continue exactly.

    Attributes:
        FALLBACK: It sends what has changed since then, from the collection, or else all objects.
        IGNORE: It begins with the next operation, as the original does. The client is told by the missing
            header ``Last-Event-ID``.
    """

    FALLBACK = "fallback"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The settings of an agent's streams.

    Attributes:
        pipeline: The pipeline's name, for error texts.
        topic: The topic of the operations.
        kafka: The cluster of the topic.
        partitions: How many partitions the pipeline has recorded; None where it has not. A topic with fewer
            is refused: it is another one. Further partitions are followed too.
        unknown_id: What to do for an id that cannot be continued exactly.
        object_url: The template of ``ref``, with ``{{type}}`` and ``{{id}}``; None: events have no ``ref``.
        heartbeat: Seconds after which an idle stream gets a comment.
        checkpoint: Seconds between events that carry only the client's position.
        max_age: The most seconds of a stream; each ends after a random part of the last fifth of it, so that
            clients do not return together. None: no limit.
        retry: Milliseconds after which a client is asked to reconnect.
        coalesce: Seconds in which events for a client are collected into one write.
        stall: Seconds after which a client that takes nothing is disconnected.
        ring_events: How many events the hub keeps.
        ring_bytes: How many bytes of them the hub keeps at most.
        readers: How many clients are read for from Kafka at the same time.
        log_readers: How many clients are read for from the commit log at the same time.
        scans: How many clients are read for from the collection at the same time.
    """

    pipeline: str
    topic: str
    kafka: KafkaConnection
    partitions: int | None = None
    unknown_id: UnknownId = UnknownId.FALLBACK
    object_url: str | None = None
    heartbeat: float = 25.0
    checkpoint: float = 30.0
    max_age: float | None = None
    retry: int = 2_000
    coalesce: float = 0.1
    stall: float = 30.0
    ring_events: int = 20_000
    ring_bytes: int = 64 * 2**20
    readers: int = 8
    log_readers: int = 2
    scans: int = 4
