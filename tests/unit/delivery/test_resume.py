"""resume: one message at a time from the position to where the failure ended, then the gate opens.

Example F of `specs/transporter.md`: ids 0 to 15, c0 at 8, the bulk of 9 to 15 fails, then 14.
"""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from tests.support.consensus import RacingConsensus
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import PipelineWorld, given_failed_bulk, given_gate, given_stopped

from tidemark.delivery.deliver import Delivered
from tidemark.delivery.resume import NotRegistered, NotResumable, Resumed
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.state.positions import ShapeChanged
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.writer import Written

pytestmark = pytest.mark.unit


# Example F


def test_F1_the_position_is_8_before_the_bulk(house):
    writer = given_failed_bulk(house, Stream("c0"))
    assert [entry.position for entry in house.positions.history("c0")] == [8]
    assert [binding.end for binding in writer.finished] == [8]


def test_F2_a_failed_bulk_leaves_the_position_at_8_and_stops(house):
    writer = given_failed_bulk(house, Stream("c0"))
    gate = house.gate(writer)
    assert (house.position(writer), gate.cause, gate.where, gate.through) == (
        8,
        Cause.TARGET,
        "ids 9 to 15",
        15,
    )


def test_F3_messages_are_delivered_singly(house):
    writer = given_failed_bulk(house, Stream("c0"))
    house.resume(writer)
    assert writer.calls[:5] == [[9], [10], [11], [12], [13]]


def test_F4_a_message_that_fails_leaves_the_position_at_the_last_good_one(house):
    writer = given_failed_bulk(house, Stream("c0"))
    resumed = house.resume(writer)
    assert (resumed.position, house.position(writer), resumed.delivered) == (13, 13, 0)


def test_F4_what_comes_behind_the_failed_message_is_never_attempted(house):
    writer = given_failed_bulk(house, Stream("c0"))
    house.resume(writer)
    assert writer.calls[-1] == [14]


def test_F4_the_gate_is_closed_at_the_message_that_failed(house):
    writer = given_failed_bulk(house, Stream("c0"))
    resumed = house.resume(writer)
    assert (resumed.gate, resumed.gate.where, resumed.gate.through) == (house.gate(writer), "id 14", 15)


def test_F5a_the_cause_is_gone_and_14_and_15_are_delivered_singly(house):
    writer = given_failed_bulk(house, Stream("c0"))
    house.resume(writer)
    writer.calls, writer.refused = [], set()
    assert house.resume(writer) == Resumed(15, 2, None)
    assert (writer.calls, writer.ids) == ([[14], [15]], list(range(16)))


def test_F5a_reading_goes_on_in_bulk(house):
    writer = given_failed_bulk(house, Stream("c0"))
    writer.refused = set()
    house.resume(writer)
    house.publish(orders="bcd")
    writer.calls = []
    assert house.deliver(writer).position == 18
    assert writer.calls == [[16, 17, 18]]


def test_F5b_14_is_acknowledged_and_15_delivered(house):
    writer = given_failed_bulk(house, Stream("c0"))
    writer.refused, writer.bad = set(), {14}
    house.resume(writer)
    house.acknowledge(writer, 14)
    assert house.position(writer) == 14
    writer.calls = []
    assert house.resume(writer) == Resumed(15, 1, None)
    assert (writer.calls, 14 in writer.ids) == ([[15]], False)


def test_F5b_14_and_15_are_acknowledged_and_the_gate_opens_at_once(house):
    writer = given_failed_bulk(house, Stream("c0"))
    writer.refused, writer.bad = set(), {14}
    house.resume(writer)
    house.acknowledge(writer, 14, 15)
    assert house.gate(writer) is None
    assert house.deliver(writer) == Delivered(15, Written(ignored=5))
    assert (writer.ids, writer.finished[-1].end) == (list(range(14)), 15)


