"""deliver when something is wrong: a message, the target, the gate, the lease or the log."""

from pathlib import Path

import pytest
from tests.support.consensus import RacingConsensus
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import PIPELINE, PipelineWorld

from tidemark.consensus.lease import LEASE
from tidemark.delivery.binding_steps import error_text
from tidemark.delivery.published_log import LogUnreadable, reading
from tidemark.delivery.state.lease import LeaseHeld, LeaseLost, take
from tidemark.delivery.state.positions import ShapeChanged
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.transforms.chain import TransformFailed
from tidemark.delivery.writer import BadMessage, Written
from tidemark.errors import TidemarkError
from tidemark.journal.errors import Undecodable
from tidemark.log.errors import FileMissing

pytestmark = pytest.mark.unit

# The wall


def test_the_wall_leaves_the_position_right_before_it(house):
    house.publish(orders="abcdef")
    writer = Stream(bad={3})
    delivered = house.deliver(writer)
    assert (delivered.position, house.position(writer), writer.ids) == (2, 2, [0, 1, 2])


def test_the_wall_closes_the_gate_at_exactly_its_id(house):
    house.publish(orders="abcdef")
    writer = Stream(bad={3, 5})
    delivered = house.deliver(writer)
    gate = house.gate(writer)
    assert (gate.cause, gate.first_id, gate.last_id, gate.through) == (Cause.MESSAGE, 3, 3, 5)
    assert gate.reason.startswith("orders/stream: orders/0, offset 3 (id 3): it makes no sense.")
    assert (gate.at, gate.failures, delivered.gate, delivered.closed_now) == (house.clock.now, 1, gate, True)


def test_of_several_parts_the_lowest_bad_message_is_the_wall(house):
    house.publish(a="aaa", b="bbb", c="ccc")
    writer = Stream(bad={2, 4, 7}, apart=True)
    house.deliver(writer)
    assert (house.position(writer), house.gate(writer).first_id) == (1, 2)


def test_everything_below_the_wall_is_written_whatever_part_it_is_in(house):
    house.publish(a="aaa", b="bbb", c="ccc")
    writer = Stream(bad={7}, apart=True)
    house.deliver(writer)
    assert writer.streams == {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6]}
    assert house.position(writer) == 6


def test_a_wall_beside_a_part_that_failed_leaves_no_message_behind(house):
    """The failed part has messages below the wall: it is tried again before the position moves."""
    house.publish(a="aaa", b="bbb")
    writer = Stream(bad={4}, apart=True, broken=["no answer"])
    house.deliver(writer)
    assert writer.streams == {"a": [0, 1, 2], "b": [3]}
    assert (house.position(writer), house.gate(writer).first_id) == (3, 4)


def test_a_wall_beside_a_part_that_fails_for_good_moves_nothing(house):
    house.publish(a="aaa", b="bbb")
    writer = Stream(bad={4}, refused={1}, apart=True)
    house.deliver(writer)
    assert (house.position(writer), house.gate(writer).cause) == (-1, Cause.TARGET)


def test_a_wall_at_the_first_message_moves_nothing(house):
    house.publish(orders="abc")
    writer = Stream(bad={0})
    assert house.deliver(writer).position == -1
    assert house.positions.history("stream") == []


def test_holes_before_the_wall_are_finished(house):
    house.publish(orders="a--d")
    writer = Stream(bad={3})
    assert house.deliver(writer).position == 2


def test_a_wall_is_not_finished_binding(house):
    house.publish(orders="abc")
    writer = Stream(bad={2})
    house.deliver(writer)
    assert writer.finished == []


def test_bindings_before_the_wall_are_committed_and_those_behind_it_not_begun(house):
    for _ in range(3):
        house.publish(orders="ab")
    writer = Stream(bad={2})
    house.deliver(writer)
    assert (house.position(writer), writer.calls) == (1, [[0, 1], [2]])


