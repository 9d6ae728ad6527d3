"""Samples of operations and of records of an oplog topic."""

from collections.abc import Sequence

from tidemark.connections import KafkaConnection
from tidemark.operations.corrections import CORRECTION_HEADER, Correction
from tidemark.operations.filters import OperationFilter
from tidemark.operations.operation import EventName, ObjectOperation, encoded
from tidemark.oplog.model.judged_operations import TopicRecord
from tidemark.oplog.model.ring import Ring, RingEvent
from tidemark.oplog.model.stream_filter import StreamFilter
from tidemark.oplog.model.vector import MovingVector

NOWHERE_TO_CONNECT = KafkaConnection(servers="127.0.0.1:1")
NOON = 1_764_158_400_000
"""In ms."""
TOPIC_ID = "7b1ad6a4-13c5-4a0c-9b4f-5f5a7e3a0001"


def operation(
    id_: str = "x",
    event: EventName = EventName.UPDATE,
    *,
    type_: str = "video",
    parents: Sequence[str] = (),
    at: int = NOON,
) -> ObjectOperation:
    """An operation on ``video/x``."""
    return ObjectOperation(event, at, tuple(parents), type_, id_)


def record(
    offset: int, of: ObjectOperation, partition: int = 0, correction: Correction | None = None
) -> TopicRecord:
    """A record of the topic."""
    headers = [] if correction is None else [(CORRECTION_HEADER, correction.to_header())]
    return TopicRecord(partition, offset, of.key, encoded(of), headers)


def bad_record(offset: int, partition: int = 0) -> TopicRecord:
    """A record that is no operation."""
    return TopicRecord(partition, offset, b"video/x", b"{", None)


def correction(looked_at: int, topic_id: str = TOPIC_ID) -> Correction:
    """The header of a correction."""
    return Correction("run", looked_at, topic_id)


def ring_event(
    hub: MovingVector, partition: int, offset: int, of: ObjectOperation | None = None, data: bytes = b"{}"
) -> RingEvent:
    """The event that a hub makes of an operation; ``hub`` is moved."""
    found = of or operation()
    hub.move(partition, offset + 1)
    return RingEvent(partition, offset, found.event, found.type, found.parents, data, hub.text)


def given_ring(*events: tuple[int, int], start: Sequence[int] = (0, 0), most: int = 100) -> Ring:
    """A ring that has read these (partition, offset)."""
    ring, hub = Ring(tuple(start), most, 10**9), MovingVector(start)
    ring.append([ring_event(hub, *place) for place in events], hub.offsets)
    return ring


def parents_filter(*parents: str) -> StreamFilter:
    """A stream of operations below these parents."""
    return StreamFilter(OperationFilter.of(parents=parents))
