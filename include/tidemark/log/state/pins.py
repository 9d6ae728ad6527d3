"""Pins: ids whose messages a person wants to keep, whatever compaction would do with them.

A pin holds until a person releases it. None is added while somebody has the log for a compaction, whose plan
would not know of it; unless a hold keeps the id already, for then no plan reaches it. ``pin_message`` refuses
an id that no message has: nothing would be kept by it.
"""

import json
from dataclasses import asdict, dataclass

from tidemark.consensus.audit_trail import AuditEntry, AuditFormat
from tidemark.consensus.objects import Change, Snapshot
from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.files.parquet import LogFolder
from tidemark.log.missing_message import require_message
from tidemark.log.publish import read_manifest
from tidemark.log.state.control import HEAD, LogControl, LogHead
from tidemark.log.state.holds import Hold
from tidemark.log.state.lease import LEASE_ROW, refuse_while_held

PREFIX = "pin/"


@with_fields
class NotPinned(LogError):
    """There is no such pin, or none can be set there."""

    pipeline: str
    id: int
    problem: str

    text = "{pipeline}: {problem} Nothing was changed."


@dataclass(frozen=True, slots=True)
class Pin:
    """An id that stays.

    Attributes:
        id: The message's id in the log.
        who: The operator that pinned it.
        why: The reason.
        at: When, in µs.
    """

    id: int
    who: str
    why: str
    at: int

    @property
    def row(self) -> str:
        """The name of its row."""
        return _row(self.id)


UNPIN_AUDIT = AuditFormat(action="unpin")


@dataclass(frozen=True, slots=True)
class ReleasedPin:
    """A pin that a person took away."""

    pin: Pin
    by: AuditEntry


class _OtherManifest(Exception):
    """The log is not any more the one that was looked at."""


def refuse_missing(control: LogControl, folder: LogFolder, id_: int) -> LogHead:
    """The log in which a message has this id; refuses an id that none has, saying why."""
    head = control.log_head()
    require_message(control, folder, read_manifest(control.pipeline, folder, head), id_)
    return head


def pin_message(control: LogControl, folder: LogFolder, pin: Pin) -> Pin:
    """Pin an id that a message has, in the very log that it becomes durable for."""
    while True:
        seen = refuse_missing(control, folder, pin.id)
        try:
            return add_pin(control, pin, seen=seen)
        except _OtherManifest:
            continue  # a compaction may have taken the message away since


def add_pin(control: LogControl, pin: Pin, held_by: str = "", seen: LogHead | None = None) -> Pin:
    """Pin an id; one that is pinned already stays as it is. ``held_by`` is whose hold may keep it.

    Where the caller has ``seen`` the message in a log, that one has to be the log still.
    """
    hold_row = Hold(held_by, 0).row

    def decide(snapshot: Snapshot) -> tuple[Change | None, Pin]:
        if pin.row in snapshot.rows:
            return None, Pin(**json.loads(snapshot.rows[pin.row]))
        head = LogHead.of(snapshot)
        if seen is not None and (head.manifest, head.digest) != (seen.manifest, seen.digest):
            raise _OtherManifest
        if not 0 <= pin.id <= head.end:
            problem = f"the log has ids from 0 to {head.end}, so {pin.id} cannot be pinned."
            raise NotPinned(control.pipeline, pin.id, problem)
        hold = snapshot.rows.get(hold_row)
        if hold is None or Hold(**json.loads(hold)).after >= pin.id:
            refuse_while_held(control.pipeline, snapshot, pin.at, "a pin is refused")
        return Change({pin.row: json.dumps(asdict(pin))}), pin

    return control.amend_log([HEAD, LEASE_ROW, pin.row, hold_row], decide)


def release_pin(control: LogControl, id_: int, who: str, reason: str, at: int) -> ReleasedPin:
    """Let compaction have an id again; the audit trail keeps the pin, and who released it and why."""
    entry = AuditEntry("unpin", who, reason, at)

    def decide(snapshot: Snapshot) -> tuple[Change, ReleasedPin]:
        body = snapshot.rows.get(_row(id_))
        if body is None:
            raise NotPinned(control.pipeline, id_, f"id {id_} is not pinned.")
        pin = Pin(**json.loads(body))
        kept = {f"unpinned/{at:020d}": UNPIN_AUDIT.to_json(entry, pin=asdict(pin))}
        return Change(kept, [_row(id_)]), ReleasedPin(pin, entry)

    return control.amend_log([_row(id_)], decide)


def require_pin(control: LogControl, id_: int) -> Pin:
    """The pin of an id; refuses one that is not pinned."""
    body = control.read_log_rows([_row(id_)]).rows.get(_row(id_))
    if body is None:
        raise NotPinned(control.pipeline, id_, f"id {id_} is not pinned.")
    return Pin(**json.loads(body))


def pins(control: LogControl) -> list[Pin]:
    """All pins, by id."""
    return [Pin(**json.loads(body)) for body in control.log_rows(PREFIX).values()]


def releases(control: LogControl) -> list[ReleasedPin]:
    """The pins that people took away, oldest first."""
    rows = (json.loads(body) for body in control.log_rows("unpinned/").values())
    return [ReleasedPin(Pin(**row["pin"]), UNPIN_AUDIT.from_row(row)) for row in rows]


def _row(id_: int) -> str:
    return f"{PREFIX}{id_:020d}"
