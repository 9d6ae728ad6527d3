"""What people do to a writer: a plan that changes nothing, then a deed with who and why."""

import json

import pytest
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import PipelineWorld, given_stopped_at

from tidemark.delivery.dead_letters.store import DeadLetterCopies, DeadLetterFiles
from tidemark.delivery.operator import acknowledge as acknowledge_module
from tidemark.delivery.operator.action_plan import ActionPlan, ChangedMeanwhile, NotPossible
from tidemark.delivery.state.writer_state import Cause, OffsetEntry, OffsetEntryKind, WriterGate

pytestmark = pytest.mark.unit


def acknowledge(house: PipelineWorld, writer: Stream, first: int, last: int | None = None) -> ActionPlan:
    return house.operator.acknowledge(writer, first, last, house.letters, untried=True)


# Acknowledge


def test_R27_the_message_that_a_writer_waits_for_may_pass(house):
    writer = given_stopped_at(house, 2)
    house.acknowledge(writer, 2)
    assert (house.position(writer), house.positions.acknowledged("stream")) == (2, {2})


def test_an_acknowledged_message_is_never_written(house):
    writer = given_stopped_at(house, 2)
    house.acknowledge(writer, 2)
    house.resume(writer)
    house.deliver(writer)
    assert writer.ids == [0, 1, 3, 4, 5, 6, 7, 8]


def test_an_acknowledged_message_stays_so_when_it_is_delivered_again(house):
    writer = given_stopped_at(house, 2, Shelf())
    house.acknowledge(writer, 2)
    house.resume(writer)
    writer.bad = set()
    house.rewind("shelf", -1)
    house.deliver(writer)
    assert (writer.ids, house.position(writer)) == ([0, 1, 3, 4, 5, 6, 7, 8], 8)


def test_a_range_may_pass(house):
    writer = given_stopped_at(house, 2)
    house.acknowledge(writer, 2, 4)
    assert (house.position(writer), house.positions.acknowledged("stream")) == (4, {2, 3, 4})


def test_the_gate_stays_closed_while_messages_are_left(house):
    writer = given_stopped_at(house, 2)
    before = house.gate(writer)
    house.acknowledge(writer, 2, 4)
    assert house.gate(writer) == before


def test_the_gate_opens_when_everything_up_to_through_has_passed(house):
    writer = given_stopped_at(house, 2)
    house.acknowledge(writer, 2, 5)
    assert house.gate(writer) is None


def test_the_gate_opens_when_only_holes_are_left(house):
    house.publish(orders="abc--")
    house.deliver(writer := Stream(bad={2}))
    house.acknowledge(writer, 2)
    assert house.gate(writer) is None


def test_the_end_of_a_binding_is_passed_only_when_the_rest_of_it_is_finished(house):
    """Otherwise the file of the messages that were not acknowledged would never be made."""
    writer = given_stopped_at(house, 5, Shelf())
    house.acknowledge(writer, 5)
    assert house.position(writer) == 4
    house.deliver(writer)
    assert (house.position(writer), writer.ids) == (8, [0, 1, 2, 3, 4, 6, 7, 8])


def test_a_range_over_several_bindings_leaves_each_to_be_finished(house):
    writer = given_stopped_at(house, 4, Shelf())
    house.acknowledge(writer, 4, 7)
    assert house.position(writer) == 4
    house.deliver(writer)
    assert (house.position(writer), writer.bindings) == (8, {0: [0, 1, 2, 3], 6: [8]})


def test_a_binding_of_one_message_may_be_acknowledged_whole(house):
    house.publish_ids(3)
    house.deliver(writer := Shelf(bad={1}))
    house.acknowledge(writer, 1)
    house.deliver(writer)
    assert (house.position(writer), writer.bindings) == (2, {0: [0], 1: [], 2: [2]})


def test_what_was_acknowledged_is_not_waited_for_any_more(house):
    writer = given_stopped_at(house, 5)
    house.acknowledge(writer, 5)
    with pytest.raises(NotPossible, match="it waits for id 6"):
        acknowledge(house, writer, 5)


def test_a_range_may_follow_what_was_acknowledged(house):
    writer = given_stopped_at(house, 5)
    house.acknowledge(writer, 5)
    house.acknowledge(writer, 6, 7)
    assert house.positions.acknowledged("stream") == {5, 6, 7}


@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param(1, 1, id="finished already"),
        pytest.param(3, 3, id="a later one"),
        pytest.param(1, 3, id="a range that begins too early"),
        pytest.param(3, 4, id="a range that begins too late"),
    ],
)
def test_only_what_the_writer_waits_for_may_pass(house, first, last):
    writer = given_stopped_at(house, 2)
    with pytest.raises(NotPossible, match=r"orders/stream: it waits for id 2.* Nothing was changed\."):
        acknowledge(house, writer, first, last)
    assert (house.position(writer), house.positions.acknowledged("stream")) == (1, frozenset())


