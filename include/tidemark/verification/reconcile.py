"""reconcile: judges the result of a verification, records it, and closes the writer's gate over a difference.

Nothing is repaired here and no position changes. A gate that a verification closed is opened by a clean
verification of the same entities, or by an operator with a reason.
"""

import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.journal.head import Head
from tidemark.journal_tables.reader import JournalReader, TablesMissing
from tidemark.log.expectations import Suite
from tidemark.log.model.audit_result import CRITICAL, Judgement
from tidemark.log.model.binding import NOTHING_YET
from tidemark.verification.basis import read_basis
from tidemark.verification.errors import VerificationError
from tidemark.verification.expectations import judge_delivered
from tidemark.verification.journal.entities import Case, judge_entities
from tidemark.verification.rebuild import way_out
from tidemark.verification.reconciliation import Reconciliation, is_kept, keep, read, reconciled_before
from tidemark.verification.result import Verification
from tidemark.verification.sample import NEWEST_MESSAGES, verify_sample
from tidemark.verification.selection import Entity
from tidemark.verification.tally import VerdictTally
from tidemark.writers.journal.writer import JournalWriter

Show = Callable[[str], object]
"""Prints a line for the operator."""
POINTERS = "the pointers are where the log says"
ENTITIES_AGAIN = 1_000
"""How many entities are verified before opening a gate that was closed over missing tables or pointers."""


@with_fields
class StillDifferent(VerificationError):
    """The entities over which a verification closed a gate are not proved to be correct."""

    needs_person = True

    pipeline: str
    writer: str
    problem: str
    gap: str = ""

    def __str__(self) -> str:
        return (
            f"{self.pipeline}/{self.writer}: {self.problem} The gate stays closed and nothing was changed. "
            f"{way_out(self.pipeline, self.writer, self.gap)}"
        )


def reconcile(
    writer: JournalWriter,
    positions: Positions,
    root: str,
    found: Verification,
    sample: Sequence[Entity],
    suite: Suite,
    holder: str,
    clock: Clock = wall_clock,
) -> Reconciliation:
    """Judge a verification of a writer's tables and record it; a failed expectation closes the writer's gate.

    Args:
        root: The log's folder, where the record is kept.
        found: The result of the verification.
        sample: The entities that were verified. Their heads are judged by the pipeline's own expectations.
    """
    different = [Entity(one.topic, one.key) for one in found.differences if one.key is not None]
    heads = _heads(writer, dict.fromkeys((*different, *sample)))
    record = Reconciliation(
        found.pipeline,
        found.writer,
        found.position,
        found.summary,
        found.to_dict(),
        tuple(judge_delivered(found, heads, suite)),
    )
    # The gate first: a crash in between leaves a closed gate without a record, which only an operator opens.
    if not record.passed:
        close_gate(positions, record, holder, clock)
    reach(FaultPoint.RECONCILED)
    keep(root, record)
    return record


def reconcile_pointers(
    writer: JournalWriter,
    log: PublishedLog,
    positions: Positions,
    holder: str,
    clock: Clock = wall_clock,
) -> Reconciliation | None:
    """Verify that a journal's tables exist and that all pointers match the log; a difference closes the gate.

    This is the cheapest verification, for a run that delivers nothing. None where nothing is different, or
    where the writer has delivered nothing yet.
    """
    state = positions.load(writer.name)
    if state is None or not state.expects_anything:
        return None
    try:
        case, basis = Case.of(writer, log, positions).begin()
        found = case.conclude(basis, VerdictTally(), time.monotonic())
        if found.is_clean:
            return None
        summary, document = found.summary, found.to_dict()
    except TablesMissing as missing:
        summary = str(missing)
        document = {"total": 1, "differences": [{"topic": None, "key": None, "said": summary}]}
    detail = "; ".join(one["said"] for one in document["differences"]) or summary
    judged = Judgement(POINTERS, "verify", CRITICAL, success=False, detail=detail)
    record = Reconciliation(writer.pipeline, writer.name, state.position, summary, document, (judged,))
    close_gate(positions, record, holder, clock)
    reach(FaultPoint.RECONCILED)
    keep(log.folder.root, record)
    return record


