"""Repairs an output over which a verification closed the gate, as far as a redelivery can.

A missing file is written again from the log, with the same bytes. Messages that are missing at the end of a
partition are sent again. Then the output is verified again, and the gate opens only where nothing is
different. Nothing is overwritten and no position changes. A binding that the log no longer has completely is
not delivered in part.
"""

from collections.abc import Iterator, Sequence

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.binding_delivery import Delivery
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.compacted_history import require_history
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.resume import Resumed
from tidemark.delivery.state.lease import WriterHold, take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterGate, WriterState
from tidemark.delivery.writer import Writer
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile
from tidemark.verification.errors import VerificationError
from tidemark.verification.outputs.found import Extent, OutputProblem, OutputVerification
from tidemark.verification.outputs.reconcile import reconcile_output, usual_extent, verify_at
from tidemark.verification.reconcile import Show
from tidemark.verification.reconciliation import read
from tidemark.writers.collection.writer import CollectionWriter
from tidemark.writers.files.writer import FilesWriter


@with_fields
class NotMended(VerificationError):
    """An output is still different after a redelivery."""

    needs_person = True

    pipeline: str
    writer: str
    problem: str
    way: str

    def __str__(self) -> str:
        problem = self.problem.rstrip(".")
        return f"{self.pipeline}/{self.writer}: {problem}. The gate stays closed. {self.way}".rstrip()


def restore_or_give_up(pipeline: str, writer: str) -> str:
    """What an operator can do about files that the log cannot produce again."""
    return (
        "Restore what is missing from a backup and resume, or let it go for good: "
        f"tidemark verify {pipeline} {writer} --let-go"
    )


def mend_output(
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    gate: WriterGate,
    holder: str,
    show: Show,
    clock: Clock = wall_clock,
) -> Resumed:
    """Deliver what is missing, verify, and open the gate.

    A gate that has changed since the caller read it is left as it is. Raises ``NotMended`` where the output
    is still different. ``show`` gets one line per binding delivered, and the result.
    """
    state = positions.load(writer.name)
    if state is None or state.gate != gate:
        return Resumed(state.position if state else -1, 0, state.gate if state else None)
    root = log.folder.root
    extent = _extent(writer, root, gate)
    with holding(take(positions, state, holder, clock)) as hold:
        found = verify_at(writer, log, positions, hold.state, extent)
        written, failure = 0, None
        if bindings := list(_bindings(log, found)):
            written, failure = _redeliver(writer, log, positions, hold, bindings, show, clock)
            reach(FaultPoint.OUTPUT_MENDED)
            found = verify_at(writer, log, positions, hold.state, extent)
        show(f"{found.pipeline}/{found.writer}: {found.summary}")
        if found.is_replaced:
            return _replaced(hold, found, written, clock)
        if not found.is_clean:
            problem = found.differences[0].said
            raise NotMended(found.pipeline, found.writer, failure or problem, found.way)
        entry = AuditEntry("open", holder, f"verified again: {found.summary}", clock())
        hold.change(
            lambda held, lease: positions.commit(
                held, held.position, None, None, lease, positions.audit_row(held, entry)
            )
        )
    reconcile_output(found, positions, root, holder, clock)
    return Resumed(state.position, written, None)


def _extent(writer: Writer, root: str, gate: WriterGate) -> Extent:
    """What to verify: the files that were different when the gate closed, or everything.

    Of files and collections that is what was different, where the record names all of it: a later
    verification of less may have replaced it. A topic is read completely, because the difference may be
    anywhere in it.
    """
    usual = usual_extent(writer, everything=True) or Extent(everything=True)
    record = read(_pipeline_of(writer), root, writer.name, gate.last_id)
    is_known = record is not None and not record.passed and record.names_all_differences
    if record is None or not is_known or not isinstance(writer, FilesWriter | CollectionWriter):
        return usual
    names = frozenset(str(one["where"]) for one in record.found.get("differences", ()))
    return Extent(usual.sample, names=names)


def _pipeline_of(writer: Writer) -> str:
    return str(getattr(writer, "pipeline", ""))


def _bindings(log: PublishedLog, found: OutputVerification) -> Iterator[tuple[Binding, Sequence[LogFile]]]:
    """The bindings to deliver again, oldest first: those of missing files and of missing ends of partitions.

    None where messages are missing between others: a redelivery would not repair that.
    """
    missing = {one.first_id for one in found.of(OutputProblem.MISSING)}
    ends = [one.first_id for one in found.of(OutputProblem.END)]
    wanted = [*missing, *ends]
    if not wanted or found.of(OutputProblem.HOLE):
        return
    for binding, files in log.waiting(min(wanted) - 1):
        if binding.base > found.position:
            return
        if binding.base in missing or (ends and binding.end >= min(ends)):
            yield binding, files


def _redeliver(
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    hold: WriterHold,
    bindings: Sequence[tuple[Binding, Sequence[LogFile]]],
    show: Show,
    clock: Clock,
) -> tuple[int, str | None]:
    """Deliver bindings again. Returns how many messages were written, and the failure that stopped it.

    A failure is not raised: in a binding that was delivered in part, the failed message may be beyond the
    position, where the verification does not need it.
    """
    state = hold.state
    way = restore_or_give_up(state.pipeline, state.name)

    def reload() -> WriterState | None:
        return positions.load(writer.name)

    delivery = Delivery(writer, log, positions, hold, write_parts_here, reload, clock)
    for binding, files in bindings:
        require_history(writer, writer.name, log, binding.base, way)
        if failure := delivery.deliver_again(binding, files):
            return delivery.total.written, failure
        show(f"{state.pipeline}/{state.name}: ids {binding.base} to {binding.end} are delivered again")
    return delivery.total.written, None


def _replaced(hold: WriterHold, found: OutputVerification, written: int, clock: Clock) -> Resumed:
    """Close the gate with the cause ``replaced`` instead of ``verification``."""
    state, reason = hold.state, found.differences[0].said
    place = (state.position, state.position, state.position)
    hold.commit(state.position, {}, WriterGate(Cause.REPLACED, *place, reason, clock()))
    return Resumed(state.position, written, hold.state.gate)