def test_a_range_ends_with_a_message(house):
    house.publish(orders="ab-d")
    house.deliver(writer := Stream(bad={1}))
    with pytest.raises(NotPossible, match=r"it waits for id 1: .* ends with a message"):
        acknowledge(house, writer, 1, 2)


def test_holes_before_the_message_do_not_matter(house):
    house.publish(orders="a--de")
    house.deliver(writer := Stream(bad={3}))
    house.acknowledge(writer, 3)
    assert (house.position(writer), house.positions.acknowledged("stream")) == (3, {3})


def test_a_range_that_ends_before_it_begins_is_refused(house):
    writer = given_stopped_at(house, 2)
    with pytest.raises(NotPossible, match="1 comes before 2"):
        acknowledge(house, writer, 2, 1)


def test_what_is_not_in_the_log_is_refused(house):
    writer = given_stopped_at(house, 2)
    with pytest.raises(NotPossible, match="the log ends at id 8"):
        acknowledge(house, writer, 2, 9)


def test_a_writer_at_the_end_waits_for_nothing(house):
    house.publish(orders="ab")
    house.deliver(writer := Stream())
    with pytest.raises(NotPossible, match="it waits for no message"):
        acknowledge(house, writer, 1)


def test_more_than_so_many_at_once_are_refused(house, monkeypatch):
    monkeypatch.setattr(acknowledge_module, "MOST_ACKNOWLEDGED", 3)
    writer = given_stopped_at(house, 0)
    with pytest.raises(NotPossible, match="that is more than 3 messages at once"):
        acknowledge(house, writer, 0, 3)
    acknowledge(house, writer, 0, 2)


def test_what_the_writer_refuses_is_refused(house):
    writer = given_stopped_at(house, 2)
    writer.refuses_acknowledgement = lambda message: f"{message['value'].decode()} can only be tried again."
    with pytest.raises(NotPossible, match="id 2 cannot be acknowledged: c can only be tried again"):
        acknowledge(house, writer, 2)


def test_what_is_in_a_file_already_cannot_be_acknowledged(house):
    """Killed between the file and the commit: a file without the message would be another one."""
    house.publish(orders="abc")
    archive = house.files_writer()
    house.deliver(archive)
    house.rewind("archive", 0)
    with pytest.raises(NotPossible, match=r"id 1 cannot be acknowledged: it is in .*\.parquet already"):
        acknowledge(house, archive, 1)


def test_a_message_may_pass_while_the_gate_is_open(house):
    house.publish(orders="abc")
    writer = Stream()
    house.register(writer)
    house.acknowledge(writer, 0)
    house.deliver(writer)
    assert (writer.ids, house.position(writer)) == ([1, 2], 2)


@pytest.mark.parametrize("cause", [Cause.HAND, Cause.VERIFICATION])
def test_a_gate_that_is_not_about_messages_is_not_opened_by_an_acknowledgement(house, cause):
    house.publish(orders="abc")
    writer = Stream()
    house.register(writer)
    gate = house.close_gate(writer, WriterGate(cause, 0, 0, -1, "why", 0))
    house.acknowledge(writer, 0)
    assert house.gate(writer) == gate


def test_the_plan_of_an_acknowledgement(house):
    writer = given_stopped_at(house, 2)
    plan = acknowledge(house, writer, 2, 5)
    assert plan.to_dict() == {
        "action": "acknowledge",
        "pipeline": "orders",
        "writer": "stream",
        "plan": [
            "position 1 → 4",
            "the next delivery finishes the binding and moves it to 5 and beyond",
            "id 2 (orders/0, offset 2) is never written",
            "id 3 (refunds/0, offset 0) is never written; it has not failed",
            "id 4 (refunds/0, offset 1) is never written; it has not failed",
            "id 5 (refunds/0, offset 2) is never written; it has not failed",
            "the gate opens",
        ],
        "ids": [2, 3, 4, 5],
        "position": 4,
    }


def test_the_plan_of_an_acknowledgement_that_leaves_the_gate_closed(house):
    writer = given_stopped_at(house, 2)
    assert acknowledge(house, writer, 2).lines == (
        "position 1 → 2",
        "id 2 (orders/0, offset 2) is never written",
        "the gate stays as it is",
    )


def test_an_acknowledgement_is_an_entry_of_its_own_with_who_and_why(house):
    writer = given_stopped_at(house, 2)
    house.acknowledge(writer, 2, 4, who="bob")
    assert house.positions.history("stream")[-1] == OffsetEntry(
        OffsetEntryKind.ACKNOWLEDGE,
        4,
        house.clock.now,
        "bob",
        "to test acknowledge",
        {"orders": 2, "refunds": 4},
    )


# Only what has failed


