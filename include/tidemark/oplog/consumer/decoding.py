"""From a block of the stream to what it says.

Refuses more than it has to, because what is ignored could be an operation: data that is not the JSON it
should be, ids that cannot be sent back, and events of an unknown name that have an id.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from tidemark.oplog.consumer.errors import StreamGarbled
from tidemark.oplog.consumer.event_stream import Block
from tidemark.oplog.consumer.items import OpLogEvent

LONGEST_ID = 16_384
"""The most characters of an id: an agent reads no longer one."""
_ID = re.compile(rb"[\x21-\x7e]+")


class _Data(msgspec.Struct):
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    type: Annotated[str, msgspec.Meta(min_length=1)]
    id: Annotated[str, msgspec.Meta(min_length=1)]
    parents: list[str] | None = None
    ref: str | None = None


class _Mode(msgspec.Struct):
    mode: str = ""


_decode_data = msgspec.json.Decoder(_Data).decode
_decode_mode = msgspec.json.Decoder(_Mode).decode


@dataclass(frozen=True, slots=True)
class Said:
    """An operation, before it has a number."""

    event: OpLogEvent
    timestamp: datetime
    parents: tuple[str, ...]
    type: str
    id: str
    ref: str | None


class Reset:
    """A full replication begins."""


class Live:
    """A replication is complete."""


class Slow:
    """The agent ends the stream, because this consumer reads too slowly."""


class Passed:
    """Only the block's id counts."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The stream begins.

    Attributes:
        mode: How the agent understood the request: ``live``, ``exact``, ``fallback``, …
    """

    mode: str


Meaning = Said | Reset | Live | Slow | Passed | Opened

_OPERATIONS = {
    str(event).encode(): event for event in (OpLogEvent.INSERT, OpLogEvent.UPDATE, OpLogEvent.DELETE)
}
_MARKS: dict[bytes, Meaning] = {
    b"reset": Reset(),
    b"live": Live(),
    b"slow": Slow(),
    b"checkpoint": Passed(),
}


def meaning(block: Block) -> Meaning:
    """What a block says. Raises ``StreamGarbled``."""
    if (event := _OPERATIONS.get(block.event)) is not None:
        return _operation(event, block.data)
    if (mark := _MARKS.get(block.event)) is not None:
        return mark
    if block.event == b"open":
        return Opened(_mode(block.data))
    if block.id is not None and (block.event or block.data is not None):
        # It moves the position, and may be an operation of a later version.
        raise StreamGarbled(f"an event named {_shown(block.event) or '(nothing)'} has an id")
    return Passed()


def event_id(block: Block) -> str | None:
    """The id of a block, None where it has none. Raises ``StreamGarbled`` for one that no header can have."""
    if block.id is None:
        return None
    if len(block.id) > LONGEST_ID or not _ID.fullmatch(block.id):
        raise StreamGarbled(f"an id is {_shown(block.id) or 'empty'}")
    return block.id.decode("ascii")


def _operation(event: OpLogEvent, data: bytes | None) -> Said:
    try:
        said = _decode_data(data or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StreamGarbled(f"the data of `{event}` are {_shown(data or b'') or 'empty'} ({error})") from None
    return Said(
        event, said.timestamp.astimezone(UTC), tuple(said.parents or ()), said.type, said.id, said.ref
    )


def _mode(data: bytes | None) -> str:
    try:
        return _decode_mode(data or b"{}").mode
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StreamGarbled(f"the data of `open` are {_shown(data or b'')} ({error})") from None


def _shown(text: bytes) -> str:
    """Text of a stranger for a message: short, without control characters."""
    cut = text[:80].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "·" for letter in cut) + (
        "…" if len(text) > 80 else ""
    )