def test_a_wall_below_the_position_keeps_the_position(house):
    """A message that was good when it was delivered is bad now, and its binding is delivered again."""
    house.publish(orders="abcd")
    writer = Stream(bad={3})
    house.deliver(writer)
    house.operator.open("stream").execute(house.deed("open"))
    writer.bad = {1}
    house.deliver(writer)
    assert (house.position(writer), house.gate(writer).first_id, house.gate(writer).through) == (2, 1, 3)


def test_a_bad_message_that_is_not_in_the_binding_moves_nothing(house):
    house.publish(orders="ab")
    house.publish(orders="cd")
    writer = Stream()

    def lie(part, writing):
        raise BadMessage(PIPELINE, "stream", "orders", 0, 9, 9, "nonsense")

    writer.before_write = lie
    with pytest.raises(ValueError, match="not in the binding from 0 to 1"):
        house.deliver(writer)
    assert (house.position(writer), house.gate(writer)) == (-1, None)


# The target fails


def test_one_failure_of_the_target_is_tried_once_more_in_bulk(house):
    house.publish(orders="abc")
    writer = Stream(broken=["no answer"])
    assert house.deliver(writer).gate is None
    assert writer.calls == [[], [0, 1, 2]]


def test_only_the_parts_that_failed_are_tried_again(house):
    house.publish(a="aa", b="bb", c="cc")
    writer = Stream(apart=True, broken=["no answer"])
    house.deliver(writer)
    assert writer.calls == [[], [2, 3], [4, 5], [0, 1]]


def test_F2_after_the_retry_the_gate_names_the_range_and_the_position_stays(house):
    house.publish(orders="abc")
    house.publish(orders="defg")
    writer = Stream(refused={4})
    delivered = house.deliver(writer)
    gate = delivered.gate
    assert (delivered.position, house.position(writer)) == (2, 2)
    assert (gate.cause, gate.first_id, gate.last_id, gate.through) == (Cause.TARGET, 3, 6, 6)
    assert gate.reason == "ConnectionError: no answer to 4"
    assert len(writer.calls) == 3


def test_the_range_begins_behind_the_position_where_that_lies_in_the_binding(house):
    house.publish(orders="abcdef")
    writer = Stream(bad={3})
    house.deliver(writer)
    house.operator.open("stream").execute(house.deed("open"))
    writer.bad, writer.refused = set(), {4}
    house.deliver(writer)
    assert house.gate(writer).where == "ids 3 to 5"


def test_one_writer_s_failure_is_not_another_s(house):
    house.publish(orders="abc")
    failing, fine = Stream("failing", refused={0}), Stream("fine")
    house.deliver(failing)
    house.deliver(fine)
    assert (house.position(failing), house.position(fine), house.gate(fine)) == (-1, 2, None)


def test_a_target_that_cannot_be_prepared_closes_the_gate(house):
    house.publish(orders="abc")
    writer = Stream(unprepared=["no keyspace", "no keyspace"])
    house.deliver(writer)
    gate = house.gate(writer)
    assert (gate.cause, gate.where, gate.reason) == (
        Cause.TARGET,
        "ids 0 to 2",
        "ConnectionError: no keyspace",
    )
    assert writer.calls == []


def test_a_target_that_could_not_be_prepared_once_is_tried_once_more(house):
    house.publish(orders="abc")
    writer = Stream(unprepared=["no answer"])
    house.deliver(writer)
    assert (writer.ids, house.gate(writer)) == ([0, 1, 2], None)


def test_a_target_is_prepared_once_a_run(house):
    house.publish_ids(3)
    house.deliver(writer := Stream())
    assert writer.prepared == 1


def test_a_binding_that_could_not_be_finished_once_is_finished_without_writing_again(house):
    house.publish(orders="abc")
    writer = Stream(unfinished=["no answer"])
    house.deliver(writer)
    assert (writer.calls, house.position(writer), house.gate(writer)) == ([[0, 1, 2]], 2, None)


