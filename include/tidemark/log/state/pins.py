"""Pins: ids of messages that compaction must not remove.

A pin lasts until an operator releases it. While a compaction holds the log's lease, a new pin is refused,
because the plan would not respect it; unless a hold protects the id already. ``pin_message`` refuses an id
without a message.
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
from tidemark.log.state.lease import LEASE_ROW, after_merge, refuse_while_held

PREFIX = "pin/"


@with_fields
class NotPinned(LogError):
    """An id is not pinned, or cannot be pinned.

    Attributes:
        pipeline: The pipeline's name.
        id: The id.
        problem: What is wrong, as a sentence.
    """

    pipeline: str
    id: int
    problem: str

    text = "{pipeline}: {problem} Nothing was changed."


@dataclass(frozen=True, slots=True)
class Pin:
    """A pinned id.

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
    """A pin that an operator released."""

    pin: Pin
    by: AuditEntry


class _OtherManifest(Exception):
    """Another manifest has become the log since the message was found."""


def refuse_missing(control: LogControl, folder: LogFolder, id_: int) -> LogHead:
    """The head of the log that has a message with this id; raises ``NotInTheLog``."""
    head = control.log_head()
    require_message(control, folder, read_manifest(control.pipeline, folder, head), id_)
    return head


def pin_message(control: LogControl, folder: LogFolder, pin: Pin) -> Pin:
    """Pin the id of a message; the pin is committed against the same manifest in which the message was
    found.
    """
    while True:
        seen = refuse_missing(control, folder, pin.id)
        try:
            return add_pin(control, pin, seen=seen)
        except _OtherManifest:
            continue  # a compaction may have removed the message since


def add_pin(control: LogControl, pin: Pin, held_by: str = "", seen: LogHead | None = None) -> Pin:
    """Pin an id; an existing pin is kept and returned.

    ``held_by`` is a holder whose hold may protect the id. ``seen`` is the head in which the caller has found
    the message: it must still be the current one. A follow that merges small files is waited for.
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

    return after_merge(lambda: control.amend_log([HEAD, LEASE_ROW, pin.row, hold_row], decide))


def release_pin(control: LogControl, id_: int, who: str, reason: str, at: int) -> ReleasedPin:
    """Remove a pin; the audit trail keeps the pin, the operator and the reason."""
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
    """The pin of an id; raises ``NotPinned``."""
    body = control.read_log_rows([_row(id_)]).rows.get(_row(id_))
    if body is None:
        raise NotPinned(control.pipeline, id_, f"id {id_} is not pinned.")
    return Pin(**json.loads(body))


def pins(control: LogControl) -> list[Pin]:
    """All pins, by id."""
    return [Pin(**json.loads(body)) for body in control.log_rows(PREFIX).values()]


def releases(control: LogControl) -> list[ReleasedPin]:
    """The released pins, oldest first."""
    rows = (json.loads(body) for body in control.log_rows("unpinned/").values())
    return [ReleasedPin(Pin(**row["pin"]), UNPIN_AUDIT.from_row(row)) for row in rows]


def _row(id_: int) -> str:
    return f"{PREFIX}{id_:020d}"
