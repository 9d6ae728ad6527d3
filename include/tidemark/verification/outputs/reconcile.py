"""reconcile of files and topics: verifies, records the result, closes the writer's gate over a difference.

Nothing is repaired here and no position changes: a resume repairs what a redelivery can repair.
"""

from collections.abc import Callable
from itertools import takewhile
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
"""The type of the function that ``Writer.verifier`` names. Its arguments are the writer, the log, the
positions, the writer's state as it was read, and how much to compare."""


def is_output(writer: Writer) -> bool:
    """Whether a writer's output is verified here; a journal is verified by its entities."""
    return writer.verifier is not None


def usual_extent(writer: Writer, after: int | None = None, *, everything: bool = False) -> Extent | None:
    """How much of an output to compare by the pipeline's settings; None for nothing."""
    if not is_output(writer):
        return None
    count = writer.compared_after_delivery
    if not count and not everything:
        return None
    return Extent(count, everything, after)


def files_of_interval(writer: Writer, log: PublishedLog, from_t: int, to_t: int) -> frozenset[str]:
    """The names of the files of an interval's bindings (µs, both ends included); empty for other writers."""
    if not isinstance(writer, FilesWriter):
        return frozenset()
    younger = takewhile(lambda binding: binding.t <= to_t, log.bindings.younger(from_t - 1))
    return frozenset(writer.final(binding) for binding in younger)


def verify_output(
    writer: Writer, log: PublishedLog, positions: Positions, extent: Extent
) -> OutputVerification | None:
    """Verify a writer's output; None where it has delivered nothing yet.

    Raises ``ShapeChanged`` where the writer's settings would produce another output.
    """
    state = positions.load(writer.name)
    if state is None or not state.expects_anything:
        return None
    # Another run may have published and delivered after the log was opened.
    return verify_at(writer, log if state.position <= log.end else log.reopened(), positions, state, extent)


def verify_at(
    writer: Writer, log: PublishedLog, positions: Positions, state: WriterState, extent: Extent
) -> OutputVerification:
    """``verify_output`` with the writer's state as the caller has read it."""
    if writer.verifier is None:
        raise TypeError(f"the output of {writer.name} cannot be compared with the log")
    verify: VerifyOutput = load_attribute(writer.verifier)
    return verify(writer, log, positions, state, extent)


def record_of(found: OutputVerification) -> Reconciliation:
    """The record of a verification."""
    detail = "; ".join(one.said for one in found.differences[:3])
    judged = Judgement(TITLES.get(found.kind, OTHER_TITLE), "verify", CRITICAL, found.is_clean, detail)
    return Reconciliation(
        found.pipeline, found.writer, found.position, found.summary, found.to_dict(), (judged,)
    )


def reconcile_output(
    found: OutputVerification, positions: Positions, root: str, holder: str, clock: Clock = wall_clock
) -> Reconciliation:
    """Record the result of a verification; a difference closes the writer's gate."""
    record = record_of(found)
    # The gate first: after a crash in between, a resume finds no record and compares everything.
    if not record.passed:
        cause = Cause.REPLACED if found.is_replaced else Cause.VERIFICATION
        close_gate(positions, record, holder, clock, cause)
    reach(FaultPoint.RECONCILED)
    keep(root, record)
    return record


def reconcile_now(
    writer: Writer, log: PublishedLog, positions: Positions, extent: Extent, holder: str
) -> dict[str, Any] | None:
    """Verify and reconcile a writer's output after a delivery; the result is the document for task summaries.

    None where the writer has delivered nothing yet.
    """
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
