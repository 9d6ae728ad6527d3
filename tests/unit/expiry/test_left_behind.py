"""What a run leaves behind when it could not go on: holds, pins, files, days and lines of history."""

from datetime import timedelta

import pytest
from tests.support.expiry_world import FIRST_DAY, RUN, day, given_world, planned
from tests.support.faults import Killed

from tidemark.expiry.days import day_end
from tidemark.expiry.errors import AppendsPurged, NotToReport
from tidemark.expiry.state import runs, unreported_runs
from tidemark.faults import FaultPoint
from tidemark.log.state.holds import Hold, add_hold, holds
from tidemark.log.state.lease import LogHeld, take_log
from tidemark.log.state.pins import Pin, add_pin, pins

pytestmark = pytest.mark.unit


def test_a_run_that_dies_between_sending_and_recording_is_searched_for_what_its_purges_overtook(
    tmp_path, kill_at
) -> None:
    # Given: an append in the window, purges sent, and no record of it.
    world = given_world(tmp_path)
    world.before_send = lambda: world.say("a=2")
    run = planned(world)
    kill_at(FaultPoint.EXPIRY_SENT)
    with pytest.raises(Killed):
        run.purge()
    # When: a person finishes it before they are replicated, and again afterwards.
    with pytest.raises(NotToReport, match="not replicated yet: orders/0@"):
        world.run().finish()
    world.replicate()
    with pytest.raises(AppendsPurged) as failed:
        world.run().finish()
    # Then
    assert [one.key for one in failed.value.found] == ["a"]
    assert [pin.id for pin in pins(world.log.control)] == [one.id for one in failed.value.found]


def test_a_run_that_failed_before_it_sent_anything_keeps_no_run_waiting(tmp_path) -> None:
    world = given_world(tmp_path)
    run = planned(world)

    def fall(topic: str) -> None:
        raise ConnectionError

    world.offsets = fall
    with pytest.raises(ConnectionError):
        run.purge()
    assert unreported_runs(world.log.control) == []


def test_a_run_that_failed_when_it_had_sent_something_keeps_compaction_waiting(tmp_path) -> None:
    world = given_world(tmp_path)

    def fall() -> None:
        raise ConnectionError

    world.before_send = fall
    with pytest.raises(ConnectionError):
        planned(world).purge()
    assert unreported_runs(world.log.control) == [RUN]


def test_entities_whose_topic_is_gone_are_left_alone(tmp_path) -> None:
    world = given_world(tmp_path)
    run = planned(world)
    world.kafka = {}
    assert run.purge().sent == ()
    report = run.report([day()])
    assert report["left_alone"] == {"its topic is gone from Kafka": 2}
    assert report["days"][0]["asked_again"] == "entities are left that expired on it"
    assert holds(world.log.control) == []


def test_what_a_purge_overtook_is_pinned_also_while_a_compaction_has_the_log(tmp_path) -> None:
    world = given_world(tmp_path)
    world.before_send = lambda: world.say("a=2")
    planned(world).purge()
    world.replicate()
    take_log(world.log.control, "compaction", lambda: world.log.now)
    with pytest.raises(AppendsPurged):
        world.run().report([day()])
    assert len(pins(world.log.control)) == 1


def test_a_hold_does_not_let_others_be_pinned_while_a_compaction_has_the_log(tmp_path) -> None:
    world = given_world(tmp_path)
    control, now = world.log.control, world.log.now
    add_hold(control, Hold(RUN, 1))
    take_log(control, "compaction", lambda: now)
    with pytest.raises(LogHeld):
        add_pin(control, Pin(1, RUN, "below the hold", now), held_by=RUN)
    assert add_pin(control, Pin(2, RUN, "behind the hold", now), held_by=RUN).id == 2


def test_a_run_that_reports_again_after_another_one_is_one_line_of_history(tmp_path) -> None:
    world = given_world(tmp_path)
    world.before_send = lambda: world.say("a=2")
    with pytest.raises(AppendsPurged):
        world.purge(day())
    world.purge(day(1), name="another")
    with pytest.raises(AppendsPurged):
        world.run().report([day()])
    assert [(row["run"], row["purged"]) for row in runs(world.log.control)] == [(RUN, 2), ("another", 0)]


def test_attempts_that_are_alive_at_once_keep_their_intents_apart(tmp_path) -> None:
    world = given_world(tmp_path)
    planned(world)
    world.before_send = lambda: world.run().purge()  # the retry goes on while the first attempt still sends
    world.run().purge()
    assert world.run().last_offsets() == {("orders", 0): len(world.kafka[0]) - 1}
    assert sorted(world.purges) == ["a", "a", "b", "b"]
    world.replicate()
    assert sorted(world.heads) == ["c"]


def test_the_first_scheduled_run_of_all_asks_the_days_since_the_log_has_begun(tmp_path) -> None:
    world = given_world(tmp_path)
    world.pass_days(10)
    run = world.run()
    start = day_end(FIRST_DAY + timedelta(days=5), run.zone)
    end = day_end(FIRST_DAY + timedelta(days=6), run.zone)
    assert run.due(start, end) == tuple(day(number) for number in range(7))
    run.open_days(run.due(start, end), is_scheduled=True)
    world.purge()
    assert run.due(start, end) == (day(6),)