@pytest.mark.parametrize("last", [14, 15])
def test_F5b_the_file_has_everything_that_was_not_acknowledged(house, last):
    """Acknowledging the last message of a binding must not lose the others."""
    house.publish(orders=[b"{}"] * 9)
    house.publish(orders=[b"{}"] * 5 + [b"no json"] + [b"{}"])
    archive = house.files_writer(transforms=[{"omit": {"fields": ["x"]}}])
    house.deliver(archive)
    house.acknowledge(archive, 14, last)
    if house.gate(archive):
        house.resume(archive)
    house.deliver(archive)
    path = house.root / "archive" / "00000000000000000009-00000000000000000015.parquet"
    assert pq.read_table(path)["id"].to_pylist() == [id_ for id_ in range(9, 16) if not 14 <= id_ <= last]
    assert house.position(archive) == 15


# Nothing to resume


def test_an_open_gate_is_nothing_to_resume(house):
    house.publish(orders="abc")
    house.deliver(writer := Stream())
    assert house.resume(writer) == Resumed(2, 0, None)


def test_a_gate_that_opens_meanwhile_is_nothing_to_resume(tmp_path):
    consensus = RacingConsensus()
    house = PipelineWorld(tmp_path, consensus)
    writer = given_stopped(house, Stream(), "abc")
    plan = house.operator.open("stream")
    consensus.before_next_commit = lambda: plan.execute(house.deed("open"))
    assert house.resume(writer) == Resumed(-1, 0, None)
    assert writer.calls == []


def test_a_writer_that_never_ran_is_refused_and_not_registered(house):
    with pytest.raises(NotRegistered, match="orders has no registered writer stream"):
        house.resume(Stream())
    assert house.positions.load("stream") is None


def test_a_writer_that_is_leased_is_not_resumed(house):
    writer = given_stopped(house, Stream(), "abc")
    take(house.positions, house.state(writer), "somebody", house.clock)
    with pytest.raises(LeaseHeld):
        house.resume(writer)
    assert writer.calls == []


def test_a_writer_of_another_shape_is_not_resumed(house):
    given_stopped(house, Stream(), "abc")
    changed = Stream(kind="another")
    with pytest.raises(ShapeChanged):
        house.resume(changed)
    assert (changed.calls, house.position(changed)) == ([], -1)


def test_a_gate_that_a_verification_closed_is_not_opened_by_a_resume(house):
    house.publish(orders="abc")
    house.deliver(writer := Stream())
    gate = given_gate(house, writer, Cause.VERIFICATION, 2)
    with pytest.raises(NotResumable, match="tidemark gate open orders stream"):
        house.resume(writer)
    assert house.gate(writer) == gate


# How far


def test_a_gate_that_was_closed_by_hand_opens_at_once(house):
    house.publish(orders="abc")
    house.deliver(writer := Stream())
    house.publish(orders="def")
    house.operator.stop("stream").execute(house.deed("stop"))
    writer.calls = []
    assert house.resume(writer) == Resumed(2, 0, None)
    assert (writer.calls, house.gate(writer)) == ([], None)


def test_only_the_binding_that_failed_is_delivered_singly(house):
    writer = given_stopped(house, Stream(), "abc", "def")
    house.resume(writer)
    assert (writer.calls, house.position(writer)) == ([[0], [1], [2]], 2)


def test_through_may_lie_bindings_ahead(house):
    writer = given_stopped(house, Stream(), "ab", "cd", "ef")
    house.close_gate(writer, replace(house.gate(writer), through=3))
    assert house.resume(writer) == Resumed(3, 4, None)


def test_through_may_lie_in_the_middle_of_a_binding(house):
    writer = given_stopped(house, Stream(), "abcd")
    house.close_gate(writer, replace(house.gate(writer), through=1))
    assert house.resume(writer) == Resumed(1, 2, None)
    assert (writer.calls, writer.finished) == ([[0], [1]], [])


def test_what_is_left_behind_a_through_in_the_middle_is_delivered_whole(house):
    writer = given_stopped(house, Shelf(), "abcd")
    house.close_gate(writer, replace(house.gate(writer), through=1))
    house.resume(writer)
    house.deliver(writer)
    assert (writer.ids, house.position(writer)) == ([0, 1, 2, 3], 3)


def test_a_position_in_the_middle_of_a_binding_is_where_it_begins(house):
    house.publish(orders="abcd")
    house.deliver(writer := Stream(bad={2}))
    writer.bad, writer.calls = set(), []
    house.resume(writer)
    assert writer.calls == [[2], [3]]


