"""reconcile of files and topics: verify, keep what was found, close the writer's gate over a difference.

Nothing is repaired here and no position moves: what redelivery can mend is mended by a resume.
"""

from collections.abc import Callable
from typing import Any

from tidemark.clock import Clock, wall_clock
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterState
from tidemark.delivery.writer import Writer
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.audit_result import CRITICAL, Judgement
from tidemark.pipeline.extensions import load_attribute
from tidemark.verification.outputs.found import Extent, OutputVerification
from tidemark.verification.reconcile import close_gate
from tidemark.verification.reconciliation import Reconciliation, keep
from tidemark.writers.files.writer import FilesWriter

TITLES = {"files": "the files are what was made", "kafka": "the topic has what the log says"}
OTHER_TITLE = "the output has what the log says"

VerifyOutput = Callable[[Any, PublishedLog, Positions, WriterState, Extent], OutputVerification]
"""What ``Writer.verifier`` names. It takes the writer, the log, the positions, the writer's state as it was
seen, and how much to compare."""


def is_output(writer: Writer) -> bool:
    """Whether a writer's output is judged here; a journal's is judged by its entities."""
    return writer.verifier is not None


def usual_extent(writer: Writer, after: int | None = None, *, everything: bool = False) -> Extent | None:
    """How much the pipeline's file wants to be looked at; None where nothing is to be."""
    if not is_output(writer):
        return None
    count = writer.compared_after_delivery
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
    if writer.verifier is None:
        raise TypeError(f"the output of {writer.name} cannot be compared with the log")
    verify: VerifyOutput = load_attribute(writer.verifier)
    return verify(writer, log, positions, state, extent)


def record_of(found: OutputVerification) -> Reconciliation:
    """What is kept of a verification."""
    detail = "; ".join(one.said for one in found.differences[:3])
    judged = Judgement(TITLES.get(found.kind, OTHER_TITLE), "verify", CRITICAL, found.is_clean, detail)
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
