"""What a client is told about an object of which it has missed operations, from two rows of a collection.

The row before what it has missed says whether the client has the object; the newest row says what is true
now.
"""

from dataclasses import dataclass

from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.oplog.model.stream_filter import StreamFilter


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """A row of a collection of objects: its operation, and where that was in the topic.

    Attributes:
        token: The token of its object.
        operation: What happened last.
        t: The time of its binding, in µs.
        partition: Of the operation.
        offset: Of the operation.
    """

    token: int
    operation: ObjectOperation
    t: int
    partition: int
    offset: int

    @property
    def is_deleted(self) -> bool:
        """Whether the object is no more."""
        return self.operation.event is EventName.DELETE


def needs_before(after: ObjectRow, filter_: StreamFilter) -> bool:
    """Whether the row before has to be known: the object may have left the stream."""
    operation = after.operation
    return filter_.has_parents and not filter_.admits(operation.type, operation.parents)


def event_of(
    after: ObjectRow, before: ObjectRow | None, filter_: StreamFilter
) -> tuple[EventName, ObjectOperation] | None:
    """The event for an object that has changed; None where it is none of the client's business.

    Objects that are there are inserted: whether the client has them is not known, and does not matter.

    Args:
        after: The newest row.
        before: The row as of the client's place, where ``needs_before``.
        filter_: What the stream has.
    """
    operation = after.operation
    if filter_.admits(operation.type, operation.parents):
        return (EventName.DELETE if after.is_deleted else EventName.INSERT), operation
    if before is None or before.is_deleted:
        return None
    was = before.operation
    if not filter_.admits(was.type, was.parents):
        return None
    # It has left the stream. Its new parents are not the client's to know.
    left = ObjectOperation(EventName.DELETE, operation.timestamp, was.parents, was.type, was.id)
    return EventName.DELETE, left
