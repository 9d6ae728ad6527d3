"""``tidemark.WorkItem``: a claim as a worker gets it, with key and payload as declared."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from tidemark.work.errors import BadRequest
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.model.entry_view import plain, shown_key, shown_request
from tidemark.work.queue.journal import Claimed

Moment = int | datetime
"""Milliseconds since 1970, or a ``datetime`` with a time zone."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A claimed entry. Inserts during the claim do not change it.

    Attributes:
        journal: The journal's name.
        key: The text of a key of one text column, else a mapping of its columns.
        payload: The declared columns, as they were when the claim was made.
        schema: The version of the payload's columns.
        priority: 0 to 255, smallest first.
        inserted: The time of the first request.
        process: The earliest time at which it could be claimed.
        expires: When the entry expires; None is never.
        timeouts: Lapsed claims since the payload changed.
        failures: Failed claims since the payload changed.
        error: The text of the last failure; None without one.
        owner: The name that the claim carries.
        token: The claim's fencing token.
        claimed: The claim as the journal stores it.
    """

    journal: str
    key: Any
    payload: Mapping[str, Any]
    schema: int
    priority: int
    inserted: datetime
    process: datetime
    expires: datetime | None
    timeouts: int
    failures: int
    error: str | None
    owner: str
    token: str
    claimed: Claimed

    @classmethod
    def of(cls, declared: WorkDeclaration, claimed: Claimed) -> "WorkItem":
        """The item of a claim."""
        entry = claimed.entry
        return cls(
            **shown_request(claimed.request),
            key=shown_key(declared, claimed.key),
            journal=declared.name,
            claimed=claimed,
            owner=claimed.owner,
            token=claimed.token,
            timeouts=entry.timeouts,
            failures=entry.failures,
            error=entry.error,
        )

    def to_json(self) -> dict[str, Any]:
        """The form of ``--json``: times as ISO texts in UTC with milliseconds."""
        shown = [one.name for one in fields(self) if one.name != "claimed"]
        return {name: plain(getattr(self, name)) for name in shown}


@dataclass(frozen=True, slots=True)
class Ticket:
    """A claim by its key and its fencing token, for a process that does not have its ``WorkItem``.

    Attributes:
        key: The key, as for ``Work.insert``.
        token: The claim's fencing token.
    """

    key: Any
    token: str


Held = WorkItem | Ticket


def milliseconds_of(journal: str, name: str, given: Moment | timedelta | None, now: int) -> int | None:
    """A time in ms; a ``timedelta`` counts from ``now``. Raises ``BadRequest`` without a time zone."""
    if isinstance(given, timedelta):
        return now + given // timedelta(milliseconds=1)
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise BadRequest(journal, f"`{name}` has no time zone. Give one, such as datetime.UTC")
        return int(given.timestamp() * 1000)
    return given
