"""Rewind a writer: move its position back, so that later messages are delivered again."""

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.compacted_history import require_history
from tidemark.delivery.operator.action_plan import (
    ActionPlan,
    ChangedMeanwhile,
    commit_as_seen,
    load_free,
    plan_for,
    refusal,
)
from tidemark.delivery.operator.rewind_effect import NotEmpty, is_as_planned, look_ahead
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind
from tidemark.delivery.writer import Writer
from tidemark.faults import FaultPoint, reach
from tidemark.log.state.registered_writers import Enrolled, enrol

REBUILD = (
    "Go back to an id from there on; for a journal, rebuild with a new writer, an empty keyspace and "
    "`start: earliest`."
)


def plan_rewind(
    positions: Positions,
    log: PublishedLog,
    name: str,
    position: int,
    writer: Writer | None = None,
    clock: Clock = wall_clock,
    holder: str = "",
) -> ActionPlan:
    """Move the position back to ``position``; the next run delivers everything after it again.

    Without ``writer``, for one that is in no file any more, a rewind into the compacted part is refused.
    """
    state = load_free(positions, name, clock(), holder)
    first = state.first_position
    if not first <= position < state.position:
        goes = f"a rewind goes to an id from {first} to {state.position - 1}."
        raise refusal(state, f"it is at {state.position}, so {goes}")
    binding = next((binding for binding, _ in log.waiting(position)), None)
    if binding:  # bindings are delivered whole
        require_history(writer, name, log, binding.base, REBUILD)
    acknowledged = positions.acknowledged(name)
    try:
        outlook = look_ahead(writer, state, position, log, acknowledged)
    except NotEmpty as problem:
        raise refusal(state, str(problem)) from None
    gate = None if outlook.opens else state.gate

    def execute(deed: AuditEntry) -> None:
        if not is_as_planned(writer, outlook):
            raise ChangedMeanwhile(state.pipeline, state.name)
        # Enrolled with the log first, so that no compaction removes what is to be delivered again.
        enrol(log.control, Enrolled(name, state.version, position), clock(), "a rewind is refused")
        reach(FaultPoint.REWIND_ANNOUNCED)
        moved, unfinished = _namespaces_at(positions, log, name, position)
        entry = OffsetEntry(OffsetEntryKind.REWIND, position, deed.at, deed.who, deed.reason, moved)
        commit_as_seen(positions, outlook.state, position, entry, gate, deed, unfinished)
        reach(FaultPoint.REWIND_COMMITTED)

    again = state.position - position
    lines = [
        f"position {state.position} → {position}",
        f"{again} ids are delivered again by the next run",
    ]
    passed = sorted(id_ for id_ in acknowledged if id_ > position)
    if passed:
        lines.append(f"{len(passed)} of them, from id {passed[0]} on, were acknowledged: never written")
    details = {"position": position, "again": again, **outlook.details}
    return plan_for("rewind", state, [*lines, *outlook.lines], details, execute)


def _namespaces_at(
    positions: Positions, log: PublishedLog, name: str, position: int
) -> tuple[dict[str, int], list[str]]:
    """The last finished id of every namespace that goes back, and the namespaces that have none any more."""
    going_back = [space for space, id_ in positions.namespaces(name).items() if id_ > position]
    reached = log.last_ids(log.manifest.files_between(0, position), position)
    moved = {space: reached[space] for space in going_back if space in reached}
    return moved, [space for space in going_back if space not in reached]