def unreconciled_after(pipeline: str, root: str, writer: str, before: int, position: int) -> int | None:
    """The id after which a writer's deliveries must still be verified; None where all were.

    It is the position ``before`` this delivery, or an earlier one where a previous run crashed between its
    delivery and its reconciliation.
    """
    was_reconciled = before == NOTHING_YET or is_kept(pipeline, root, writer, before)
    if position > before and was_reconciled:
        return before  # the usual case, without listing all records
    kept = reconciled_before(pipeline, root, writer, position)
    if kept is None:
        return before if position > before else None
    if position == NOTHING_YET:
        return None
    return min(before, max(kept, position - NEWEST_MESSAGES))


def close_gate(
    positions: Positions,
    record: Reconciliation,
    holder: str,
    clock: Clock = wall_clock,
    cause: Cause = Cause.VERIFICATION,
) -> None:
    """Close the writer's gate; a gate that is closed already keeps its reason."""
    state = positions.load(record.writer)
    if state is None or state.gate is not None:
        return
    place = (record.position, record.position, record.position)
    gate = WriterGate(cause, *place, record.reason, clock())
    with holding(take(positions, state, holder, clock)) as hold:
        if hold.state.gate is None:
            hold.commit(hold.state.position, {}, gate)


def reopen_gate(
    writer: JournalWriter,
    gate: WriterGate,
    log: PublishedLog,
    positions: Positions,
    holder: str,
    show: Show,
    *,
    clock: Clock = wall_clock,
) -> None:
    """Verify again what closed a gate, and open it where nothing is different any more.

    Raises ``StillDifferent`` where something is, or where the record does not name what was. A gate that has
    changed since the caller read it is left as it is.
    """

    def refuse(problem: str) -> NoReturn:
        basis, _ = read_basis(writer, log, positions)
        raise StillDifferent(writer.pipeline, writer.name, problem, basis.gap)

    record = read(writer.pipeline, log.folder.root, writer.name, gate.last_id)
    state = positions.load(writer.name)
    if state is None or state.gate != gate:
        return
    if record is None:
        refuse(f"there is no record of what closed its gate at id {gate.last_id}.")
    if not record.names_all_differences:
        refuse(
            f"more is different than was told ({record.found['total']} differences), so verify everything: "
            f"tidemark journal verify {writer.pipeline} {writer.name}."
        )
    if not record.found["total"]:
        refuse(f"the pipeline's own expectations were not met ({record.reason.rstrip('.')}).")
    found = _verify_again(writer, log, positions, record.entities)
    show(f"{writer.pipeline}/{writer.name}: {found.summary}")
    if not found.is_clean:
        refuse(f"{found.differences[0]}.")
    with holding(take(positions, state, holder, clock)) as hold:
        entry = AuditEntry("open", holder, f"verified again: {found.summary}", clock())
        hold.change(
            lambda held, lease: positions.commit(
                held, held.position, None, None, lease, positions.audit_row(held, entry)
            )
        )


def _verify_again(
    writer: JournalWriter, log: PublishedLog, positions: Positions, entities: Sequence[Entity]
) -> Verification:
    """Verify these entities and all pointers; a sample of all entities where none is given."""
    if not entities:
        return verify_sample(writer, log, positions, NOTHING_YET, ENTITIES_AGAIN)[0]
    began, tally = time.monotonic(), VerdictTally()
    case, basis = Case.of(writer, log, positions).begin()
    for verdict in judge_entities(basis, case.log, case.tables, entities):
        tally.note(verdict)
    return case.conclude(basis, tally, began)


def _heads(writer: JournalWriter, entities: dict[Entity, None]) -> dict[Entity, Head | None]:
    tables = JournalReader.open(writer.connection, writer.declared)
    found: dict[Entity, Head | None] = {}
    for topic in sorted({entity.topic for entity in entities}):
        keys = [entity.key for entity in entities if entity.topic == topic]
        heads = tables.read_heads(topic, keys)
        found |= {Entity(topic, key): heads.get(key) for key in keys}
    return found
