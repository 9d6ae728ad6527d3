"""Makes packets from a caller's arguments, checked against the declaration before anything is written.

The sender sets a packet's time. Invalid arguments raise ``BadRequest``.
"""

from collections.abc import Mapping
from typing import Any

from tidemark.work.errors import BadRequest, PayloadTooLarge
from tidemark.work.model.columns import json_text, key_text, problems
from tidemark.work.model.declaration import WorkDeclaration, milliseconds
from tidemark.work.model.entry import LARGEST_PRIORITY, NEVER, Packet, Priority
from tidemark.work.model.rules import FURTHEST

LONGEST_KEY = 8 * 1024


def packet_of(
    declared: WorkDeclaration,
    key: Any,
    payload: Any,
    *,
    now: int,
    inserted: int | None = None,
    process: int | None = None,
    priority: int = Priority.UPDATES,
    expires: int | None = None,
) -> Packet:
    """A valid packet. ``process`` None is now, ``expires`` None is never; times are in ms."""
    journal = declared.name
    text = checked_key(declared, key)
    if wrong := "; ".join(problems(declared.payload, payload)):
        raise BadRequest(journal, f"the payload of {text} is not as declared: {wrong}")
    body = json_text(payload)
    if (size := len(body.encode())) > declared.payload_limit:
        raise PayloadTooLarge(journal, text, size, declared.payload_limit)
    _whole(journal, "priority", priority, LARGEST_PRIORITY)
    dated = now if inserted is None else _whole(journal, "inserted", inserted)
    if dated > now + milliseconds(declared.max_skew):
        raise BadRequest(
            journal,
            f"the insertion date of {text} is {dated - now:,} ms ahead of this clock; set the clocks",
        )
    wanted = max(dated, now) if process is None else _whole(journal, "process", process)
    ends = NEVER if expires is None else _whole(journal, "expires", expires)
    for what, date in (("process date", max(wanted, dated)), ("expiry", ends)):
        if date > now + FURTHEST:
            raise BadRequest(journal, f"the {what} of {text} is more than ten years ahead")
    return Packet(
        key=text,
        inserted=dated,
        process=wanted,
        payload=body,
        priority=priority,
        expires=ends,
        schema=declared.version,
    )


def checked_key(declared: WorkDeclaration, key: Any) -> str:
    """The stored form of a key, from a mapping of its columns or the value of its only column."""
    if key is None:
        raise BadRequest(declared.name, "the key is missing")
    is_only_column = len(declared.key) == 1 and not isinstance(key, Mapping)
    values = {next(iter(declared.key)): key} if is_only_column else key
    if wrong := "; ".join(problems(declared.key, values)):
        raise BadRequest(declared.name, f"the key is not as declared: {wrong}")
    text = key_text(declared.key, values)
    if not text or len(text.encode()) > LONGEST_KEY:
        raise BadRequest(declared.name, f"a key has 1 to {LONGEST_KEY:,} bytes")
    return text


def _whole(journal: str, name: str, value: Any, most: int = 2**62) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise BadRequest(journal, f"`{name}` is {value!r}, but must be a whole number from 0 to {most}")
    return value
