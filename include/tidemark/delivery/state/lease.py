"""The lease of a writer: one process at a time moves its position, and a former holder is fenced.

Commits of the position are fenced by the control plane itself. Writes to a target are not, so the writing
process calls ``check`` before every batch.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.lease import Lease, confirmed, lease_of_another, new_lease
from tidemark.consensus.lease_wait import PATIENCE, SHORTEST, attempts, is_awaited
from tidemark.consensus.objects import Outpaced
from tidemark.consensus.update import retry_outpaced
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind, WriterGate, WriterState
from tidemark.errors import with_fields

Reload = Callable[[], WriterState | None]
"""Reads a writer's state anew. Tasks call it too, so it must be possible to send it to them."""


@with_fields
class LeaseHeld(DeliveryError):
    """Another process holds the writer's lease."""

    pipeline: str
    writer: str
    lease: Lease

    text = (
        "{pipeline}/{writer}: {lease.holder} has this writer until {lease.until} at least. Nothing was "
        "changed. Wait for it to end, or stop it; what died gives the writer back by itself at that time."
    )


@with_fields
class LeaseLost(DeliveryError):
    """Another process has taken the lease over, because this one did not renew it in time."""

    pipeline: str
    writer: str
    holder: str

    text = (
        "{pipeline}/{writer}: {holder} has lost this writer to another process and stops here. What was not "
        "committed is delivered by the new holder; nothing is lost or doubled."
    )


@dataclass(slots=True)
class WriterTicket:
    """The lease as the tasks that write for its holder check it.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        lease: The lease as it was last read. It is read again only shortly before it expires.
        reload: Reads the writer's state anew: the holder may have renewed its lease since.
        clock: The clock that decides whether the lease has expired.
    """

    pipeline: str
    writer: str
    lease: Lease
    reload: Reload
    clock: Clock = wall_clock

    def check(self) -> None:
        """Raise ``LeaseLost`` where the lease may have expired or was taken over."""
        held = confirmed(self.lease, self._reload_lease, self.clock)
        if held is None:
            raise LeaseLost(self.pipeline, self.writer, self.lease.holder)
        self.lease = held

    def confirm(self) -> None:
        """Read the lease anew; raise ``LeaseLost`` where it is another holder's or may have expired.

        For the first write of a process that its holder does not end with itself: until its deadline, a lease
        alone does not tell that the holder was replaced.
        """
        found = self._reload_lease()
        if found is None or found.token != self.lease.token or not found.is_safe_at(self.clock()):
            raise LeaseLost(self.pipeline, self.writer, self.lease.holder)
        self.lease = found

    def _reload_lease(self) -> Lease | None:
        state = self.reload()
        return state.lease if state else None


class WriterHold:
    """A writer's state and lease in the process that holds it; ``with holding(hold):`` renews the lease."""

    lost = LeaseLost

    def __init__(self, positions: Positions, state: WriterState, clock: Clock) -> None:
        if state.lease is None:
            raise ValueError(f"{state.pipeline}/{state.name} has no lease")
        self._positions, self._clock = positions, clock
        self._lock = threading.Lock()
        self.state, self.holder = state, state.lease.holder

    @property
    def what(self) -> str:
        """The writer, for error texts: ``pipeline/writer``."""
        return f"{self.state.pipeline}/{self.state.name}"

    def ticket(self, reload: Reload) -> WriterTicket:
        """The ticket that tasks check before they write; ``reload`` reads the writer's state where they
        run."""
        with self._lock:
            return WriterTicket(self.state.pipeline, self.state.name, self._lease(), reload, self._clock)

    def commit(
        self,
        position: int,
        namespaces: Mapping[str, int],
        gate: WriterGate | None = None,
        further: Mapping[str, str] | None = None,
    ) -> WriterState:
        """Commit a position, the last finished id of each namespace, a gate and ``further`` rows, atomically.

        ``gate`` None opens the gate. A position that is not beyond the present one gets no offset log entry.
        """
        with self._lock:
            entry = None
            if position > self.state.position:
                entry = OffsetEntry(
                    OffsetEntryKind.COMMIT, position, self._clock(), self.holder, None, dict(namespaces)
                )
            return self._change(
                lambda state, lease: self._positions.commit(state, position, entry, gate, lease, further)
            )

    def change(self, change: Callable[[WriterState, Lease], WriterState]) -> WriterState:
        """Commit any other change of the writer's state, with a renewed lease."""
        with self._lock:
            return self._change(change)

    def renew(self) -> None:
        """Renew the lease."""
        with self._lock:
            self._change(self._positions.lend)

    def release(self) -> None:
        """Release the lease."""
        with self._lock:
            self._change(lambda state, _: self._positions.lend(state, None))

    def _change(self, change: Callable[[WriterState, Lease], WriterState]) -> WriterState:
        def attempt(state: WriterState) -> WriterState:
            self.state = change(state, self._lease().prolonged(self._clock()))
            return self.state

        return retry_outpaced(self._reload, attempt, known=self.state)

    def _reload(self) -> WriterState:
        """The present state; raises ``LeaseLost`` where the lease is another process's by now."""
        newer, token = self._positions.load(self.state.name), self._lease().token
        if newer is None or newer.lease is None or newer.lease.token != token:
            # So that the next call, on any thread, fails without another read.
            self.state = replace(self.state, lease=None)
            raise LeaseLost(self.state.pipeline, self.state.name, self.holder)
        self.state = newer
        return newer

    def _lease(self) -> Lease:
        if self.state.lease is None:
            raise LeaseLost(self.state.pipeline, self.state.name, self.holder)
        return self.state.lease


def take(
    positions: Positions,
    state: WriterState,
    holder: str,
    clock: Clock = wall_clock,
    patience: float = PATIENCE,
) -> WriterHold:
    """Take a writer's lease; raises ``LeaseHeld`` while another holder has it. The same holder may take it
    again.

    A lease that a round of a follow holds is waited for, ``patience`` seconds at most.
    """
    # Pauses much shorter than what a round does before it takes the lease again.
    for is_last in attempts(patience, longest=SHORTEST):
        try:
            return _take_now(positions, state, holder, clock)
        except LeaseHeld as held:
            if is_last or not is_awaited(held.lease, holder):
                raise
        state = positions.load(state.name) or state
    raise AssertionError("never reached")


def _take_now(positions: Positions, state: WriterState, holder: str, clock: Clock) -> WriterHold:

    def reload() -> WriterState:
        version, newer = positions.load_version(state.name)
        if newer is None:
            raise Outpaced(positions.key(state.name), state.version, version)
        return newer

    def attempt(found: WriterState) -> WriterHold:
        now = clock()
        if other := lease_of_another(found.lease, holder, now):
            raise LeaseHeld(found.pipeline, found.name, other)
        return WriterHold(positions, positions.lend(found, new_lease(found.token, holder, now)), clock)

    return retry_outpaced(reload, attempt, known=state)
