"""What a worker gets: a claim with its key and its payload as they were declared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tidemark.work.columns import ColumnType, key_values
from tidemark.work.declaration import WorkDeclaration
from tidemark.work.entry import NEVER, Entry
from tidemark.work.errors import BadRequest
from tidemark.work.journal import Claimed

Moment = int | datetime
"""Milliseconds since 1970, or a time with its zone."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """An entry that is held. ``payload`` is what the claim was made for, whatever is inserted meanwhile."""

    journal: str
    key: Any
    """The text of a key of one text column, else a mapping of its columns."""
    payload: Mapping[str, Any]
    schema: int
    """The version of the payload's columns."""
    priority: int
    inserted: int
    expires: int | None
    timeouts: int
    failures: int
    error: str | None
    """What the last failure said."""
    owner: str
    token: str
    claimed: Claimed

    @classmethod
    def of(cls, declared: WorkDeclaration, claimed: Claimed) -> "WorkItem":
        """A claim as its worker sees it."""
        entry, request = claimed.entry, claimed.request
        return cls(
            journal=declared.name,
            key=shown_key(declared, claimed.key),
            payload=json.loads(request.payload),
            schema=request.schema,
            priority=request.priority,
            inserted=request.inserted,
            expires=request.expires or None,
            timeouts=entry.timeouts,
            failures=entry.failures,
            error=entry.error,
            owner=claimed.owner,
            token=claimed.token,
            claimed=claimed,
        )


@dataclass(frozen=True, slots=True)
class Ticket:
    """A claim by its key and its token, for a process that has nothing else of it."""

    key: Any
    token: str


Held = WorkItem | Ticket


def shown_key(declared: WorkDeclaration, key: str) -> Any:
    """A stored key as people and programs give it."""
    is_text = list(declared.key.values()) == [ColumnType.TEXT]
    return key if is_text else key_values(declared.key, key)


def entry_fields(declared: WorkDeclaration, entry: Entry) -> dict[str, Any]:
    """An entry for a program."""
    request = entry.request
    return {
        "key": shown_key(declared, entry.key),
        "status": entry.status.name,
        "priority": request.priority,
        "process": iso(request.process),
        "inserted": iso(request.inserted),
        "expires": None if request.expires == NEVER else iso(request.expires),
        "payload": json.loads(request.payload),
        "schema": request.schema,
        "owner": entry.owner,
        "start": None if entry.start is None else iso(entry.start),
        "timeouts": entry.timeouts,
        "total_timeouts": entry.total_timeouts,
        "failures": entry.failures,
        "error": entry.error,
        "successor": None if entry.successor is None else json.loads(entry.successor.payload),
    }


def iso(at: int) -> str:
    """A time as programs read it."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")


def milliseconds_of(journal: str, name: str, moment: Moment | timedelta | None, now: int) -> int | None:
    """A time, or one that is so far from now, as the journal counts it."""
    if isinstance(moment, timedelta):
        return now + moment // timedelta(milliseconds=1)
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise BadRequest(journal, f"`{name}` has no time zone. Give one, such as datetime.UTC")
        return int(moment.timestamp() * 1000)
    return moment
