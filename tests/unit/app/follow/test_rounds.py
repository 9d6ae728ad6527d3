"""Rounds: what one does, what it leaves alone, and that the next one continues after every crash."""

import pytest
from tests.support.fault_points import REPLICATE
from tests.support.faults import Killed, kill_at
from tests.support.follow_world import FollowWorld
from tests.support.log_samples import given_finding
from tests.support.memory_writers import Stream
from tests.support.opened_pipeline import given_opened
from tests.support.pipeline_world import PipelineWorld

from tidemark.app.follow.pace import RoundKind, Timing, round_kind
from tidemark.app.follow.rounds import Rounds
from tidemark.clock import SECOND
from tidemark.delivery.state.positions import ShapeChanged
from tidemark.faults import FaultPoint
from tidemark.log.bind import OffsetsLost
from tidemark.log.bindings.door import Bindings
from tidemark.log.model import manifest
from tidemark.log.model.binding import CapturePlace
from tidemark.log.model.gate import LogGateCause, LogStopped
from tidemark.log.state.readers import readers

pytestmark = pytest.mark.unit

DELIVER = (
    FaultPoint.REGISTER_ENROLLED,
    FaultPoint.DELIVER_PARTS_WRITTEN,
    FaultPoint.DELIVER_FINISHED,
    FaultPoint.DELIVER_SETTLED,
    FaultPoint.DELIVER_COMMITTED,
)


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def world(tmp_path, monkeypatch, stream) -> FollowWorld:
    return FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, stream)


def test_a_round_brings_what_is_new_to_the_writer(world, stream):
    world.kafka.send(b"a", b"b")
    (done,) = world.follow()
    assert (stream.ids, done.records, done.closed) == ([0, 1], 2, [])
    assert len(done.took) == 2


def test_every_round_has_a_binding_of_its_own(world, stream):
    rounds = world.rounds()
    for value in (b"a", b"b", b"c"):
        world.kafka.send(value)
        rounds.whole()
    bindings = list(Bindings(world.house.control).every())
    assert [one.width for one in bindings] == [1, 1, 1]
    assert len({one.run_id for one in bindings}) == 3
    assert stream.ids == [0, 1, 2]


def test_another_attempt_of_the_same_run_does_not_get_the_bindings_of_the_first(world, stream):
    world.kafka.send(b"a")
    world.follow()
    world.kafka.send(b"b")
    world.follow()
    assert stream.ids == [0, 1]


def test_a_round_without_anything_new_makes_no_binding_and_advances_upper(world):
    world.kafka.send(b"a")
    rounds = world.rounds()
    rounds.whole()
    before = world.house.control.bindings_head()
    rounds.whole()
    after = world.house.control.bindings_head()
    assert (after.newest, after.reached) == (before.newest, before.reached)
    assert after.upper > before.upper


def test_the_ends_are_one_request(world):
    world.kafka.send(b"a")
    rounds = world.rounds()
    rounds.whole()
    world.kafka.requests.clear()
    assert rounds.ends() == {("orders", 0): 1, ("orders", 1): 0}
    assert world.kafka.requests == ["ends"]


def kind_a_second_after_a_look(rounds: Rounds) -> RoundKind:
    return round_kind(rounds.reached, rounds.ends(), Timing(0, looked=SECOND), 2 * SECOND)


def test_the_first_record_of_a_partition_is_a_whole_round_at_once(world):
    world.kafka.send(b"a")
    rounds = world.rounds()
    rounds.whole()
    assert kind_a_second_after_a_look(rounds) is RoundKind.IDLE
    world.kafka.send(b"b", partition=1)
    assert kind_a_second_after_a_look(rounds) is RoundKind.WHOLE


def test_a_source_of_which_nothing_was_ever_bound_is_idle_with_one_request(world):
    rounds = world.rounds()
    rounds.whole()
    world.kafka.requests.clear()
    assert kind_a_second_after_a_look(rounds) is RoundKind.IDLE
    assert world.kafka.requests == ["ends"]


def test_what_the_source_does_not_have_any_more_is_not_watched(world):
    """Otherwise every round would be a whole one: Kafka never tells the end of it."""
    world.kafka.send(b"a")
    world.kafka.send(b"b", partition=1)
    rounds = world.rounds()
    rounds.whole()
    del world.kafka.partitions[1]
    rounds.whole()
    assert rounds.ends() == rounds.reached == {("orders", 0): 1}


def test_what_was_deleted_a_moment_ago_leads_to_a_whole_round(world):
    world.kafka.send(b"a")
    world.kafka.send(b"b", partition=1)
    rounds = world.rounds()
    rounds.whole()
    del world.kafka.partitions[1]
    timing = Timing(0, looked=SECOND)
    assert round_kind(rounds.reached, rounds.ends(), timing, SECOND) is RoundKind.WHOLE


