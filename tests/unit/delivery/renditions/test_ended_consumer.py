"""The tombstone of a consumer: whatever finds it does nothing, and compaction does not wait for it."""

import pytest
from tests.support.fault_points import END_CONSUMER
from tests.support.faults import Killed, at_point
from tests.support.follow_world import round_that_ends
from tests.support.memory_writers import Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.consensus.lease import LEASE
from tidemark.delivery.state.ended_consumer import end_consumer
from tidemark.delivery.state.lease import LeaseHeld, LeaseLost, take
from tidemark.delivery.state.offset_log import find_writers
from tidemark.delivery.state.positions import ConsumerEnded
from tidemark.delivery.state.registration import registered_writers
from tidemark.log.state.registered_writers import enrolled

pytestmark = pytest.mark.unit


@pytest.fixture
def house(tmp_path) -> PipelineWorld:
    return PipelineWorld(tmp_path)


@pytest.fixture
def stream(house) -> Stream:
    """A writer with two messages delivered, and one that waits."""
    house.publish(orders="ab")
    stream = Stream()
    house.deliver(stream)
    house.publish(orders="c")
    return stream


def end(house, name="stream", holder="retire"):
    return end_consumer(house.positions, house.control, name, holder, house.clock, patience=0)


def waited_for(house):
    return [one.name for one in registered_writers(house.control, house.positions, [])]


def test_a_delivery_that_finds_it_does_nothing(house, stream):
    end(house)
    done = house.deliver(stream)
    assert (done.is_ended, done.position, stream.ids) == (True, 1, [0, 1])
    assert house.deliver_again(stream).is_ended


def test_a_resume_and_an_operators_action_that_find_it_are_refused(house, stream):
    end(house)
    said = "orders/stream: this consumer has ended"
    with pytest.raises(ConsumerEnded, match=said):
        house.resume(stream)
    for action in (lambda: house.rewind("stream", 0), lambda: house.operator.stop("stream")):
        with pytest.raises(ConsumerEnded, match=said):
            action()
    assert house.position(stream) == 1


def test_compaction_does_not_wait_for_it_and_its_offset_log_stays(house, stream):
    assert waited_for(house) == ["stream"]
    end(house)
    assert (waited_for(house), enrolled(house.control)) == ([], {})
    assert list(find_writers(house.consensus)) == []
    assert [one.position for one in house.positions.history("stream")] == [1]


def test_it_is_idempotent_and_the_first_one_is_kept(house, stream):
    first = end(house, holder="ann")
    assert end(house, holder="bob") == first
    assert first.ended
    assert first.ended.by == "ann"


def test_two_at_once_make_one_tombstone(house, stream):
    mine = house.positions.load_version

    def overtaken(name):
        found = mine(name)
        house.positions_seen = getattr(house, "positions_seen", 0) + 1
        if house.positions_seen == 1:
            end(house, holder="the other")
        return found

    positions = house.positions
    positions.load_version = overtaken
    made = end_consumer(positions, house.control, "stream", "me", house.clock)
    assert made.ended
    assert made.ended.by == "the other"


def test_a_delivery_keeps_it_away_and_a_dead_one_does_not(house, stream):
    hold = take(house.positions, house.state(stream), "run", house.clock)
    with pytest.raises(LeaseHeld, match="run has this writer"):
        end(house)
    house.clock.now += LEASE
    end(house)
    with pytest.raises(LeaseLost):
        hold.commit(2, {})
    assert house.position(stream) == 1


def test_a_round_of_a_follow_is_waited_for(house, stream):
    with round_that_ends(house.positions, "stream"):
        assert end_consumer(house.positions, house.control, "stream", "retire", patience=5).ended


def test_a_consumer_that_was_never_registered_gets_one_too(house):
    house.publish(orders="ab")
    end(house, "stream")
    stream = Stream()
    assert house.deliver(stream).is_ended
    assert (stream.ids, enrolled(house.control)) == ([], {})


@pytest.mark.parametrize("point", END_CONSUMER)
def test_29_one_that_was_killed_is_finished_by_the_next(house, stream, monkeypatch, point):
    def die():
        raise Killed

    assert at_point(monkeypatch, point, die) == []
    with pytest.raises(Killed):
        end(house)
    monkeypatch.undo()
    assert house.deliver(stream).is_ended
    end(house)
    assert (waited_for(house), enrolled(house.control), stream.ids) == ([], {}, [0, 1])
