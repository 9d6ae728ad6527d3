"""The lease of a log: one compaction at a time, from its plan to its publication.

It lives in the log object, so whatever must not happen meanwhile (a writer is registered, a position goes
back, an id is pinned) is refused by the very compare-and-set that would do it. Capture and publication of new
bindings go on: who holds the lease takes what they publish into account before its own manifest becomes the
log.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.lease import Lease, confirmed, lease_of_another, new_lease
from tidemark.consensus.objects import Change, Snapshot
from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.state.control import HEAD, LogControl, LogHead

LEASE_ROW = "lease"


@with_fields
class LogHeld(LogError):
    """Somebody has the log for a compaction."""

    pipeline: str
    lease: Lease
    refused: str

    text = (
        "{pipeline}: {lease.holder} has the log for a compaction until {lease.until} at least, and {refused} "
        "meanwhile. Nothing was changed. Wait for it to end and try again; what died gives the log back by "
        "itself at that time."
    )


@with_fields
class LogLost(LogError):
    """The log was given to somebody else, because this holder was silent for too long."""

    pipeline: str
    holder: str

    text = (
        "{pipeline}: {holder} has lost the log to somebody else and stops here. Nothing of what it was about "
        "to do is visible, and nothing is lost. Run it again: it begins anew."
    )


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """What the log object knows of its compaction."""

    token: int = 0
    """The newest lease's, whether it is still held or not."""
    lease: Lease | None = None
    plan: str | None = None
    """The digest of the plan that is being carried out, or was when its holder died: nobody removes the files
    that carry it in their names."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "LeaseRow":
        """The row as it was then."""
        if LEASE_ROW not in snapshot.rows:
            return cls()
        row = json.loads(snapshot.rows[LEASE_ROW])
        return cls(row["token"], Lease(**row["lease"]) if row["lease"] else None, row["plan"])

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        return json.dumps(asdict(self))


def read_lease(control: LogControl) -> LeaseRow:
    """Who has the log now, or had it last."""
    return LeaseRow.of(control.read_log_rows([LEASE_ROW]))


def refuse_while_held(pipeline: str, snapshot: Snapshot, now: int, refused: str) -> None:
    """Refuse a change of a log that somebody has; the snapshot has the lease's row."""
    lease = LeaseRow.of(snapshot).lease
    if lease is not None and lease.is_held_at(now):
        raise LogHeld(pipeline, lease, refused)


class LogHold:
    """A log in the hands of its holder. Every change of it is fenced by the lease's token."""

    lost = LogLost

    def __init__(self, control: LogControl, lease: Lease, clock: Clock) -> None:
        self._control, self._clock = control, clock
        self._lock = threading.Lock()
        self.lease = lease

    @property
    def what(self) -> str:
        """The log that is held, and by which process."""
        return f"log of {self.holder}"

    @property
    def holder(self) -> str:
        """Who has the log."""
        return self.lease.holder

    def check(self) -> None:
        """Asked before every plain write or removal: refuse to go on when the log may be somebody else's."""
        held = confirmed(self.lease, lambda: read_lease(self._control).lease, self._clock)
        if held is None:
            raise LogLost(self._control.pipeline, self.holder)
        self.lease = held

    def renew(self) -> None:
        """Say that the holder is alive."""
        self._change(lambda row, head: (row, head))

    def record_plan(self, digest: str) -> None:
        """Keep whose files are no orphans, before the first of them is written."""
        self._change(lambda row, head: (replace(row, plan=digest), head))

    def release(self) -> None:
        """Give the log back; a plan that is not carried out stays on record."""
        self._change(lambda row, head: (replace(row, lease=None), head))

    def replace_log(
        self, rebase: Callable[[LogHead], LogHead], further: Callable[[], Change] = Change
    ) -> LogHead:
        """Make another manifest the log, and the plan a thing of the past, in one step.

        ``rebase`` gets the head as it is and gives the one that takes its place, and ``further`` says what
        else is to change with it; where somebody changed the log object meanwhile both are asked again. What
        they raise leaves everything as it was.
        """
        return self._change(
            lambda row, head: (replace(row, plan=None), rebase(head)),
            further,
        )

    def _change(
        self,
        change: Callable[[LeaseRow, LogHead], tuple[LeaseRow, LogHead]],
        further: Callable[[], Change] = Change,
    ) -> LogHead:
        def decide(snapshot: Snapshot) -> tuple[Change, LogHead]:
            row, head = LeaseRow.of(snapshot), LogHead.of(snapshot)
            if row.lease is None or row.lease.token != self.lease.token:
                raise LogLost(self._control.pipeline, self.holder)
            changed, after = change(replace(row, lease=row.lease.prolonged(self._clock())), head)
            self.lease = changed.lease or row.lease
            also = further()
            puts = {**also.puts, LEASE_ROW: changed.to_json()}
            if after is not head:
                puts[HEAD] = after.to_json()
            return replace(also, puts=puts), replace(after, version=snapshot.version + 1)

        with self._lock:
            return self._control.amend_log([HEAD, LEASE_ROW], decide)


def take_log(control: LogControl, holder: str, clock: Clock = wall_clock) -> LogHold:
    """Take the log; refused while somebody else has it. The same holder may take it again."""

    def decide(snapshot: Snapshot) -> tuple[Change, Lease]:
        row, now = LeaseRow.of(snapshot), clock()
        if other := lease_of_another(row.lease, holder, now):
            raise LogHeld(control.pipeline, other, "another one is refused")
        lease = new_lease(row.token, holder, now)
        return Change({LEASE_ROW: replace(row, token=lease.token, lease=lease).to_json()}), lease

    return LogHold(control, control.amend_log([LEASE_ROW], decide), clock)