def test_a_binding_that_cannot_be_finished_closes_the_gate(house):
    house.publish(orders="abc")
    writer = Stream(unfinished=["no answer"] * 2)
    house.deliver(writer)
    assert (house.position(writer), house.gate(writer).where) == (-1, "ids 0 to 2")


def test_a_message_that_turns_out_bad_when_the_binding_is_finished_is_a_wall(house):
    house.publish(orders="abc")
    writer = Shelf()
    writer.write = lambda part, writing: Written(3)
    writer.bad = {1}
    house.deliver(writer)
    assert (house.position(writer), house.gate(writer).first_id) == (0, 1)


def test_a_target_that_cannot_say_its_shape_has_failed(house):
    """The number of a topic's partitions is known to its broker only."""

    class Mute(Stream):
        @property
        def shape(self):
            raise ConnectionError("no broker")

    house.publish(orders="abc")
    house.register(Stream())
    house.deliver(mute := Mute())
    assert (house.gate(mute).cause, house.gate(mute).reason) == (Cause.TARGET, "ConnectionError: no broker")


def test_an_error_of_ours_is_a_sentence_already(house):
    house.publish(orders="a")

    class Said(TidemarkError):
        pass

    def say(part, writing):
        raise Said("the topic has other partitions.")

    house.deliver(writer := Stream(before_write=say))
    assert house.gate(writer).reason == "the topic has other partitions."


# The gate is closed already


def test_a_stopped_writer_is_left_alone(house):
    house.publish(orders="abc")
    writer = Stream(bad={1})
    house.deliver(writer)
    writer.bad, writer.calls = set(), []
    delivered = house.deliver(writer)
    assert (writer.calls, delivered.position, delivered.closed_now) == ([], 0, False)
    assert delivered.gate == house.gate(writer)


def test_a_stopped_writer_is_not_taken(house):
    house.publish(orders="a")
    house.deliver(writer := Stream(bad={0}))
    version = house.state(writer).version
    house.deliver(writer)
    assert house.state(writer).version == version


def test_a_gate_that_is_closed_while_the_writer_is_taken_stays_closed(tmp_path):
    consensus = RacingConsensus()
    house = PipelineWorld(tmp_path, consensus)
    house.publish(orders="abc")
    writer = Stream()
    house.register(writer)
    stop = house.operator.stop("stream")
    consensus.before_next_commit = lambda: stop.execute(house.deed("stop"))
    delivered = house.deliver(writer)
    assert (writer.calls, delivered.gate.cause, house.gate(writer).cause) == ([], Cause.HAND, Cause.HAND)


# Beginning


def test_a_writer_that_starts_with_the_latest_gets_only_what_comes_later(house):
    house.publish(orders="abc")
    writer = Stream()
    house.deliver(writer, start=house.log.end)
    house.publish(orders="de")
    house.deliver(writer, start=house.log.end)
    assert (writer.ids, house.position(writer)) == ([3, 4], 4)


def test_a_writer_whose_shape_changed_gets_nothing(house):
    house.publish(orders="abc")
    house.register(Stream())
    changed = Stream(kind="another")
    with pytest.raises(ShapeChanged, match="kind was 'stream' and is now 'another'"):
        house.deliver(changed)
    assert (changed.calls, house.position(changed), house.state(changed).lease) == ([], -1, None)


# The lease


def test_a_writer_that_is_leased_gets_nothing(house):
    house.publish(orders="abc")
    writer = Stream()
    take(house.positions, house.register(writer), "somebody", house.clock)
    with pytest.raises(LeaseHeld, match="somebody"):
        house.deliver(writer)
    assert writer.calls == []


def test_the_writer_is_free_after_a_run(house):
    house.publish(orders="abc")
    house.deliver(writer := Stream())
    assert house.state(writer).lease is None


def test_the_writer_is_free_after_a_run_that_stopped_it(house):
    house.publish(orders="abc")
    house.deliver(writer := Stream(bad={0}))
    assert house.state(writer).lease is None