def refused(
    house: PipelineWorld, writer: Stream, first: int, last: int | None = None, untried: bool = False
) -> str:
    """Why an acknowledgement is not even planned; nothing was changed."""
    before = house.rows(writer)
    with pytest.raises(NotPossible) as refusal:
        house.operator.acknowledge(writer, first, last, house.letters, untried=untried)
    assert house.rows(writer) == before
    return str(refusal.value)


def test_i05_a_message_that_has_failed_may_pass_without_further_ado(house):
    writer = given_stopped_at(house, 2)
    house.acknowledge(writer, 2, untried=False)
    assert house.positions.acknowledged("stream") == {2}


def test_i05_what_was_never_tried_needs_to_be_called_so(house):
    writer = given_stopped_at(house, 2)
    house.acknowledge(writer, 2, untried=False)
    assert "id 3 has not failed" in (said := refused(house, writer, 3))
    assert "add --untried" in said
    house.acknowledge(writer, 3, untried=True)
    assert house.positions.acknowledged("stream") == {2, 3}


def test_i05_a_range_beyond_what_has_failed_needs_to_be_called_so(house):
    writer = given_stopped_at(house, 2)
    assert "ids 3 to 5 have not failed" in refused(house, writer, 2, 5)


def test_i05_at_an_open_gate_nothing_has_failed(house):
    house.publish(orders="abc")
    writer = Stream()
    house.register(writer)
    assert "id 0 has not failed" in refused(house, writer, 0)


@pytest.mark.parametrize("untried", [False, True])
@pytest.mark.parametrize("singly", [False, True], ids=["in bulk", "one at a time"])
def test_i04_what_a_target_failed_at_cannot_be_acknowledged(house, singly, untried):
    house.publish(orders="abc")
    house.deliver(writer := Stream(refused={1}))
    if singly:
        house.resume(writer)
    said = refused(house, writer, house.gate(writer).first_id, untried=untried)
    assert "its target failed at id" in said
    assert "not a message (ConnectionError: no answer to 1)" in said
    assert "Mend the target, then: tidemark resume orders stream." in said


# Dead letters


def test_a_dead_letter_is_the_whole_message_with_who_when_and_why(house):
    writer = given_stopped_at(house, 3)
    house.acknowledge(writer, 3)
    path = house.root / "log" / "dead_letters" / "stream" / "00000000000000000003.json"
    letter = json.loads(path.read_text())
    assert {key: letter[key] for key in ("pipeline", "writer", "reason", "who", "at")} == {
        "pipeline": "orders",
        "writer": "stream",
        "reason": "to test acknowledge",
        "who": "ann",
        "at": house.clock.now,
    }
    assert letter["error"].startswith("orders/stream: refunds/0, offset 0 (id 3): it makes no sense")
    assert letter["message"] == {
        "id": 3,
        "t": 1_000,
        "write_time": 1_003,
        "topic": "refunds",
        "partition": 0,
        "offset": 0,
        "timestamp": 1_700_000_000_000,
        "timestamp_type": 0,
        "key": "k",
        "value": "d",
        "headers": [],
        "namespace": "refunds",
    }


def test_every_message_of_a_range_has_its_letter(house):
    writer = given_stopped_at(house, 2)
    house.acknowledge(writer, 2, 4)
    folder = house.root / "log" / "dead_letters" / "stream"
    assert sorted(int(path.stem) for path in folder.iterdir()) == [2, 3, 4]


def test_a_letter_may_be_kept_in_several_places(house):
    one, other = house.root / "one", house.root / "other"
    copies = DeadLetterCopies(*(DeadLetterFiles("orders", str(place)) for place in (one, other)))
    writer = given_stopped_at(house, 2)
    house.operator.acknowledge(writer, 2, None, copies).execute(house.deed("acknowledge"))
    name = "dead_letters/stream/00000000000000000002.json"
    assert (one / name).read_bytes() == (other / name).read_bytes()


def test_a_plan_copies_nothing(house):
    writer = given_stopped_at(house, 2)
    acknowledge(house, writer, 2)
    assert not (house.root / "log" / "dead_letters").exists()


def test_a_letter_that_cannot_be_kept_lets_nothing_pass(house):
    class Full:
        def keep(self, letters):
            raise OSError("no space left")

    writer = given_stopped_at(house, 2)
    with pytest.raises(OSError, match="no space left"):
        house.operator.acknowledge(writer, 2, None, Full()).execute(house.deed("acknowledge"))
    assert (house.position(writer), house.positions.acknowledged("stream")) == (1, frozenset())


def test_a_plan_that_is_too_old_copies_nothing(house):
    writer = given_stopped_at(house, 2)
    plan = acknowledge(house, writer, 2)
    house.operator.open("stream").execute(house.deed("open"))
    with pytest.raises(ChangedMeanwhile):
        plan.execute(house.deed("acknowledge"))
    assert not (house.root / "log" / "dead_letters").exists()