def test_holes_need_no_delivery(house):
    writer = given_stopped(house, Stream(), "a--b-")
    assert house.resume(writer) == Resumed(4, 2, None)


def test_a_binding_of_holes_is_finished(house):
    house.publish(orders="a")
    house.publish(orders="---")
    writer = Stream(unfinished=[])
    house.register(writer, 0)
    given_gate(house, writer, Cause.TARGET, 3)
    assert house.resume(writer) == Resumed(3, 0, None)
    assert [binding.end for binding in writer.finished] == [3]


def test_a_log_that_was_opened_too_early_is_opened_again(house):
    """Otherwise the gate would open without anything having been delivered."""
    early = house.log
    writer = given_stopped(house, Stream(), "abc")
    assert house.resume(writer, log=early) == Resumed(2, 3, None)


def test_after_a_rewind_everything_up_to_through_is_delivered_singly(house):
    house.publish(orders="ab")
    house.publish(orders="cd")
    house.deliver(writer := Shelf(bad={3}))
    house.rewind("shelf", -1)
    writer.bad, writer.calls = set(), []
    assert house.resume(writer) == Resumed(3, 4, None)


# One at a time, acknowledged before the next


def test_acknowledgements_are_durable_at_most_once_a_second(house):
    writer = given_stopped(house, Stream(), "abcdefgh")
    writer.before_write = lambda part, writing: house.clock.pass_seconds(0.4)
    house.resume(writer)
    assert [entry.position for entry in house.positions.history("stream")] == [2, 5, 7]


def test_within_a_second_only_the_end_of_a_binding_is_made_durable(house):
    writer = given_stopped(house, Stream(), "abc")
    house.resume(writer)
    assert [entry.position for entry in house.positions.history("stream")] == [2]


def test_the_namespaces_go_with_the_acknowledgements(house):
    house.publish(orders="ab", refunds="cd")
    house.deliver(writer := Stream(bad={0}))
    writer.bad = set()
    house.resume(writer)
    assert house.positions.namespaces("stream") == {"orders": 1, "refunds": 3}


def test_the_namespaces_of_a_binding_are_complete_whenever_it_was_committed(house):
    """A message that is its whole binding moves no position before the binding is finished."""
    house.publish(orders="a")
    house.deliver(writer := Stream(bad={0}))
    writer.bad, writer.before_write = set(), lambda part, writing: house.clock.pass_seconds(2)
    house.resume(writer)
    assert house.positions.namespaces("stream") == {"orders": 0}


def test_a_resume_that_is_asked_to_stop_keeps_what_is_done(house):
    writer = given_stopped(house, Stream(), "abcd")
    resumed = house.resume(writer, is_stopping=lambda: len(writer.calls) == 2)
    assert (resumed.interrupted, resumed.position, house.position(writer)) == (True, 1, 1)
    assert (resumed.gate, house.state(writer).lease) == (house.gate(writer), None)


def test_a_resume_that_was_asked_to_stop_is_taken_up_where_it_was(house):
    writer = given_stopped(house, Stream(), "abcd")
    house.resume(writer, is_stopping=lambda: len(writer.calls) == 2)
    writer.calls = []
    assert house.resume(writer) == Resumed(3, 2, None)
    assert writer.calls == [[2], [3]]


def test_being_asked_to_stop_is_no_failure(house):
    writer = given_stopped(house, Stream(), "abcd")
    before = house.gate(writer)
    house.resume(writer, is_stopping=lambda: True)
    assert house.gate(writer) == before


def test_the_end_of_a_binding_is_durable_only_when_it_is_finished(house):
    """Every message is made durable at once here, and the last one is the binding's end."""
    writer = given_stopped(house, Shelf(), "abc")
    writer.before_write = lambda part, writing: house.clock.pass_seconds(2)
    seen, finish = [], writer.finish
    writer.finish = lambda part, writing: seen.append(house.position(writer)) or finish(part, writing)
    house.resume(writer)
    assert (seen, house.position(writer), writer.ids) == ([1], 2, [0, 1, 2])