def test_a_zombie_commits_nothing_and_its_successor_everything(house):
    house.publish(orders="abc")
    house.publish(orders="def")
    writer, others = Stream(), []

    def pause(part, writing):
        if not others:
            others.append("next")
            house.clock.now += LEASE
            house.deliver(writer, "next")

    writer.before_write = pause
    with pytest.raises(LeaseLost, match="zombie"):
        house.deliver(writer, "zombie")
    assert (writer.ids, house.position(writer)) == ([0, 1, 2, 3, 4, 5], 5)


def test_a_zombie_does_not_close_the_gate_of_its_successor(house):
    house.publish(orders="abc")
    writer = Stream()

    def pause(part, writing):
        writer.before_write = lambda part, writing: None
        house.clock.now += LEASE
        house.deliver(writer, "next")
        raise ConnectionError("no answer to the zombie")

    writer.before_write = pause
    writer.unfinished = []
    with pytest.raises(LeaseLost):
        house.deliver(writer, "zombie")
    assert (house.position(writer), house.gate(writer)) == (2, None)


def test_a_part_of_a_lost_writer_is_no_failure_of_the_target(house):
    house.publish(orders="abc")
    writer = Stream()

    def pause(part, writing):
        house.clock.now += LEASE
        writing.lease.check()

    writer.before_write = pause
    with pytest.raises(LeaseLost):
        house.deliver(writer)
    assert (house.position(writer), house.gate(writer)) == (-1, None)


# The log cannot be read


def test_a_damaged_log_closes_no_gate(house):
    house.publish(orders="abc")
    (file,) = house.log.manifest.files
    Path(house.root, "log", file.path).unlink()
    writer = Stream()
    with pytest.raises(LogUnreadable, match="is missing, but the log names it"):
        house.deliver(writer)
    assert (house.position(writer), house.gate(writer), house.state(writer).lease) == (-1, None, None)


def test_a_log_that_is_damaged_for_the_last_step_closes_no_gate(house):
    house.publish(orders="abc")
    (file,) = house.log.manifest.files
    writer = Shelf()
    writer.write = lambda part, writing: Path(house.root, "log", file.path).unlink() or Written()
    with pytest.raises(LogUnreadable):
        house.deliver(writer)
    assert (house.position(writer), house.gate(writer)) == (-1, None)


def test_a_disk_of_the_log_that_fails_closes_no_gate(house, monkeypatch):
    house.publish(orders="abc")
    writer = Stream()

    def fail(self, file, *options):
        raise OSError(5, "Input/output error")
        yield

    monkeypatch.setattr("tidemark.log.files.parquet.LogFolder.read_file", fail)
    with pytest.raises(LogUnreadable, match="Input/output error"):
        house.deliver(writer)
    assert house.gate(writer) is None


# What the gate says of an error


@pytest.mark.parametrize(
    "error",
    [
        TidemarkError("Kafka is away. Start it."),
        FileMissing("orders", "segments/0.parquet"),
        Undecodable("not JSON"),
        TransformFailed("keep_open", "field `status` is gone."),
    ],
)
def test_an_error_of_any_family_is_told_in_its_own_words(error):
    assert error_text(error) == str(error)


@pytest.mark.parametrize(
    ("error", "text"), [(KeyError("id"), "KeyError: 'id'"), (ConnectionResetError(), "ConnectionResetError")]
)
def test_an_error_of_another_library_is_told_with_its_kind(error, text):
    assert error_text(error) == text


def test_a_file_of_the_log_that_is_missing_is_never_the_targets_fault():
    with pytest.raises(LogUnreadable, match="is missing") as unreadable, reading():
        raise FileMissing("orders", "segments/0.parquet")
    assert unreadable.value.needs_person


def test_what_is_wrong_with_a_message_is_not_the_logs_fault():
    with pytest.raises(Undecodable), reading():
        raise Undecodable("not JSON")