def test_small_bindings_say_that_they_are_captured_in_the_process(world):
    world.kafka.send(b"a")
    world.follow()
    world.kafka.send(*[b"b"] * 101)
    world.follow()
    small, large = list(Bindings(world.house.control).every())
    assert (small.captured_by, large.captured_by) == (CapturePlace.PROCESS, CapturePlace.ENGINE)


def test_a_round_knows_where_the_active_segment_begins(world, monkeypatch):
    monkeypatch.setattr(manifest, "MAX_FILES_PER_SEGMENT", 2)
    rounds, begins = world.rounds(), []
    for value in (b"a", b"b", b"c"):
        world.kafka.send(value)
        rounds.whole()
        begins.append(rounds.active_from)
    assert begins == [0, 0, 2]


def test_a_round_leaves_neither_a_reader_nor_a_lease(world, stream):
    world.kafka.send(b"a")
    world.follow()
    assert readers(world.house.control, 0) == []
    assert world.house.positions.load(stream.name).lease is None


def test_a_message_that_cannot_be_processed_closes_the_gate_once(world, stream):
    stream.bad = {1}
    world.kafka.send(b"a", b"b")
    rounds = world.rounds()
    assert rounds.whole().closed == ["stream"]
    world.kafka.send(b"c")
    assert rounds.whole().closed == []
    assert world.house.positions.load("stream").position == 0


def test_a_stopped_writer_does_not_hold_the_others(tmp_path, monkeypatch):
    picky, plain = Stream("picky", bad={1}), Stream("plain")
    world = FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, picky, plain)
    rounds = world.rounds()
    world.kafka.send(b"a", b"b")
    rounds.whole()
    world.kafka.send(b"c")
    done = rounds.whole()
    assert (picky.ids, plain.ids, done.records) == ([0], [0, 1, 2], 1)


# Errors of a delivery


def given_other_shape(world: FollowWorld, name: str) -> None:
    """A writer that was registered with another setting than its file has now: only a person can help."""
    world.house.register(Stream(name, kind="other"))


def test_a_lost_engine_ends_the_round_as_one_error(tmp_path, monkeypatch):
    world = FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, Stream("first"), Stream("second"))

    def lose(*given):
        raise BrokenPipeError("the engine is gone")

    world.write_parts = lose
    world.is_engine_error = lambda error: isinstance(error, BrokenPipeError)
    world.kafka.send(b"a")
    with pytest.raises(BrokenPipeError, match="the engine is gone"):
        world.follow()


def test_a_writer_with_an_error_that_needs_a_person_is_left_out_and_the_others_go_on(tmp_path, monkeypatch):
    changed, plain = Stream("changed"), Stream("plain")
    world = FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, changed, plain)
    given_other_shape(world, "changed")
    rounds = world.rounds()
    world.kafka.send(b"a")
    first = rounds.whole()
    world.kafka.send(b"b")
    second = rounds.whole()
    assert (plain.ids, second.records, second.waiting_since) == ([0, 1], 1, None)
    assert list(first.needs_person) == list(second.needs_person) == ["changed"]
    assert "kind was 'other' and is now 'stream'" in first.needs_person["changed"]
    assert (first.failures, list(second.delivered), changed.prepared) == ([], ["plain"], 0)


def test_where_no_other_writer_is_followed_the_error_that_needs_a_person_ends_the_run(world):
    given_other_shape(world, "stream")
    world.kafka.send(b"a")
    with pytest.raises(ShapeChanged):
        world.follow()


def test_a_stopped_writer_is_not_followed(tmp_path, monkeypatch):
    world = FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, Stream("changed"), Stream("bad", bad={0}))
    given_other_shape(world, "changed")
    world.kafka.send(b"a")
    with pytest.raises(ShapeChanged):
        world.follow()
    assert world.house.positions.load("bad").gate is not None


def test_with_stop_pipeline_nothing_is_bound_while_a_writer_is_stopped(tmp_path, monkeypatch):
    stream = Stream(bad={1})
    world = FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, stream, on_failure="stop_pipeline")
    rounds = world.rounds()
    world.kafka.send(b"a", b"b")
    rounds.whole()
    world.kafka.send(b"c")
    assert rounds.whole().must_wait
    assert world.house.control.bindings_head().reached["orders", 0] == 2


def test_a_writer_that_another_run_has_is_left_to_it_and_measured_later(world, stream):
    world.kafka.send(b"a")
    rounds = world.rounds()
    rounds.whole()
    state = world.house.positions.load("stream")
    from tidemark.delivery.state.lease import take

    hold = take(world.house.positions, state, "orders.replicate run-7")
    world.kafka.send(b"b")
    done = rounds.whole()
    assert (list(done.held), done.records, stream.ids) == (["stream"], 0, [0])
    assert done.waiting_since == world.house.control.bindings_head().newest
    hold.release()
    world.kafka.send(b"c")
    done = rounds.whole()
    assert (done.records, done.waiting_since) == (2, None)


