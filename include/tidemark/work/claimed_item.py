"""What a worker gets: a claim with its key and its payload as they were declared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from tidemark.work.errors import BadRequest
from tidemark.work.model.days import moment
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.model.entry import NEVER
from tidemark.work.model.entry_view import plain, shown_key
from tidemark.work.queue.journal import Claimed

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
    inserted: datetime
    process: datetime
    expires: datetime | None
    """None is never."""
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
            inserted=moment(request.inserted),
            process=moment(request.process),
            expires=None if request.expires == NEVER else moment(request.expires),
            timeouts=entry.timeouts,
            failures=entry.failures,
            error=entry.error,
            owner=claimed.owner,
            token=claimed.token,
            claimed=claimed,
        )

    def to_json(self) -> dict[str, Any]:
        """The form of ``--json``: times as ISO texts in UTC with milliseconds."""
        shown = [one.name for one in fields(self) if one.name != "claimed"]
        return {name: plain(getattr(self, name)) for name in shown}


@dataclass(frozen=True, slots=True)
class Ticket:
    """A claim by its key and its token, for a process that has nothing else of it."""

    key: Any
    token: str


Held = WorkItem | Ticket


def milliseconds_of(journal: str, name: str, given: Moment | timedelta | None, now: int) -> int | None:
    """A time, or one that is so far from now, as the journal counts it."""
    if isinstance(given, timedelta):
        return now + given // timedelta(milliseconds=1)
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise BadRequest(journal, f"`{name}` has no time zone. Give one, such as datetime.UTC")
        return int(given.timestamp() * 1000)
    return given
