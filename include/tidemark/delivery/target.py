"""Whether a writer's target is still the one it wrote to, or another one of the same name.

A topic that was deleted and recreated has the same name, but not the messages. Continuing would leave a gap
that no comparison of positions shows. The target's id is therefore part of the writer's state, and another id
stops the writer before anything is sent. A new target is accepted only where nothing is missing in it: where
nothing was delivered yet, or where an operator rewinds into an empty one. Nothing is sent or removed here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tidemark.delivery.delivered_messages import Finished, last_places
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.earlier_pipelines import Earlier, LeftOver
from tidemark.delivery.state.lease import WriterHold
from tidemark.delivery.state.positions import Positions, refuse_other_shape
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.writer import TargetIdentity, TargetMissing, TargetReplaced, Writer
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import BindingsHead, LogControl
from tidemark.log.state.forgotten import forgettings


@with_fields
class LeftByForgotten(DeliveryError):
    """A target holds output of a forgotten pipeline, which would be mistaken for the new pipeline's."""

    needs_person = True

    pipeline: str
    writer: str
    problem: str
    way_out: str

    text = "{pipeline}/{writer}: {problem}. Nothing was written, and it was not registered. {way_out}."


class TargetVerdict(StrEnum):
    """What the target's id means for the writer.

    Attributes:
        SAME: It is the target that the writer wrote to.
        ADOPT: The writer has no target yet, and expects nothing in it.
        DOUBTFUL: An older version wrote to it and stored no id: its contents decide.
        FRESH: Another target, but nothing is expected in it: it has to be empty.
        REPLACED: Another target, which lacks what was delivered.
    """

    SAME = "same"
    ADOPT = "adopt"
    DOUBTFUL = "doubtful"
    FRESH = "fresh"
    REPLACED = "replaced"


def compare(state: WriterState, present: TargetIdentity | None) -> TargetVerdict:
    """Compare the target's present id with the one that the writer wrote to."""
    if present is None or state.target == present.id:
        return TargetVerdict.SAME
    if state.target is None:
        return TargetVerdict.DOUBTFUL if state.expects_anything else TargetVerdict.ADOPT
    return TargetVerdict.REPLACED if state.expects_anything else TargetVerdict.FRESH


@dataclass(frozen=True, slots=True)
class Lacking:
    """A part of a target that lacks messages at its end.

    Attributes:
        part: The part's number.
        last_id: The last id in it; −1 where it is empty.
        expected: The last id that it should have.
    """

    part: int
    last_id: int
    expected: int

    def __str__(self) -> str:
        present = "is empty" if self.last_id == NOTHING_YET else f"ends at id {self.last_id}"
        return f"partition {self.part} {present} and should be at id {self.expected} at least"


def lacking(reached: Mapping[int, int], expected: Mapping[int, int]) -> list[Lacking]:
    """The parts whose last id is below the expected one; parts with unknown contents are left out."""
    return [
        Lacking(part, reached[part], id_)
        for part, id_ in sorted(expected.items())
        if part in reached and reached[part] < id_
    ]


def gaps_of(
    reached: Mapping[int, int], expected: Mapping[int, int], since: int | None, has_finished: bool
) -> list[Lacking]:
    """The parts that certainly lack messages.

    ``since`` is the first id that the target should have; None where an older version did not store it. In
    that case an empty part may be correct, unless all parts are empty and the writer ``has_finished``
    messages.
    """
    found = lacking(reached, expected)
    if since is not None:
        return [gap for gap in found if gap.expected >= since]
    if all(last_id == NOTHING_YET for last_id in reached.values()):
        return found if has_finished else []
    return [gap for gap in found if gap.last_id > NOTHING_YET]


def prepare_target(
    writer: Writer, hold: WriterHold, positions: Positions, log: PublishedLog, acknowledged: Collection[int]
) -> Writer:
    """Check the target's identity and shape, and make it ready; returns the writer bound to that target."""
    bound = admit_target(writer, hold, positions, log, acknowledged)
    refuse_other_shape(hold.state, bound.shape)
    bound.prepare()
    return bound