def test_a_writer_that_was_set_back_is_behind_until_it_has_everything(tmp_path, monkeypatch):
    stream = Stream()
    world = FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, stream, limits={"max_records_per_run": 2})
    rounds = world.rounds()
    for number in range(3):
        world.kafka.send(b"%d" % number, b"x")
        rounds.whole()
    world.house.rewind("stream", -1)
    done = [rounds.whole() for _ in range(3)]
    second, third = [one.t for one in Bindings(world.house.control).every()][1:]
    assert [one.waiting_since for one in done] == [second, third, None]
    assert [one.is_behind for one in done] == [True, True, False]


def test_what_earlier_runs_have_published_is_lacked_too(tmp_path, monkeypatch):
    limits, house = {"max_records_per_run": 2}, PipelineWorld(tmp_path)
    world = FollowWorld.given(house, monkeypatch, Stream("first"), limits=limits)
    rounds = world.rounds()
    for number in range(3):
        world.kafka.send(b"%d" % number, b"x")
        rounds.whole()
    world.opened = given_opened(house, monkeypatch, Stream("late"), limits=limits)
    done = world.follow(2, run_id="run-2")
    second, third = [one.t for one in Bindings(world.house.control).every()][1:]
    assert [one.waiting_since for one in done] == [second, third]


def test_records_that_an_earlier_run_bound_are_finished_first(world, stream, monkeypatch):
    world.kafka.send(b"a")
    kill_at(monkeypatch, FaultPoint.BIND_COMMITTED)
    with pytest.raises(Killed):
        world.follow(run_id="run-1")
    world.kafka.send(b"b")
    world.follow(2, run_id="run-2")
    assert stream.ids == [0, 1]


def test_a_binding_that_another_run_publishes_first_is_delivered(world, stream, monkeypatch):
    """The other run sweeps the staging area of this one away."""
    messages, began = world.kafka.messages, []

    def publish_elsewhere_first(binding, s):
        if not began:
            began.append(binding.t)
            world.rounds("run-2")._publish(binding)
        return messages(binding, s)

    monkeypatch.setattr(world.kafka, "messages", publish_elsewhere_first)
    world.kafka.send(b"a", b"b")
    rounds = world.rounds()
    assert rounds.whole().records == 2
    assert stream.ids == [0, 1]


def test_a_capture_that_fails_is_an_error_where_no_other_run_has_published_it(world, monkeypatch):
    def fail(binding, s):
        raise ConnectionError("no broker")

    monkeypatch.setattr(world.kafka, "messages", fail)
    world.kafka.send(b"a")
    with pytest.raises(ConnectionError):
        world.follow()


def test_lost_offsets_close_the_logs_gate_and_end_the_run(world):
    world.kafka.send(b"a", b"b")
    world.follow()
    world.kafka.partitions[0] = [b"a"]
    with pytest.raises(OffsetsLost):
        world.follow()
    assert world.house.control.log_gate() is not None


def test_a_topic_that_was_made_again_closes_the_logs_gate(world):
    world.kafka.send(b"a")
    world.follow()
    world.kafka.make_again(b"x", b"y")
    with pytest.raises(OffsetsLost):
        world.follow()
    assert world.house.control.log_gate().cause is LogGateCause.LOST


def test_a_capture_that_fails_its_audit_is_not_published(world, stream):
    world.judgements.append(given_finding("keys", "a key is missing", (0, 0)))
    world.kafka.send(b"a")
    with pytest.raises(LogStopped):
        world.follow()
    assert (stream.ids, world.house.control.log_head().end) == ([], -1)


def test_a_closed_log_gate_stops_the_next_round(world):
    test_a_capture_that_fails_its_audit_is_not_published(world, Stream())
    with pytest.raises(LogStopped):
        world.follow(run_id="run-2")


@pytest.mark.parametrize(
    ("point", "time"),
    [(point, 1) for point in (*REPLICATE, *DELIVER)]
    + [(point, 2) for point in (*REPLICATE, *DELIVER) if point is not FaultPoint.REGISTER_ENROLLED],
)
def test_after_a_crash_at_any_point_of_a_round_the_next_run_continues(
    world, stream, monkeypatch, point, time
):
    """The first and the second time that a point is reached: a writer is registered only once."""
    reached = kill_at(monkeypatch, point, time)
    killed = False
    for number in range(4):
        world.kafka.send(b"a", b"b", partition=number % 2)
        try:
            world.follow(run_id=f"run-{number}")
        except Killed:
            killed = True
    assert killed
    assert reached
    world.follow(2, run_id="last")
    state = world.house.positions.load("stream")
    assert stream.ids == list(range(8))
    assert (state.position, state.gate, world.house.control.log_head().end) == (7, None, 7)


def test_a_new_attempt_knows_how_far_write_times_are(world):
    """Otherwise its first round would go further ahead of the clock."""
    world.kafka.send(b"a", b"b")
    world.follow()
    (binding,) = list(Bindings(world.house.control).every())
    assert world.rounds("run-2").written_until == binding.t + 2
