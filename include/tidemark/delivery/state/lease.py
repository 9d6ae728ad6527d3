"""The lease of a writer: one at a time moves its position, and an old holder is recognised.

Moves of the position are fenced by the control plane itself. Plain writes to a target are not, so whoever
does them asks ``check`` before every batch.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.lease import Lease, confirmed, lease_of_another, new_lease
from tidemark.consensus.objects import Outpaced
from tidemark.consensus.update import retry_outpaced
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind, WriterGate, WriterState
from tidemark.errors import with_fields


@with_fields
class LeaseHeld(DeliveryError):
    """Somebody else has the writer."""

    pipeline: str
    writer: str
    lease: Lease

    text = (
        "{pipeline}/{writer}: {lease.holder} has this writer until {lease.until} at least. Nothing was "
        "changed. Wait for it to end, or stop it; what died gives the writer back by itself at that time."
    )


@with_fields
class LeaseLost(DeliveryError):
    """The writer was given to somebody else, because this holder was silent for too long."""

    pipeline: str
    writer: str
    holder: str

    text = (
        "{pipeline}/{writer}: {holder} has lost this writer to somebody else and stops here. What was not "
        "committed is delivered by the new holder; nothing is lost or doubled."
    )


@dataclass(slots=True)
class WriterTicket:
    """A holder's claim as it travels to the tasks that write for it."""

    pipeline: str
    writer: str
    lease: Lease
    """As it was known last: it is asked for again only when its time is nearly over."""
    reload: Callable[[], WriterState | None]
    """Reads the writer's state anew: the holder may have prolonged its lease since."""
    clock: Clock = wall_clock

    def check(self) -> None:
        """Refuse to write for a holder whose time may be over."""
        held = confirmed(self.lease, self._reload_lease, self.clock)
        if held is None:
            raise LeaseLost(self.pipeline, self.writer, self.lease.holder)
        self.lease = held

    def _reload_lease(self) -> Lease | None:
        state = self.reload()
        return state.lease if state else None


class WriterHold:
    """A writer in the hands of its holder: ``with holding(hold):`` keeps it so."""

    lost = LeaseLost

    def __init__(self, positions: Positions, state: WriterState, clock: Clock) -> None:
        if state.lease is None:
            raise ValueError(f"{state.pipeline}/{state.name} is held by nobody")
        self._positions, self._clock = positions, clock
        self._lock = threading.Lock()
        self.state, self.holder = state, state.lease.holder

    @property
    def what(self) -> str:
        """The writer that is held."""
        return f"{self.state.pipeline}/{self.state.name}"

    def ticket(self, reload: Callable[[], WriterState | None]) -> WriterTicket:
        """What tasks check before they write."""
        with self._lock:
            return WriterTicket(self.state.pipeline, self.state.name, self._lease(), reload, self._clock)

    def commit(
        self,
        position: int,
        namespaces: Mapping[str, int],
        gate: WriterGate | None = None,
        further: Mapping[str, str] | None = None,
    ) -> WriterState:
        """Move the position, and close or open the gate with it; ``further`` rows become durable with it."""
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
        """Anything else that is to be durable with the writer, while it is held."""
        with self._lock:
            return self._change(change)

    def renew(self) -> None:
        """Say that the holder is alive."""
        with self._lock:
            self._change(self._positions.lend)

    def release(self) -> None:
        """Give the writer back."""
        with self._lock:
            self._change(lambda state, _: self._positions.lend(state, None))

    def _change(self, change: Callable[[WriterState, Lease], WriterState]) -> WriterState:
        def attempt(state: WriterState) -> WriterState:
            self.state = change(state, self._lease().prolonged(self._clock()))
            return self.state

        return retry_outpaced(self._reload, attempt, known=self.state)

    def _reload(self) -> WriterState:
        """The state as it is now; a change that did not take the lease is no reason to stop."""
        newer, token = self._positions.load(self.state.name), self._lease().token
        if newer is None or newer.lease is None or newer.lease.token != token:
            # The next call, on whatever thread, is refused without another read.
            self.state = replace(self.state, lease=None)
            raise LeaseLost(self.state.pipeline, self.state.name, self.holder)
        self.state = newer
        return newer

    def _lease(self) -> Lease:
        if self.state.lease is None:
            raise LeaseLost(self.state.pipeline, self.state.name, self.holder)
        return self.state.lease


def take(positions: Positions, state: WriterState, holder: str, clock: Clock = wall_clock) -> WriterHold:
    """Take the writer; refused while somebody else has it. The same holder may take it again."""

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
