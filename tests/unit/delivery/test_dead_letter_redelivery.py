"""Item 20: which dead letters may be put through at all, whatever the kind of writer."""

from dataclasses import dataclass, field, replace

import pytest
from tests.support.memory_letters import NoLetterTable
from tests.support.memory_writers import Stream
from tests.support.pipeline_world import PipelineWorld, given_stopped_at

from tidemark.delivery.dead_letters.listing import Fate, LetterBox, ListedLetter, NoSuchLetter
from tidemark.delivery.dead_letters.redelivery import REDELIVERING, NotRedelivered, Redelivery
from tidemark.delivery.operator.action_plan import ActionPlan, NotPossible
from tidemark.delivery.state.handed_back import TablesHandedBack
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.state.positions import ShapeChanged
from tidemark.delivery.state.writer_state import Cause, HandedBack, WriterGate
from tidemark.delivery.writer import TargetIdentity, TargetReplaced

pytestmark = pytest.mark.unit


@dataclass
class Late(Stream):
    """Takes what comes late, and says what it was asked."""

    late: list[int] = field(default_factory=list)
    marks: list[dict[str, int]] = field(default_factory=list)
    followers: list[int] = field(default_factory=list)
    is_whole: bool = True
    identity: TargetIdentity | None = None

    def identify(self):
        return self.identity

    def refuses_redelivery(self, message, later):
        self.is_whole = later.is_whole
        self.followers = [id_ for batch in later.batches() for id_ in batch["id"].to_pylist()]
        return None

    def mark_redelivery(self, message):
        return {"attempt": len(self.marks)}

    def redeliver(self, message, mark, lease):
        self.marks.append(dict(mark))
        if self.broken:
            raise ConnectionError(self.broken.pop(0))
        self.late.append(message["id"])


def letter(house: PipelineWorld, writer: Stream, id_: int) -> ListedLetter:
    return LetterBox(house.positions, house.letters, NoLetterTable()).letter(writer.name, id_)


def plan(house: PipelineWorld, writer: Stream, id_: int) -> ActionPlan:
    return Redelivery(house.positions, house.log, house.clock).plan(writer, letter(house, writer, id_))


def given_letter(house: PipelineWorld, writer: Stream) -> Stream:
    """Ids 0 to 8, of which 2 was let pass."""
    given_stopped_at(house, 2, writer)
    house.acknowledge(writer, 2)
    writer.bad = set()
    house.resume(writer)
    house.deliver(writer)
    return writer


def test_a_letter_is_put_through(house):
    writer = given_letter(house, Late())
    plan(house, writer, 2).execute(house.deed("redeliver"))
    assert (writer.late, letter(house, writer, 2).fate) == ([2], Fate.REDELIVERED)
    assert (house.position(writer), house.gate(writer), house.state(writer).lease) == (8, None, None)


def test_a_plan_changes_nothing(house):
    writer = given_letter(house, Late())
    before = house.rows(writer)
    assert plan(house, writer, 2).to_dict() == {
        "action": "redeliver",
        "pipeline": "orders",
        "writer": "stream",
        "plan": [
            "id 2 (orders/0@2) is written after all, beside the regular output, which stays as it is",
            "position and gate stay as they are",
        ],
        "id": 2,
        "in_place": False,
    }
    assert (writer.late, house.rows(writer)) == ([], before)


def test_the_writer_is_told_what_it_was_given_since(house):
    writer = given_letter(house, Late())
    plan(house, writer, 2)
    assert (writer.followers, writer.is_whole) == ([3, 4, 5, 6, 7, 8], True)


def test_a_kind_that_cannot_do_it_says_so(house):
    with pytest.raises(NotPossible, match="id 2 cannot be redelivered: this kind of writer cannot"):
        plan(house, given_letter(house, Stream()), 2)


def test_what_is_no_letter_is_refused(house):
    writer = given_letter(house, Late())
    with pytest.raises(NoSuchLetter, match=r"has no dead letter 3; there is: 2\."):
        plan(house, writer, 3)


def test_what_the_writer_has_not_passed_is_refused(house):
    writer = given_stopped_at(house, 5, Late())
    house.acknowledge(writer, 5)
    with pytest.raises(NotPossible, match="the writer is at 4 and has not passed it yet"):
        plan(house, writer, 5)


