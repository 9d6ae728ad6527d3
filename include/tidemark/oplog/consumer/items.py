"""What a consumer is handed: operations, and the two marks of a replication.

Each of them is passed to ``done`` once it has been handled. Event ids are opaque: they are compared with
nothing and never computed.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class OpLogEvent(StrEnum):
    """What an item says. Equal to its text: ``op.event == "delete"``."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    RESET = "reset"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class OpLogOperation:
    """An object was inserted, updated or deleted. The object itself is where ``ref`` or the producer says.

    Attributes:
        event: What happened. A replication says ``insert`` of every object there is: treat ``insert`` and
            ``update`` alike.
        timestamp: When, in UTC.
        parents: The objects above it, usually ``type/id``.
        type: The kind of object.
        id: The object's id within its type.
        ref: Where the object can be read, if the agent says so.
        event_id: The position after this operation.
        number: Its number among what this process was handed; ``done`` knows it by that.
    """

    event: OpLogEvent
    timestamp: datetime
    parents: tuple[str, ...]
    type: str
    id: str
    ref: str | None
    event_id: str | None
    number: int = field(repr=False)

    @property
    def key(self) -> str:
        """The object as ``type/id``."""
        return f"{self.type}/{self.id}"


@dataclass(frozen=True, slots=True)
class OpLogReset:
    """A full replication begins: forget every object. All of those that exist follow, then ``OpLogLive``.

    It is handed out again after a restart until it is done. Operations handed out before it no longer count:
    the replication has what they said.
    """

    event_id: str
    number: int = field(repr=False)

    @property
    def event(self) -> OpLogEvent:
        """``reset``."""
        return OpLogEvent.RESET


@dataclass(frozen=True, slots=True)
class OpLogLive:
    """A replication, or what was missed since the last connection, is complete: changes follow as they
    happen.
    """

    event_id: str | None
    number: int = field(repr=False)

    @property
    def event(self) -> OpLogEvent:
        """``live``."""
        return OpLogEvent.LIVE


OpLogItem = OpLogOperation | OpLogReset | OpLogLive
