"""The lease of a log: one compaction at a time, from its plan to its publication.

It is a row of the log object, so the compare-and-set of every conflicting change (registering a writer,
moving a position back, pinning an id) is refused while it is held. Capture and publication of new bindings
continue: the holder adds what they publish to its own manifest before that becomes the log. A holder that has
lost a few races against publications makes them wait for a moment.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import TypeVar

from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.consensus.lease import Lease, confirmed, lease_of_another, new_lease
from tidemark.consensus.lease_wait import PATIENCE, attempts, is_awaited
from tidemark.consensus.objects import Change, Snapshot
from tidemark.consensus.update import Patience
from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.state.control import HEAD, LogControl, LogHead

T = TypeVar("T")

LEASE_ROW = "lease"
RACES = 3
"""How many races against publications a compaction loses before they wait for it."""
SWAP_TIME = 5 * SECOND
"""How long publications wait for it at most, in µs."""
LOOK_AGAIN = 0.05
"""Seconds between two looks of a waiting publication."""


@with_fields
class LogHeld(LogError):
    """Another process holds the log's lease."""

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
    """Another process has taken the lease, because this holder did not renew it in time."""

    pipeline: str
    holder: str

    text = (
        "{pipeline}: {holder} has lost the log to another process and stops here. Nothing of what it was "
        "about to do is visible, and nothing is lost. Run it again: it begins anew."
    )


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """The row of the log's lease.

    Attributes:
        token: The fencing token of the newest lease, held or not.
        lease: The newest lease; None after its release.
        plan: The digest of the plan in progress, of one that waits for approval, or of the plan of a crashed
            holder: files with this digest in their names are not removed.
        merge: The same for a merge of small files, which may run while a plan waits for approval.
        swap_until: Publications wait for the holder until this time (µs), because it has lost too many races
            against them.
    """

    token: int = 0
    lease: Lease | None = None
    plan: str | None = None
    merge: str | None = None
    swap_until: int = 0

    @property
    def plans(self) -> tuple[str, ...]:
        """The digests of the plans whose files are not removed."""
        return tuple(digest for digest in (self.plan, self.merge) if digest)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "LeaseRow":
        """The row in a snapshot of the log object."""
        if LEASE_ROW not in snapshot.rows:
            return cls()
        row = json.loads(snapshot.rows[LEASE_ROW])
        lease = Lease(**row["lease"]) if row["lease"] else None
        return cls(row["token"], lease, row["plan"], row.get("merge"), row.get("swap_until", 0))

    def to_json(self) -> str:
        """The row in the control plane."""
        return json.dumps(asdict(self))


def read_lease(control: LogControl) -> LeaseRow:
    """The current row of the log's lease."""
    return LeaseRow.of(control.read_log_rows([LEASE_ROW]))


def head_for_publication(
    control: LogControl, clock: Clock = wall_clock, sleep: Callable[[float], None] = time.sleep
) -> LogHead:
    """The log's head, as soon as no compaction asks publications to wait; after ``SWAP_TIME`` in any case."""
    began = clock()
    while True:
        snapshot = control.read_log_rows([HEAD, LEASE_ROW])
        now = clock()
        if min(LeaseRow.of(snapshot).swap_until, began + SWAP_TIME) <= now:
            return LogHead.of(snapshot)
        sleep(LOOK_AGAIN)


def refuse_while_held(pipeline: str, snapshot: Snapshot, now: int, refused: str) -> None:
    """Raise ``LogHeld`` where the lease is held; the snapshot must include the lease's row."""
    lease = LeaseRow.of(snapshot).lease
    if lease is not None and lease.is_held_at(now):
        raise LogHeld(pipeline, lease, refused)


class _RaceLost(Exception):
    """Another process was faster."""