def admit_target(
    writer: Writer, hold: WriterHold, positions: Positions, log: PublishedLog, acknowledged: Collection[int]
) -> Writer:
    """The writer bound to its present target; raises ``TargetReplaced`` where that is another one."""
    present = _present(writer, hold.state)
    if present is None:
        return writer
    bound, state = writer.bound_to(present), hold.state
    adopted = with_target(state, bound, present)  # raises where a setting of the output has changed
    verdict = compare(state, present)
    if verdict is TargetVerdict.SAME:
        return bound
    if verdict is TargetVerdict.REPLACED or (verdict is TargetVerdict.FRESH and has_any(bound)):
        raise replaced(state, present)
    if verdict is TargetVerdict.DOUBTFUL:
        has_finished = bool(positions.namespaces(state.name))
        _refuse_gaps(bound, state, present, Finished(log, acknowledged), has_finished)
    hold.change(lambda held, lease: positions.adopt(held, adopted.target, adopted.shape, lease))
    reach(FaultPoint.TARGET_ADOPTED)
    return bound


def _present(writer: Writer, state: WriterState) -> TargetIdentity | None:
    try:
        return writer.identify()
    except TargetMissing:
        if state.expects_anything:
            raise
    writer.create_target()
    return writer.identify()


def refuse_left_over(
    writer: Writer, present: TargetIdentity | None, positions: Positions, log: LogControl
) -> None:
    """Refuse to register a writer whose target has output of a forgotten pipeline of the same name."""
    forgotten = forgettings(log)
    head = log.bindings_head() if forgotten else BindingsHead()
    earlier = Earlier.of(forgotten, positions.deeds(writer.name), head)
    found = _sent_by(earlier, writer, present) if present else writer.refuses_left_over(earlier)
    if found:
        raise LeftByForgotten(positions.pipeline, writer.name, found.problem, found.way_out)


def _sent_by(earlier: Earlier, writer: Writer, present: TargetIdentity) -> LeftOver | None:
    """Messages of an earlier pipeline in a target that has an id and skips ids up to the last one."""
    reached = writer.reached() if earlier.had_writer else {}
    for part, last_id in reached.items():
        if last_id > NOTHING_YET:
            problem = (
                f"{present.what} has messages of an earlier pipeline of this name, which was forgotten "
                f"(partition {part} is at id {last_id}). Ids have begun anew since, so everything up to "
                "there would be taken for sent"
            )
            return LeftOver(
                problem, f"Make the {present.what} anew, or give the writer another topic or name"
            )
    return None


def has_any(writer: Writer) -> bool:
    """Whether the target has messages of this writer already."""
    return any(last_id > NOTHING_YET for last_id in writer.reached().values())


def with_target(state: WriterState, bound: Writer, present: TargetIdentity) -> WriterState:
    """The state of a writer that continues with another target. Its shape may differ only in the target's own
    settings."""
    own = {key: state.shape[key] for key in present.shape if key in state.shape}
    refuse_other_shape(state, {**bound.shape, **own})
    return state.on_target(present.id, bound.shape)


def replaced(state: WriterState, present: TargetIdentity) -> TargetReplaced:
    """The error for a target that was replaced."""
    pairs = [(key, state.shape.get(key), now) for key, now in present.shape.items()]
    changed = [f"{now} {key} instead of {was}" for key, was, now in pairs if was not in (None, now)]
    known = f"the one it wrote to had id {state.target}, this one has id {present.id}"
    return TargetReplaced(
        state.pipeline,
        state.name,
        present.what,
        state.target,
        present.id,
        f"it was deleted and made again ({', '.join([known, *changed])}), so what was delivered up to id "
        f"{state.position} is not in it",
    )


def _refuse_gaps(
    bound: Writer, state: WriterState, present: TargetIdentity, finished: Finished, has_finished: bool
) -> None:
    """Refuse a target that lacks what was delivered, where the id of the one written to is unknown."""
    placing = bound.placing()
    if placing is None:
        return
    reached = bound.reached()
    expected = last_places(finished, placing, len(reached), state.position)
    if gaps := gaps_of(reached, expected, state.since, has_finished):
        raise TargetReplaced(
            state.pipeline,
            state.name,
            present.what,
            None,
            present.id,
            f"an older version kept no id of what it wrote to, and this one (id {present.id}) does not have "
            f"what was delivered up to id {state.position}: {gaps[0]}",
        )
