"""``tidemark.WorkEntry``: entries, dead letters and ended claims of a work journal as programs read them.

Keys have the form of the declaration, times are ``datetime`` in UTC. A field that does not apply is None.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from tidemark.work.model.columns import ColumnType, key_values
from tidemark.work.model.days import moment
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.model.entry import NEVER, DeadEntry, DeathReason, Ending, Entry, KeptLetter, Request, Run


class WorkStatus(StrEnum):
    """The state of a live entry, ``dead`` for a dead letter, or how a claim ended (``Ending``)."""

    WAITING = "waiting"
    PROCESSING = "processing"
    DEAD = "dead"
    DONE = Ending.DONE.value
    FAILED = Ending.FAILED.value
    LAPSED = Ending.LAPSED.value
    SNOOZED = Ending.SNOOZED.value
    RELEASED = Ending.RELEASED.value
    CANCELLED = Ending.CANCELLED.value
    EXPIRED = Ending.EXPIRED.value


@dataclass(frozen=True, slots=True)
class SeenBy:
    """That an operator has seen a dead letter.

    Attributes:
        by: The operator.
        at: When.
        reason: The operator's remark.
    """

    by: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEntry:
    """One live entry (``Work.get``, ``entries``), dead letter (``dead``) or ended claim (``history``).

    Attributes:
        journal: The journal's name.
        key: The text of a key of one text column, else a mapping of its columns.
        status: Which of the three it is, and its state.
        payload: The declared columns; None for an ended claim.
        schema: The version of the payload's columns; None for an ended claim.
        priority: 0 to 255; None for an ended claim.
        inserted: The time of the first request; None for an ended claim.
        process: The earliest time of processing; None for an ended claim.
        expires: When it expires; None is never.
        owner: The holder of an entry's present claim; of a dead letter's last one.
        token: The fencing token of that claim; None for a dead letter.
        started: When that claim was made; of a waiting entry, the last one.
        ended: When the claim ended, or the entry became a dead letter.
        timeouts: Lapsed claims since the payload changed.
        total_timeouts: Lapsed claims of the key ever.
        failures: Failed claims since the payload changed.
        error: The text of the last failure.
        reason: Of a dead letter: why it is one.
        successor: Of an entry in processing: the payload queued behind it.
        seen: Of a dead letter: the operator that marked it as seen; None until then.
        source: The stored value.
    """

    journal: str
    key: Any
    status: WorkStatus
    payload: Mapping[str, Any] | None = None
    schema: int | None = None
    priority: int | None = None
    inserted: datetime | None = None
    process: datetime | None = None
    expires: datetime | None = None
    owner: str | None = None
    token: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    timeouts: int | None = None
    total_timeouts: int | None = None
    failures: int | None = None
    error: str | None = None
    reason: DeathReason | None = None
    successor: Mapping[str, Any] | None = None
    seen: SeenBy | None = None
    source: Entry | KeptLetter | Run = field(repr=False, compare=False)

    @classmethod
    def of_entry(cls, declared: WorkDeclaration, entry: Entry) -> "WorkEntry":
        """The view of a live entry."""
        successor = entry.successor
        return cls(
            journal=declared.name,
            key=shown_key(declared, entry.key),
            status=WorkStatus.WAITING if entry.is_waiting else WorkStatus.PROCESSING,
            owner=entry.owner,
            token=entry.token,
            started=_moment(entry.began),
            **_counters(entry),
            successor=None if successor is None else json.loads(successor.payload),
            source=entry,
            **shown_request(entry.request),
        )

    @classmethod
    def of_letter(cls, declared: WorkDeclaration, kept: KeptLetter) -> "WorkEntry":
        """The view of a dead letter."""
        letter, seen = kept.letter, kept.seen
        return cls(
            journal=declared.name,
            key=shown_key(declared, letter.key),
            status=WorkStatus.DEAD,
            owner=letter.owner,
            started=_moment(letter.started or None),
            ended=moment(letter.died),
            **_counters(letter),
            reason=letter.reason,
            seen=None if seen is None else SeenBy(seen.by, moment(seen.at), seen.reason),
            source=kept,
            **shown_request(letter.request),
        )

    @classmethod
    def of_run(cls, declared: WorkDeclaration, run: Run) -> "WorkEntry":
        """The view of an ended claim."""
        return cls(
            journal=declared.name,
            key=shown_key(declared, run.key),
            status=WorkStatus(run.ending),
            owner=run.owner,
            token=run.token,
            started=moment(run.started),
            ended=moment(run.ended),
            error=run.error,
            source=run,
        )

    def to_json(self) -> dict[str, Any]:
        """The form of ``--json``: times as ISO texts in UTC with milliseconds."""
        return {one.name: plain(getattr(self, one.name)) for one in fields(self) if one.name != "source"}


def shown_key(declared: WorkDeclaration, key: str) -> Any:
    """A stored key in the form that callers use."""
    is_text = list(declared.key.values()) == [ColumnType.TEXT]
    return key if is_text else key_values(declared.key, key)


def shown_request(request: Request) -> dict[str, Any]:
    """The fields of a view that come from the request."""
    return {
        "payload": json.loads(request.payload),
        "schema": request.schema,
        "priority": request.priority,
        "inserted": moment(request.inserted),
        "process": moment(request.process),
        "expires": None if request.expires == NEVER else moment(request.expires),
    }


def _counters(source: Entry | DeadEntry) -> dict[str, Any]:
    names = ("timeouts", "total_timeouts", "failures", "error")
    return {name: getattr(source, name) for name in names}


def _moment(at: int | None) -> datetime | None:
    return None if at is None else moment(at)


def plain(value: Any) -> Any:
    """A value in its JSON form."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, SeenBy):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return value
