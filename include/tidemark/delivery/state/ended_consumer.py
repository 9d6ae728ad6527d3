"""The end of a consumer: its object becomes a tombstone, before the place of its rendition is dropped.

From that commit on no process gets its lease, a former holder is fenced, and every delivery, resume and
operator's action finds the tombstone and changes nothing. Compaction does not wait for it. Nothing is removed
from the place here, and the tombstone is never removed.
"""

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease import lease_of_another
from tidemark.consensus.lease_wait import PATIENCE, SHORTEST, attempts, is_awaited
from tidemark.consensus.update import retry_outpaced
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Ended, WriterState
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.log.state.registered_writers import enrolled, withdraw

END = "end"
"""The action in the consumer's audit entries."""


def end_consumer(
    positions: Positions,
    control: LogControl,
    name: str,
    holder: str,
    clock: Clock = wall_clock,
    patience: float = PATIENCE,
) -> WriterState:
    """Make a consumer a tombstone; returns it. Idempotent, also for two processes at once.

    A consumer that was never registered gets a tombstone too, because a delivery may be about to register
    it. Raises ``LeaseHeld`` while another process delivers to it; a round of a follow is waited for.

    Args:
        positions: The consumers of the pipeline.
        control: The control plane of its log.
        name: The consumer's name.
        holder: The process that ends it.
        clock: The time of leases.
        patience: How many seconds to wait for a follow.
    """
    for is_last in attempts(patience, longest=SHORTEST):
        try:
            ended = _end_now(positions, name, holder, clock)
            break
        except LeaseHeld as held:
            if is_last or not is_awaited(held.lease, holder):
                raise
    reach(FaultPoint.CONSUMER_ENDED)
    if place := enrolled(control).get(name):
        withdraw(control, place)
    reach(FaultPoint.CONSUMER_WITHDRAWN)
    return ended


def _end_now(positions: Positions, name: str, holder: str, clock: Clock) -> WriterState:
    def attempt(found: tuple[int, WriterState | None]) -> WriterState:
        version, state = found
        if state is None:
            state = WriterState(positions.pipeline, name, version, NOTHING_YET, {}, token=version)
        if state.ended is not None:
            return state
        now = clock()
        if other := lease_of_another(state.lease, holder, now):
            raise LeaseHeld(positions.pipeline, name, other)
        deed = AuditEntry(END, holder, "its rendition is taken out of use for good", now)
        return positions.end(state, Ended(now, holder), deed)

    return retry_outpaced(lambda: positions.load_version(name), attempt)
