"""What redelivery can mend of an output over which a verification closed the gate.

A file that is missing is made again from the log, with the same bytes; messages that are missing at the end
of a partition are sent again. Afterwards everything is looked at once more, and the gate opens only where
nothing is different any more. Nothing is overwritten, no position moves, and what the log has not whole any
more is never delivered in part.
"""

from collections.abc import Callable, Iterator, Sequence

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
from tidemark.verification.reconciliation import read
from tidemark.writers.files.writer import FilesWriter

Show = Callable[[str], object]


@with_fields
class NotMended(VerificationError):
    """An output is still different, and redelivering does not mend that."""

    needs_person = True

    pipeline: str
    writer: str
    problem: str
    way: str

    def __str__(self) -> str:
        problem = self.problem.rstrip(".")
        return f"{self.pipeline}/{self.writer}: {problem}. The gate stays closed. {self.way}".rstrip()


def restore_or_give_up(pipeline: str, writer: str) -> str:
    """What is left to do about files that the log cannot make again."""
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
    """Deliver again what is missing, verify, and open the gate."""
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
        deed = AuditEntry("open", holder, f"verified again: {found.summary}", clock())
        hold.change(
            lambda held, lease: positions.commit(
                held, held.position, None, None, lease, positions.audit_row(held, deed)
            )
        )
    reconcile_output(found, positions, root, holder, clock)
    return Resumed(state.position, written, None)


def _extent(writer: Writer, root: str, gate: WriterGate) -> Extent:
    """What is looked at: the files that were different when the gate closed, or everything.

    A topic is read whole: what closed the gate may lie anywhere in it. So is a folder where the record of the
    position does not say what closed it; a later, narrower look may have taken its place.
    """
    usual = usual_extent(writer, everything=True) or Extent(everything=True)
    record = read(_pipeline_of(writer), root, writer.name, gate.last_id)
    is_known = record is not None and not record.passed and record.is_told_whole
    if record is None or not is_known or not isinstance(writer, FilesWriter):
        return usual
    names = frozenset(str(one["where"]) for one in record.found.get("differences", ()))
    return Extent(usual.sample, names=names)


def _pipeline_of(writer: Writer) -> str:
    return str(getattr(writer, "pipeline", ""))


def _bindings(log: PublishedLog, found: OutputVerification) -> Iterator[tuple[Binding, Sequence[LogFile]]]:
    """The bindings to deliver again, oldest first: those of missing files, and what partitions end before."""
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
    """Write bindings again: how many messages were really written, and what went wrong.

    That is not the end: in a binding that the writer is in the middle of, it may lie beyond the position.
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
    """The target is another one: that is another reason to be closed."""
    state, reason = hold.state, found.differences[0].said
    place = (state.position, state.position, state.position)
    hold.commit(state.position, {}, WriterGate(Cause.REPLACED, *place, reason, clock()))
    return Resumed(state.position, written, hold.state.gate)
