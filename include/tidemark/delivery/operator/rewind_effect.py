"""The effect of a rewind on a writer's target.

Ids at or below the last one of a part of the target are not written again, so moving the position back may
send nothing at all. The plan says so before it is executed. A rewind also accepts a recreated target, but
only an empty one: messages below an id that it already has could never be sent.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidemark.delivery.delivered_messages import Finished
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.writer_state import Cause, WriterState
from tidemark.delivery.target import TargetVerdict, compare, with_target
from tidemark.delivery.writer import TargetIdentity, TargetMissing, Writer
from tidemark.log.model.binding import NOTHING_YET

MOST_COUNTED = 1_000_000
"""The most ids over which messages that the target has are counted; beyond that only its last ids are
shown."""


class NotEmpty(Exception):
    """A recreated target already has messages of this writer."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the next delivery after a rewind will do.

    Attributes:
        state: The writer's state after the rewind, except for its position.
        lines: The effect, for output.
        details: The effect, for ``--json``.
        identity: The target that was inspected; None where it has no id or does not exist.
        reached: The last id of each of its parts.
        opens: Whether the gate opens, because the rewind removes what closed it.
    """

    state: WriterState
    lines: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    identity: TargetIdentity | None = None
    reached: Mapping[int, int] = field(default_factory=dict)
    opens: bool = False


def look_ahead(
    writer: Writer | None,
    state: WriterState,
    position: int,
    log: PublishedLog,
    acknowledged: Collection[int],
) -> Outlook:
    """The effect of a rewind to a position; raises ``NotEmpty`` where messages could never be sent."""
    back = replace(state, since=_since(state, position))
    try:
        present = writer.identify() if writer else None
    except TargetMissing as missing:
        return Outlook(back, (f"the target is not there now: {missing}",))
    if writer is None:
        return Outlook(back)
    bound = writer.bound_to(present) if present else writer
    reached = bound.reached()
    filled = {part: last_id for part, last_id in reached.items() if last_id > NOTHING_YET}
    # Messages below an id that the target has are not sent, so ``since`` stays as it was.
    same = state if filled else back
    if present is None:
        kept = writer.keeps(position + 1, state.position)
        return Outlook(same, (kept,) if kept else ())
    is_other = compare(state, present) in (TargetVerdict.REPLACED, TargetVerdict.FRESH)
    if not is_other and state.target is None and state.gate and state.gate.cause is Cause.REPLACED:
        is_other = True  # the old id is unknown, but the contents have shown that it is another target
    if not is_other:
        counted, details = _counted(bound, state, position, reached, Finished(log, acknowledged), present)
        return Outlook(same, counted, details, present, reached)
    if filled:
        part, last_id = next(iter(filled.items()))
        raise NotEmpty(
            f"{present.what} was made again (id {present.id}), but has messages of this writer already: "
            f"partition {part} is at id {last_id}, and what lies below could never be sent. Delete it, make "
            "it again, and rewind then."
        )
    taken = replace(with_target(back, bound, present), since=position + 1)
    opens = state.gate is not None and state.gate.cause in (Cause.REPLACED, Cause.VERIFICATION)
    lines = [
        f"{present.what} was made again and is empty: the writer goes on with this one (id {present.id})",
        f"everything after id {position} is sent to it",
        *([f"what the old one had up to id {position} is not asked for in it"] if position >= 0 else []),
        *(["the gate opens"] if opens else []),
    ]
    details = {"target": present.id, "skipped": 0}
    return Outlook(taken, tuple(lines), details, present, reached, opens)


def _since(state: WriterState, position: int) -> int | None:
    """The first id that the target should have after the rewind; None where that is unknown."""
    if state.since is None:
        return 0 if position == NOTHING_YET else None
    return min(state.since, position + 1)


def _counted(
    bound: Writer,
    state: WriterState,
    position: int,
    reached: Mapping[int, int],
    finished: Finished,
    present: TargetIdentity,
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """How many messages are sent, and how many are skipped because the target has them: lines and details."""
    placing = bound.placing()
    if placing is None or not reached:
        return (), {}
    ends = ", ".join(f"partition {part} up to id {id_}" for part, id_ in sorted(reached.items()) if id_ >= 0)
    if state.position - position > MOST_COUNTED:
        return (f"of them, what {present.what} is past is not sent again: {ends or 'nothing'}",), {}
    skipped = sent = 0
    for batch in finished.messages(position + 1, state.position):
        for message in batch.to_pylist():
            place = placing(message)
            if place is not None and message["id"] <= reached.get(place, NOTHING_YET):
                skipped += 1
            elif place is not None:
                sent += 1
    lines = [f"{sent} messages are sent to {present.what}"]
    if skipped:
        lines.append(f"{skipped} are not, because it is past them already: {ends}")
    return tuple(lines), {"to_send": sent, "skipped": skipped}


def is_as_planned(writer: Writer | None, outlook: Outlook) -> bool:
    """Whether the target is still as the plan saw it."""
    if writer is None or outlook.identity is None:
        return True
    try:
        present = writer.identify()
    except TargetMissing:
        return False
    return present == outlook.identity and writer.bound_to(present).reached() == outlook.reached
