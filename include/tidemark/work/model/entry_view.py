"""What a work journal shows: entries, dead letters and ended claims, all of one type.

Keys have the form of the declaration, times are ``datetime`` in UTC. What a row does not have is None.
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
from tidemark.work.model.entry import NEVER, DeathReason, Entry, KeptLetter, Request, Run


class WorkStatus(StrEnum):
    """What a row is about: a live entry, a dead letter, or a claim and how it ended."""

    WAITING = "waiting"
    PROCESSING = "processing"
    DEAD = "dead"
    DONE = "done"
    FAILED = "failed"
    LAPSED = "lapsed"
    SNOOZED = "snoozed"
    RELEASED = "released"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class SeenBy:
    """Which person looked at a dead letter."""

    by: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEntry:
    """One live entry (``Work.get``, ``entries``), dead letter (``dead``) or ended claim (``history``).

    ``status`` says which. An ended claim has no payload, priority or dates of its request.
    """

    journal: str
    key: Any
    """The text of a key of one text column, else a mapping of its columns."""
    status: WorkStatus
    payload: Mapping[str, Any] | None = None
    schema: int | None = None
    """The version of the payload's columns."""
    priority: int | None = None
    inserted: datetime | None = None
    process: datetime | None = None
    """From when on it may be, or might have been, processed."""
    expires: datetime | None = None
    """None is never."""
    owner: str | None = None
    """Of the present claim of an entry, of the last one otherwise."""
    token: str | None = None
    started: datetime | None = None
    """When that claim began; of an entry that waits, the last one."""
    ended: datetime | None = None
    """When a claim ended, or an entry was given up."""
    timeouts: int | None = None
    total_timeouts: int | None = None
    failures: int | None = None
    error: str | None = None
    """What the last failure said."""
    reason: DeathReason | None = None
    """Of a dead letter: why it was given up."""
    successor: Mapping[str, Any] | None = None
    """Of an entry in processing: the payload that waits behind it."""
    seen: SeenBy | None = None
    """Of a dead letter: who looked at it; None until a person said so."""
    source: Entry | KeptLetter | Run = field(repr=False, compare=False)
    """As the journal stores it."""

    @classmethod
    def of_entry(cls, declared: WorkDeclaration, entry: Entry) -> "WorkEntry":
        """A live entry."""
        successor = entry.successor
        return cls(
            journal=declared.name,
            key=shown_key(declared, entry.key),
            status=WorkStatus.WAITING if entry.is_waiting else WorkStatus.PROCESSING,
            owner=entry.owner,
            token=entry.token,
            started=_moment(entry.began),
            timeouts=entry.timeouts,
            total_timeouts=entry.total_timeouts,
            failures=entry.failures,
            error=entry.error,
            successor=None if successor is None else json.loads(successor.payload),
            source=entry,
            **_asked_for(entry.request),
        )

    @classmethod
    def of_letter(cls, declared: WorkDeclaration, kept: KeptLetter) -> "WorkEntry":
        """A dead letter."""
        letter, seen = kept.letter, kept.seen
        return cls(
            journal=declared.name,
            key=shown_key(declared, letter.key),
            status=WorkStatus.DEAD,
            owner=letter.owner,
            started=_moment(letter.started or None),
            ended=moment(letter.died),
            timeouts=letter.timeouts,
            total_timeouts=letter.total_timeouts,
            failures=letter.failures,
            error=letter.error,
            reason=letter.reason,
            seen=None if seen is None else SeenBy(seen.by, moment(seen.at), seen.reason),
            source=kept,
            **_asked_for(letter.request),
        )

    @classmethod
    def of_run(cls, declared: WorkDeclaration, run: Run) -> "WorkEntry":
        """A claim that has ended."""
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
    """A stored key as callers give it."""
    is_text = list(declared.key.values()) == [ColumnType.TEXT]
    return key if is_text else key_values(declared.key, key)


def _asked_for(request: Request) -> dict[str, Any]:
    return {
        "payload": json.loads(request.payload),
        "schema": request.schema,
        "priority": request.priority,
        "inserted": moment(request.inserted),
        "process": moment(request.process),
        "expires": None if request.expires == NEVER else moment(request.expires),
    }


def _moment(at: int | None) -> datetime | None:
    return None if at is None else moment(at)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, SeenBy):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return value