def test_what_was_only_copied_is_refused(house):
    writer = given_letter(house, Late())
    only_copied = ListedLetter("orders", "stream", 3, Fate.UNDECIDED, None)
    with pytest.raises(NotPossible, match="it is not acknowledged"):
        Redelivery(house.positions, house.log, house.clock).plan(writer, only_copied)


def test_what_the_log_has_no_longer_is_refused(house):
    house.publish(orders="ab-d")
    writer = Late(bad={1})
    house.deliver(writer)
    house.acknowledge(writer, 1)
    writer.bad = set()
    house.resume(writer)
    gone = ListedLetter("orders", "stream", 2, Fate.DEAD, None)
    with pytest.raises(NotPossible, match="the log does not have it any more"):
        Redelivery(house.positions, house.log, house.clock).plan(writer, gone)


def test_a_writer_whose_output_would_have_another_shape_is_refused(house):
    writer = given_letter(house, Late())
    writer.kind = "other"
    with pytest.raises(ShapeChanged):
        plan(house, writer, 2)


def test_nothing_is_done_while_a_run_has_the_writer(house):
    writer = given_letter(house, Late())
    take(house.positions, house.state(writer), "a run", house.clock)
    with pytest.raises(LeaseHeld):
        plan(house, writer, 2)


def test_an_attempt_that_died_is_taken_up_with_its_mark(house):
    writer = given_letter(house, Late())
    state = take(house.positions, house.state(writer), REDELIVERING, house.clock).state
    house.positions.begin_redelivery(state, 2, {"attempt": 7}, state.lease)
    plan(house, writer, 2).execute(house.deed("redeliver"))
    assert (writer.marks, writer.late) == ([{"attempt": 7}], [2])
    assert house.positions.redelivery_mark("stream", 2) is None


def test_a_target_that_failed_leaves_mark_and_letter(house):
    writer = given_letter(house, Late())
    writer.broken = ["no answer"]
    with pytest.raises(NotRedelivered, match="id 2 was not redelivered: ConnectionError: no answer"):
        plan(house, writer, 2).execute(house.deed("redeliver"))
    assert (letter(house, writer, 2).fate, house.positions.redelivery_mark("stream", 2)) == (
        Fate.DEAD,
        {"attempt": 0},
    )
    plan(house, writer, 2).execute(house.deed("redeliver"))
    assert writer.marks == [{"attempt": 0}, {"attempt": 0}]


def test_regular_output_does_not_get_it_even_when_it_is_delivered_again(house):
    writer = given_letter(house, Late())
    plan(house, writer, 2).execute(house.deed("redeliver"))
    assert house.positions.acknowledged("stream") == {2}


def test_nothing_is_redelivered_into_tables_that_were_handed_back(house):
    writer = given_letter(house, Late())
    state, at = house.state(writer), house.clock()
    gate = WriterGate(Cause.HAND, 9, 9, 8, "handed back", at)
    handed_back = replace(state, handed_back=HandedBack(at, "ann", "back"))
    house.positions.commit(handed_back, state.position, None, gate)
    with pytest.raises(TablesHandedBack):
        plan(house, writer, 2)


def test_nothing_is_redelivered_into_a_target_that_was_made_again(house):
    writer = given_letter(house, Late())
    house.positions.adopt(house.state(writer), "first", writer.shape, None)
    writer.identity = TargetIdentity("second", "topic copy")
    with pytest.raises(TargetReplaced, match="first"):
        plan(house, writer, 2)


def test_rows_of_an_older_version_are_read(house):
    writer = given_letter(house, Late())
    key = next(row for row in house.rows(writer) if row.startswith("acknowledged/"))
    from tidemark.consensus.objects import Change, ObjectKey, ObjectKind

    change = Change({key: '{"ids": [2], "by": "bob"}'})
    house.consensus.commit(ObjectKey(ObjectKind.WRITER, "orders/stream"), house.state(writer).version, change)
    (one,) = house.positions.acknowledgements("stream")
    assert (one.ids, one.by, one.reason, one.at) == ((2,), "bob", None, None)
