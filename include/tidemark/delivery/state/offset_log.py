"""Compaction of offset logs: entries that newer ones made obsolete are removed in conditional transactions.

Positions, gates and leases are not changed, and are compared before and after. No lease is needed: where a
holder commits at the same time, one of both is outpaced, reads again and retries. What this refuses to do:
compact a log whose newest entry differs from the writer's position.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.objects import Consensus, ObjectKind, RowRange
from tidemark.consensus.update import Patience, retry_outpaced
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.resume import NotRegistered
from tidemark.delivery.state.offset_log_plan import OffsetPlan, plan_offsets
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Newest, WriterStanding
from tidemark.errors import TidemarkError, with_fields
from tidemark.faults import FaultPoint, reach

MOST_RANGES = 100
"""The most ranges of one transaction. A log with more rewinds takes several."""
ATTEMPTS = 50
"""Retries of one transaction. A holder commits about once a second and an attempt takes milliseconds, so even
a second one is rare."""


@with_fields
class WriterBusy(DeliveryError):
    """Every attempt was outpaced by another commit.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
    """

    pipeline: str
    writer: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}/{self.writer}: it was changed {ATTEMPTS} times while its offset log was to "
            "be compacted. No position was touched; what is left is removed by the next compaction."
        )


@with_fields
class OffsetLogWrong(DeliveryError):
    """An offset log contradicts the state of its writer.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        problem: The contradiction, as a sentence.
    """

    needs_person = True

    pipeline: str
    writer: str
    problem: str

    text = (
        "{pipeline}/{writer}: {problem} Nothing more is removed. Look at it before anything else is done to "
        "this writer: tidemark offsets list {pipeline} {writer}"
    )


@with_fields
class OffsetsNotCompacted(DeliveryError):
    """Some offset logs could not be compacted; the others were."""

    failures: Sequence[str]

    def __str__(self) -> str:
        return " ".join(self.failures)


@dataclass(frozen=True, slots=True)
class OffsetLogOutcome:
    """The outcome of compacting one writer's offset log, or of planning it.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        plan: The plan; None where planning failed.
        executed: Whether the plan was carried out.
        failure: Why it was not.
    """

    pipeline: str
    writer: str
    plan: OffsetPlan | None
    executed: bool
    failure: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The form of summaries and of ``--json``."""
        names = {"pipeline": self.pipeline, "writer": self.writer}
        planned = self.plan.to_dict() if self.plan else {}
        return {**names, **planned, "executed": self.executed, "failure": self.failure}

    @property
    def line(self) -> str:
        """One line for people."""
        name = f"{self.pipeline}/{self.writer}"
        if self.plan is None or self.failure:
            return self.failure or name
        plan = self.plan
        rewinds = f", {plan.rewinds} of them rewinds" if plan.rewinds else ""
        if not plan.ranges:
            return f"{name}: nothing to remove; entries: {plan.rows_after:,}{rewinds}"
        return (
            f"{name}: entries {plan.rows_before:,} → {plan.rows_after:,}{rewinds}; "
            f"bytes {plan.bytes_before:,} → {plan.bytes_after:,}"
        )


def find_writers(consensus: Consensus, pipeline: str | None = None) -> Iterator[tuple[str, str]]:
    """Every registered consumer as (pipeline, name), including those that no file declares any more. Those
    that have ended keep their log as it is."""
    for its_pipeline, _, writer in sorted(name.partition("/") for name in consensus.names(ObjectKind.WRITER)):
        if pipeline in (None, its_pipeline):
            state = Positions(consensus, its_pipeline).load(writer)
            if state is not None and state.ended is None:
                yield its_pipeline, writer


def choose_writers(
    consensus: Consensus, pipeline: str | None, writer: str | None = None
) -> list[tuple[str, str]]:
    """The registered writers to compact: one, all of a pipeline, or all; raises ``NotRegistered`` for
    none."""
    found = list(find_writers(consensus, pipeline))
    if writer is None:
        return found
    if (pipeline or "", writer) not in found:
        raise NotRegistered(pipeline or "", writer, [name for _, name in found])
    return [(pipeline or "", writer)]


