"""What a synchronisation does about one object, by its line in the dump, its row, and the dump's start.

Pure. Only what is older than the dump's start is corrected: a later change has overtaken the dump.
"""

from dataclasses import dataclass
from enum import StrEnum

from tidemark.operations.operation import EventName, ObjectOperation


@dataclass(frozen=True, slots=True)
class DumpedObject:
    """An object as the dump has it.

    Attributes:
        timestamp: Its last modification, in ms since 1970.
        parents: The objects above it.
    """

    timestamp: int
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CurrentObject:
    """An object as its newest operation left it.

    Attributes:
        deleted: Whether that was a delete.
        timestamp: The operation's timestamp, in ms since 1970.
        parents: The operation's parents.
    """

    deleted: bool
    timestamp: int
    parents: tuple[str, ...]


class Outcome(StrEnum):
    """What was found about an object. Stored in reports.

    Attributes:
        INSERT: In the dump, and no operation is known: an insert is sent.
        INSERT_DELETED: In the dump, and deleted before its start: an insert is sent.
        UPDATE: Changed later in the dump: an update is sent.
        UPDATE_PARENTS: Other parents in the dump, and not changed since its start: an update is sent.
        DELETE: Not in the dump, and not changed since its start: a delete is sent.
        SAME: Nothing to correct.
        NEWER: There, and changed later than the dump has it.
        DELETED_SINCE: In the dump, and deleted at its start or later.
        INSERTED_SINCE: Not in the dump, and changed at its start or later.
        GONE: Not in the dump, and deleted.
    """

    INSERT = "insert"
    INSERT_DELETED = "insert_deleted"
    UPDATE = "update"
    UPDATE_PARENTS = "update_parents"
    DELETE = "delete"
    SAME = "same"
    NEWER = "newer"
    DELETED_SINCE = "deleted_since"
    INSERTED_SINCE = "inserted_since"
    GONE = "gone"

    @property
    def event(self) -> EventName | None:
        """The event of the correction; None where none is sent."""
        return _EVENTS.get(self)


_EVENTS = {
    Outcome.INSERT: EventName.INSERT,
    Outcome.INSERT_DELETED: EventName.INSERT,
    Outcome.UPDATE: EventName.UPDATE,
    Outcome.UPDATE_PARENTS: EventName.UPDATE,
    Outcome.DELETE: EventName.DELETE,
}


def decide(dumped: DumpedObject | None, current: CurrentObject | None, start: int) -> Outcome:
    """The outcome for one object.

    Args:
        dumped: The object in the dump; None where it is not there.
        current: Its row; None where it has none.
        start: The time at which the dump began, in ms since 1970.
    """
    if dumped is None:
        if current is None or current.deleted:
            return Outcome.GONE
        return Outcome.DELETE if current.timestamp < start else Outcome.INSERTED_SINCE
    if current is None:
        return Outcome.INSERT
    if current.deleted:
        return Outcome.INSERT_DELETED if current.timestamp < start else Outcome.DELETED_SINCE
    if current.timestamp < dumped.timestamp:
        return Outcome.UPDATE
    # Their order says nothing, so a dump that lists them in another one is the same.
    if current.timestamp < start and set(current.parents) != set(dumped.parents):
        return Outcome.UPDATE_PARENTS
    return Outcome.SAME if current.timestamp == dumped.timestamp else Outcome.NEWER


def correction(
    type_: str,
    id_: str,
    outcome: Outcome,
    dumped: DumpedObject | None,
    current: CurrentObject | None,
    start: int,
) -> ObjectOperation | None:
    """The operation to send for an outcome; None where none is sent.

    An insert or update says what the dump has. A delete has the parents that the object had, for streams
    filtered by them, and the last time before the dump began: an older dump does not undo it, and the same
    one, completed, does.
    """
    event = outcome.event
    if event is None:
        return None
    if event is EventName.DELETE:
        assert current is not None, outcome
        return ObjectOperation(event, max(start - 1, current.timestamp), current.parents, type_, id_)
    assert dumped is not None, outcome
    return ObjectOperation(event, dumped.timestamp, dumped.parents, type_, id_)