class LogHold:
    """The held lease of a log. The fencing token protects every change made through it."""

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
        """The holder's name."""
        return self.lease.holder

    def check(self) -> None:
        """Raise ``LogLost`` where another process may hold the lease; call it before every unfenced write."""
        held = confirmed(self.lease, lambda: read_lease(self._control).lease, self._clock)
        if held is None:
            raise LogLost(self._control.pipeline, self.holder)
        self.lease = held

    def renew(self) -> None:
        """Extend the lease."""
        self._change(lambda row, head: (row, head))

    def record_plan(self, digest: str) -> None:
        """Record the plan before its first file is written, so that no sweep removes its files."""
        self._change(lambda row, head: (replace(row, plan=digest), head))

    def record_merge(self, digest: str) -> None:
        """As ``record_plan``, for a merge."""
        self._change(lambda row, head: (replace(row, merge=digest), head))

    def release(self) -> None:
        """Release the lease; an unfinished plan stays on record."""
        self._change(lambda row, head: (replace(row, lease=None), head))

    def replace_log(
        self, rebase: Callable[[LogHead], LogHead], further: Callable[[], Change] = Change
    ) -> LogHead:
        """Make another manifest the log and clear the plan, in one compare-and-set.

        ``rebase`` gets the current head and returns the new one; ``further`` returns changes to commit with
        it. Both are called again where another process changed the log object meanwhile. An error they raise
        leaves everything unchanged. After every ``RACES`` lost races, publications wait for this one. The
        lease is renewed after each of them.
        """
        return self._swap(lambda row, head: (replace(row, plan=None, swap_until=0), rebase(head)), further)

    def replace_merged(self, rebase: Callable[[LogHead], LogHead]) -> LogHead:
        """As ``replace_log``, for a merge: a plan that waits for approval stays on record."""
        return self._swap(lambda row, head: (replace(row, merge=None, swap_until=0), rebase(head)), Change)

    def _swap(
        self,
        change: Callable[[LeaseRow, LogHead], tuple[LeaseRow, LogHead]],
        further: Callable[[], Change],
    ) -> LogHead:
        for lost in count(1):
            try:
                return self._change(change, further, Patience(1, _RaceLost))
            except _RaceLost:
                # The thread that renews the lease cannot do it while a change is tried.
                self._change(self._making_wait if lost % RACES == 0 else lambda row, head: (row, head))
        raise AssertionError("never reached")

    def _making_wait(self, row: LeaseRow, head: LogHead) -> tuple[LeaseRow, LogHead]:
        return replace(row, swap_until=self._clock() + SWAP_TIME), head

    def _change(
        self,
        change: Callable[[LeaseRow, LogHead], tuple[LeaseRow, LogHead]],
        further: Callable[[], Change] = Change,
        patience: Patience | None = None,
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
            return self._control.amend_log([HEAD, LEASE_ROW], decide, patience)


def after_merge(attempt: Callable[[], T], holder: str = "", patience: float = PATIENCE) -> T:
    """The result of ``attempt``; while it raises ``LogHeld`` because a follow merges small files, it is made
    again, for ``patience`` seconds at most. ``holder`` is the caller, if it takes the lease."""
    for is_last in attempts(patience):
        try:
            return attempt()
        except LogHeld as held:
            if is_last or not is_awaited(held.lease, holder):
                raise
    raise AssertionError("never reached")


def take_log(
    control: LogControl, holder: str, clock: Clock = wall_clock, patience: float = PATIENCE
) -> LogHold:
    """Take the lease; raises ``LogHeld`` while another holder has it. The same holder may take it again.

    A follow that merges small files is waited for, ``patience`` seconds at most.
    """

    def decide(snapshot: Snapshot) -> tuple[Change, Lease]:
        row, now = LeaseRow.of(snapshot), clock()
        if other := lease_of_another(row.lease, holder, now):
            raise LogHeld(control.pipeline, other, "another one is refused")
        lease = new_lease(row.token, holder, now)
        return Change({LEASE_ROW: replace(row, token=lease.token, lease=lease).to_json()}), lease

    lease = after_merge(lambda: control.amend_log([LEASE_ROW], decide), holder, patience)
    return LogHold(control, lease, clock)