def compact_offsets(
    consensus: Consensus,
    writers: Iterable[tuple[str, str]],
    *,
    execute: bool = False,
    deed: AuditEntry | None = None,
) -> list[OffsetLogOutcome]:
    """Plan the compaction of each writer's offset log, and carry it out where ``execute``.

    A failure is part of that writer's outcome, and the others continue. ``deed`` is the audit entry of an
    operator; None for a run.
    """
    outcomes = []
    for pipeline, writer in writers:
        try:
            plan = plan_writer(Positions(consensus, pipeline), writer)
        except TidemarkError as error:
            outcomes.append(OffsetLogOutcome(pipeline, writer, None, executed=False, failure=str(error)))
            continue
        outcomes.append(carry_out(consensus, plan, execute=execute, deed=deed))
    return outcomes


def carry_out(
    consensus: Consensus, plan: OffsetPlan, *, execute: bool = False, deed: AuditEntry | None = None
) -> OffsetLogOutcome:
    """Carry a plan out, where ``execute`` and there is something to remove."""
    if not execute or not plan.ranges:
        return OffsetLogOutcome(plan.pipeline, plan.writer, plan, executed=False)
    try:
        compact_writer(Positions(consensus, plan.pipeline), plan, deed)
    except TidemarkError as error:
        return OffsetLogOutcome(plan.pipeline, plan.writer, plan, executed=False, failure=str(error))
    return OffsetLogOutcome(plan.pipeline, plan.writer, plan, executed=True)


def plan_writer(positions: Positions, writer: str) -> OffsetPlan:
    """The plan of compacting a writer's offset log. Read-only."""
    plan = plan_offsets(positions.pipeline, writer, positions.offset_rows(writer))
    _refuse_other_end(positions.newest(writer))
    return plan


def compact_writer(positions: Positions, plan: OffsetPlan, deed: AuditEntry | None = None) -> None:
    """Remove the ranges of a plan. Idempotent; does nothing where the writer was forgotten meanwhile."""
    for start in range(0, len(plan.ranges), MOST_RANGES):
        # The audit entry is committed with the first removal.
        _remove(positions, plan, plan.ranges[start : start + MOST_RANGES], None if start else deed)
        reach(FaultPoint.OFFSETS_COMPACTED)
    verify_writer(positions, plan)


def _remove(
    positions: Positions, plan: OffsetPlan, ranges: Sequence[RowRange], deed: AuditEntry | None
) -> None:
    def attempt(before: WriterStanding | None) -> None:
        if before is None or not any(positions.holds(plan.writer, rows) for rows in ranges):
            return
        reach(FaultPoint.OFFSETS_PLANNED)
        version = positions.compact(before.state, ranges, deed)
        _prove(before, positions.standing(plan.writer), version)

    patience = Patience(ATTEMPTS, lambda: WriterBusy(plan.pipeline, plan.writer))
    retry_outpaced(lambda: positions.standing(plan.writer), attempt, patience=patience)


def _prove(before: WriterStanding, after: WriterStanding | None, version: int) -> None:
    """Raise ``OffsetLogWrong`` where anything but the offset log has changed.

    Where another process has committed since, there is nothing to compare.
    """
    if after is None or after.state.version != version:
        return
    if changed := before.differences(after):
        state = before.state
        raise OffsetLogWrong(state.pipeline, state.name, f"compacting has changed its {', '.join(changed)}.")


def verify_writer(positions: Positions, plan: OffsetPlan) -> None:
    """Raise ``OffsetLogWrong`` where entries of the plan are still there, or others are missing."""
    newest = positions.newest(plan.writer)
    if newest is None:
        if plan.kept and positions.load(plan.writer):
            raise OffsetLogWrong(plan.pipeline, plan.writer, "its offset log is gone.")
        return
    # The newest entry of the plan may be removed once there is a newer one; a rewind never.
    stays = plan.kept[1:] if newest.row not in plan.kept else plan.kept
    if missing := positions.missing_entries(plan.writer, stays):
        raise OffsetLogWrong(plan.pipeline, plan.writer, f"entries that stay are gone: {missing}.")
    if left := [rows for rows in plan.ranges if positions.holds(plan.writer, rows)]:
        raise OffsetLogWrong(plan.pipeline, plan.writer, f"entries that go are still there: {left}.")
    _refuse_other_end(newest)


def _refuse_other_end(newest: Newest | None) -> None:
    """Raise ``OffsetLogWrong`` where the newest entry differs from the writer's position."""
    if newest and newest.entry.position != newest.state.position:
        logged, state = newest.entry.position, newest.state
        problem = f"it is at {state.position}, and the newest entry of its offset log says {logged}."
        raise OffsetLogWrong(state.pipeline, state.name, problem)
