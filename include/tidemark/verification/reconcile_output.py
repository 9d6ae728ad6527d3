"""reconcile of files and topics: verify, keep what was found, close the writer's gate over a difference.

Nothing is repaired here and no position moves: what redelivery can mend is mended by a resume.
"""

from collections.abc import Callable
from typing import Any

from tidemark.consensus.lease import Clock, wall_clock
from tidemark.consensus.lightweight import FAILURES
from tidemark.delivery.lease import LeaseHeld
from tidemark.delivery.positions import Positions, ShapeChanged
from tidemark.delivery.published import LogUnreadable, PublishedLog
from tidemark.delivery.writer import Writer
from tidemark.delivery.writer_state import Cause, WriterState
from tidemark.errors import TidemarkError
from tidemark.faults import FaultPoint, reach
from tidemark.log.audit_record import CRITICAL, Judgement
from tidemark.log.errors import LogError
from tidemark.verification.files import verify_files
from tidemark.verification.outputs import Extent, OutputVerification
from tidemark.verification.reconcile import close_gate, reconcile_pointers
from tidemark.verification.reconciliation import Reconciliation, keep
from tidemark.verification.topics import verify_topic
from tidemark.writers.files import FilesWriter
from tidemark.writers.journal import JournalWriter
from tidemark.writers.kafka import KafkaWriter
from tidemark.writers.opened import OpenPipeline

OutputWriter = FilesWriter | KafkaWriter
TITLES = {"files": "the files are what was made", "kafka": "the topic has what the log says"}


def is_output(writer: Writer) -> bool:
    """Whether a writer's output is judged here; a journal's is judged by its entities."""
    return isinstance(writer, OutputWriter)


def usual_extent(writer: Writer, after: int | None = None, *, everything: bool = False) -> Extent | None:
    """How much the pipeline's file wants to be looked at; None where nothing is to be."""
    if not isinstance(writer, OutputWriter):
        return None
    count = writer.declared.reconcile
    if not count and not everything:
        return None
    return Extent(count, everything, after)


def files_of_interval(writer: Writer, log: PublishedLog, from_t: int, to_t: int) -> frozenset[str]:
    """The files of the bindings of an interval, for a files writer."""
    if not isinstance(writer, FilesWriter):
        return frozenset()
    younger = log.control.bindings_younger(from_t - 1)
    return frozenset(writer.final(binding) for binding in younger if binding.t <= to_t)


def verify_output(
    writer: Writer, log: PublishedLog, positions: Positions, extent: Extent
) -> OutputVerification | None:
    """What is to be said of a writer's output; None of one that is to hold nothing yet.

    ``ShapeChanged`` where the writer's settings would make another output: nothing can be said of this one.
    """
    state = positions.load(writer.name)
    if state is None or not state.expects_anything:
        return None
    # What was published after the log was opened may be delivered already.
    return verify_at(writer, log if state.position <= log.end else log.reopened(), positions, state, extent)


def verify_at(
    writer: Writer, log: PublishedLog, positions: Positions, state: WriterState, extent: Extent
) -> OutputVerification:
    """The same, with the writer's state as it was seen."""
    if isinstance(writer, FilesWriter):
        return verify_files(writer, log, positions, state, extent)
    if isinstance(writer, KafkaWriter):
        return verify_topic(writer, log, positions, state, extent)
    raise TypeError(f"{writer.name} is neither a files nor a kafka writer")


def record_of(found: OutputVerification) -> Reconciliation:
    """What is kept of a verification."""
    detail = "; ".join(one.said for one in found.differences[:3])
    judged = Judgement(TITLES[found.kind], "verify", CRITICAL, found.is_clean, detail)
    return Reconciliation(
        found.pipeline, found.writer, found.position, found.summary, found.to_dict(), (judged,)
    )


def reconcile_output(
    found: OutputVerification, positions: Positions, root: str, holder: str, clock: Clock = wall_clock
) -> Reconciliation:
    """Keep what was found of an output; a difference closes the gate."""
    record = record_of(found)
    # A process that dies in between leaves a closed gate without its record: a resume looks at everything.
    if not record.passed:
        cause = Cause.REPLACED if found.is_replaced else Cause.VERIFICATION
        close_gate(positions, record, holder, clock, cause)
    reach(FaultPoint.RECONCILED)
    keep(root, record)
    return record


def reconcile_now(
    writer: Writer, log: PublishedLog, positions: Positions, extent: Extent, holder: str
) -> dict[str, Any] | None:
    """Verify a writer's output after a delivery; in the form of summaries."""
    found = verify_output(writer, log, positions, extent)
    if found is None:
        return None
    record = reconcile_output(found, positions, log.folder.root, holder)
    return {
        "position": record.position,
        "passed": record.passed,
        "summary": record.summary,
        "looked_at": dict(found.looked_at),
        "different": len(found.differences),
        "not_provable": sum(found.not_provable.values()),
        "seconds": round(found.seconds, 3),
    }


def reconcile_idle(opened: OpenPipeline, holder: str, show: Callable[[str], object]) -> list[str]:
    """The cheapest look at every target, for a run that delivers nothing; what is different.

    Contents were drawn by the delivery that came to this position, so only names, sizes, last ids and
    pointers are compared. What cannot be looked at just now is shown, and is for the next delivery to fail
    at. Settings that would make another output count as a difference, and close no gate: a person decides
    which ones hold.
    """
    positions, different, stopped = opened.positions, list[str](), opened.stopped()
    names = [one.name for one in opened.pipeline.writers if one.name not in stopped and one.reconcile]
    writers = [one for one in map(opened.writer, names) if _expects(positions, one)]
    if not writers:
        return []
    with opened.log.held(holder) as log:
        for writer in writers:
            try:
                if record := _look(writer, log, positions, holder, show):
                    different.append(f"{opened.pipeline.name}/{writer.name}: {record.reason}")
            except LogUnreadable:
                raise
            except LeaseHeld as held:
                show(f"not reconciled: {held}")
            except ShapeChanged as changed:
                different.append(str(changed))
            except (TidemarkError, LogError, *FAILURES) as error:
                show(f"{opened.pipeline.name}/{writer.name}: not looked at: {error}")
    return different


def _look(
    writer: Writer, log: PublishedLog, positions: Positions, holder: str, show: Callable[[str], object]
) -> Reconciliation | None:
    """What is different; None where nothing is."""
    if isinstance(writer, JournalWriter):
        return reconcile_pointers(writer, log, positions, holder)
    found = verify_output(writer, log, positions, Extent(0 if isinstance(writer, FilesWriter) else 1))
    if found is None:
        return None
    show(f"{found.pipeline}/{found.writer}: {found.summary}")
    return None if found.is_clean else reconcile_output(found, positions, log.folder.root, holder)


def _expects(positions: Positions, writer: Writer) -> bool:
    state = positions.load(writer.name)
    return state is not None and state.expects_anything
