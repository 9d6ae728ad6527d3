"""Purging: who goes, who stays, what is said about it, and what a crash leaves."""

import pytest
from tests.support.expiry_world import RUN, World, append_of, day, given_world, planned
from tests.support.faults import Killed

from tidemark.expiry.errors import AppendsPurged, NotPlanned, NotToReport, OffsetsUnseen, TooManyPurges
from tidemark.expiry.last_look import Look
from tidemark.expiry.overtaken_appends import SentPurge
from tidemark.expiry.purge import Purging
from tidemark.expiry.purges_delivered import last_offsets, not_passed
from tidemark.expiry.run_record import RunRecord
from tidemark.expiry.state import read_days, runs, unreported_runs
from tidemark.faults import FaultPoint
from tidemark.journal.action import Purge
from tidemark.log.model.binding import Binding, Offsets, Slice
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.state.holds import holds
from tidemark.log.state.pins import pins, release_pin

pytestmark = pytest.mark.unit

EXPIRY = [point for point in FaultPoint if point.startswith("expiry.")]


def reasons(report: dict) -> dict:
    return {one["key"]: one["why"] for one in report["spared"]}


def test_what_has_expired_goes_and_what_has_not_stays(tmp_path) -> None:
    world = given_world(tmp_path)
    report = world.purge(day())
    assert sorted(world.purges) == ["a", "b"]
    assert list(world.heads) == ["c"]
    assert (report["found"], report["purged"], report["rows"], report["left_alone"]) == (2, 2, 2, {})
    assert report["days"][0]["asked_again"] is None
    assert read_days(world.log.control, "w").unfinished == ()
    assert [row["purged"] for row in runs(world.log.control)] == [2]


def test_a_purge_names_the_run_and_goes_where_the_head_is(tmp_path) -> None:
    world = World(tmp_path)
    world.say("a+1")
    world.say("b+1", partition=1)
    world.replicate()
    world.pass_days()
    world.purge(day())
    assert {p: [one.origin for one in some if isinstance(one, Purge)] for p, some in world.kafka.items()} == {
        0: [RUN],
        1: [RUN],
    }
    assert not world.heads


def test_the_same_run_again_sends_nothing(tmp_path) -> None:
    world = given_world(tmp_path)
    first = world.purge(day())
    assert world.purge(day())["purged"] == first["purged"]
    assert len(world.purges) == 2
    assert len(runs(world.log.control)) == 1


def test_another_run_over_the_same_days_finds_nothing(tmp_path) -> None:
    world = given_world(tmp_path)
    world.purge(day())
    assert world.purge(day(), name="another")["found"] == 0
    assert len(world.purges) == 2


@pytest.mark.parametrize(
    ("word", "why"),
    [("a=2", "a newer append"), ("a-1", "a newer delete"), ("a!", "a newer purge")],
)
@pytest.mark.parametrize("where", ["in Kafka's tail", "bound, not published", "in the log"])
@pytest.mark.parametrize("partition", [0, 1])
def test_an_entity_of_which_there_is_news_is_left_alone(
    tmp_path, word: str, why: str, where: str, partition: int
) -> None:
    world = given_world(tmp_path)
    world.say(word, partition)
    if where == "in the log":
        world.bind()
    elif where == "bound, not published":
        binding = Binding(
            world.log.control.bindings_head().upper + 1,
            world.log.control.log_head().end + 1,
            (Slice("orders", partition, len(world.kafka[partition]) - 1, len(world.kafka[partition])),),
            "other",
        )
        world.log.control.add_binding(world.log.control.bindings_head(), binding)
    run = world.run()
    run.plan([day()], run.find([day()]), 1000)
    outcome = run.purge()
    assert [(one.key, one.why.value) for one in outcome.spared] == [("a", why)]
    assert world.purges == ["b"]


def test_marks_do_not_count(tmp_path) -> None:
    world = given_world(tmp_path)
    world.say("a~ b~")
    assert world.purge(day())["purged"] == 2


def test_what_was_left_alone_is_asked_again_by_the_next_run(tmp_path) -> None:
    world = given_world(tmp_path)
    world.say("a-1")
    report = world.purge(day())
    assert reasons(report) == {"a": "a newer delete"}
    assert read_days(world.log.control, "w").unfinished == (day(),)
    assert world.purge(name="the next one")["purged"] == 1
    assert read_days(world.log.control, "w").unfinished == ()
    assert list(world.heads) == ["c"]


def test_what_was_extended_is_not_asked_again(tmp_path) -> None:
    world = given_world(tmp_path)
    world.say("a=2")
    assert reasons(world.purge(day())) == {"a": "a newer append"}
    assert read_days(world.log.control, "w").unfinished == ()
    assert sorted(world.heads) == ["a", "c"]


def test_a_day_whose_end_is_not_bound_is_asked_again(tmp_path) -> None:
    world = World(tmp_path)
    world.say("a+1")
    world.replicate()
    report = world.purge(day())
    assert report["purged"] == 1
    assert report["days"][0]["asked_again"] == "the source is not bound up to its end"
    assert read_days(world.log.control, "w").unfinished == (day(),)


def test_days_that_were_not_asked_for_are_not_purged(tmp_path) -> None:
    world = given_world(tmp_path)
    assert world.purge(day(1), day(2))["found"] == 0
    assert not world.purges


def test_several_missed_days_in_one_run(tmp_path) -> None:
    world = given_world(tmp_path, "a+1")
    world.say("b+1")
    world.replicate()
    world.pass_days()
    report = world.purge(day(), day(1), day(2))
    assert [(one["day"], one["purged"]) for one in report["days"]] == [
        (str(day()), 1),
        (str(day(1)), 0),
        (str(day(2)), 1),
    ]


def test_suspiciously_many_stop_the_run_before_anything_is_sent(tmp_path) -> None:
    world = given_world(tmp_path)
    run = world.run()
    with pytest.raises(TooManyPurges):
        run.plan([day()], run.find([day()]), 1)
    with pytest.raises(NotPlanned):
        run.purge()
    assert not world.purges
    assert run.plan([day()], run.find([day()]), 2).total == 2


def test_only_what_was_planned_is_purged(tmp_path) -> None:
    world = given_world(tmp_path)
    run = world.run()
    run.plan([day()], run.find([day()])[:1], 10)
    assert [one.key for one in run.purge().sent] == ["a"]


def test_a_plan_that_was_discarded_is_not_carried_out(tmp_path) -> None:
    world = given_world(tmp_path)
    run = planned(world)
    run.discard()
    with pytest.raises(NotPlanned):
        run.purge()


def test_scheduled_runs_remember_how_far_they_came_and_others_do_not(tmp_path) -> None:
    world = given_world(tmp_path)
    run = world.run()
    run.open_days([day(5)])
    assert read_days(world.log.control, "w").through is None
    run.open_days([day(1), day(2)], is_scheduled=True)
    run.open_days([day(1)], is_scheduled=True)
    assert read_days(world.log.control, "w").through == day(2)
    assert read_days(world.log.control, "w").unfinished == (day(1), day(2), day(5))


def test_of_kafkas_tail_every_record_is_read_once(tmp_path) -> None:
    """However many looks it takes: otherwise the work would grow with the square of the expired."""
    world = given_world(tmp_path, "a+1 b+1 c+1 d+1 e+1 f+1")
    read = []
    records = world.records
    world.records = lambda *place: [read.append(one.offset) or one for one in records(*place)]
    run = planned(world)
    look = Look("w", run.positions, run.log, world, world)
    done = Purging(RUN, look, run.sender, RunRecord("orders", str(tmp_path), RUN), at_once=2)
    assert len(done.purge(run.find([day()])).sent) == 6
    assert read == [6, 7, 8, 9]


def test_compaction_waits_until_a_run_has_looked_for_what_its_purges_overtook(tmp_path) -> None:
    world = given_world(tmp_path)
    end = world.log.control.log_head().end
    planned(world).purge()
    assert [(one.holder, one.after) for one in holds(world.log.control)] == [(RUN, end)]
    world.replicate()
    world.run().report([day()])
    assert holds(world.log.control) == []


def test_offsets_that_kafka_lost_before_they_were_bound_stop_the_run(tmp_path) -> None:
    world = given_world(tmp_path)
    world.offsets = lambda topic: {0: Offsets(50, 60)}
    with pytest.raises(OffsetsUnseen, match="Nothing more was purged"):
        planned(world).purge()
    assert not world.purges


# The window


def test_an_append_in_the_window_is_pinned_and_the_run_fails_loudly(tmp_path) -> None:
    world = given_world(tmp_path)
    world.before_send = lambda: world.send(append_of("a", 2))
    with pytest.raises(AppendsPurged) as failed:
        world.purge(day())
    (lost,) = failed.value.found
    assert (lost.key, lost.offset) == ("a", 3)
    assert [pin.id for pin in pins(world.log.control)] == [lost.id]
    assert "a" not in world.heads
    with pytest.raises(AppendsPurged):
        world.run().report([day()])


def test_once_a_person_has_released_the_pin_the_run_is_over(tmp_path) -> None:
    world = given_world(tmp_path)
    world.before_send = lambda: world.send(append_of("a", 2))
    with pytest.raises(AppendsPurged) as failed:
        world.purge(day())
    release_pin(world.log.control, failed.value.found[0].id, "ann", "brought back", 1)
    assert world.run().report([day()])["purged"] == 2
    assert not pins(world.log.control)


def test_an_append_behind_the_purge_begins_a_new_incarnation(tmp_path) -> None:
    world = given_world(tmp_path)
    run = planned(world)
    run.purge()
    world.say("a=1")
    world.replicate()
    assert world.run().report([day()])["overtaken"] == []
    assert sorted(world.heads) == ["a", "c"]


def test_a_run_that_was_left_in_the_middle_can_be_finished_by_a_person(tmp_path) -> None:
    world = given_world(tmp_path)
    planned(world).purge()
    assert unreported_runs(world.log.control) == [RUN]
    with pytest.raises(NotToReport, match="orders/0@4"):
        world.run().finish()
    world.replicate()
    assert world.run().finish()["purged"] == 2
    with pytest.raises(NotToReport, match="is no run"):
        world.run().finish()


# Crashes


@pytest.mark.parametrize("is_replicated", [False, True], ids=["at once", "after replication"])
@pytest.mark.parametrize("point", [p for p in EXPIRY if p not in ("expiry.recovered", "expiry.pinned")])
def test_a_run_that_was_killed_is_finished_by_its_retry(tmp_path, kill_at, point, is_replicated) -> None:
    world = given_world(tmp_path)
    kill_at(point)
    with pytest.raises(Killed):
        world.purge(day())
    if is_replicated:
        world.replicate()
    report = world.purge(day())
    assert (report["purged"], report["left_alone"]) == (2, {})
    assert sorted(world.purges) == ["a", "b"], "sent once, killed or not"
    assert list(world.heads) == ["c"]
    assert read_days(world.log.control, "w").unfinished == ()
    assert [row["purged"] for row in runs(world.log.control)] == [2]


@pytest.mark.parametrize("gone", ["intended", "done"])
def test_a_run_whose_files_were_half_removed_keeps_its_numbers(tmp_path, kill_at, gone) -> None:
    world = given_world(tmp_path)
    run = planned(world)
    kill_at(FaultPoint.EXPIRY_FORGOTTEN)
    run.purge()
    world.replicate()
    with pytest.raises(Killed):
        run.report([day()])
    (file,) = tmp_path.glob(f"expiry/*/*.{gone}.json")
    file.unlink()
    assert run.report([day()])["purged"] == 2
    assert [row["purged"] for row in runs(world.log.control)] == [2]
    assert not list((tmp_path / "expiry").rglob("*.json"))


def test_a_recovery_that_was_killed_is_finished_too(tmp_path, kill_at) -> None:
    world = given_world(tmp_path)
    for point in (FaultPoint.EXPIRY_SENT, FaultPoint.EXPIRY_RECOVERED):
        kill_at(point)
        with pytest.raises(Killed):
            world.purge(day())
    assert world.purge(day())["purged"] == 2
    assert len(world.purges) == 2


def test_pins_are_all_set_though_the_run_is_killed_between_them(tmp_path, kill_at) -> None:
    world = given_world(tmp_path)
    world.before_send = lambda: world.say("a=2 b=2")
    kill_at(FaultPoint.EXPIRY_PINNED)
    with pytest.raises(Killed):
        world.purge(day())
    with pytest.raises(AppendsPurged):
        world.run().report([day()])
    assert len(pins(world.log.control)) == 2


def test_kafka_going_away_in_the_middle_costs_nothing(tmp_path) -> None:
    world = given_world(tmp_path)

    def fall() -> None:
        world.send(Purge("a", 1, RUN))  # one of them arrived
        raise ConnectionError

    world.before_send = fall
    with pytest.raises(ConnectionError):
        world.purge(day())
    assert world.purge(day())["purged"] == 2
    assert sorted(world.purges) == ["a", "b"]


def test_a_purge_that_arrives_after_the_last_look_is_found_with_what_it_took(tmp_path, kill_at) -> None:
    """The producer was killed with a purge under way; before it came an append, which the retry saw."""
    world = given_world(tmp_path)
    kill_at(FaultPoint.EXPIRY_INTENDED)
    with pytest.raises(Killed):
        world.purge(day())
    world.send(append_of("a", 2))
    assert [one.key for one in world.run().purge().spared] == ["a"]
    world.send(Purge("a", 1, RUN))
    world.replicate()
    with pytest.raises(AppendsPurged) as failed:
        world.run().report([day()])
    assert [one.key for one in failed.value.found] == ["a"]


def test_a_second_purge_of_a_purged_entity_changes_nothing(tmp_path) -> None:
    world = given_world(tmp_path)
    world.purge(day())
    before = dict(world.heads)
    world.send(Purge("a", 1, RUN))
    world.replicate()
    assert world.heads == before


def test_nothing_about_the_purged_stays_in_the_folder(tmp_path) -> None:
    world = given_world(tmp_path)
    world.purge(day())
    assert not list((tmp_path / "expiry").rglob("*.json"))
    assert all(row.get("spared") is None for row in runs(world.log.control))


def test_every_point_is_walked() -> None:
    assert len(EXPIRY) == 11


# Waiting


def test_a_run_waits_until_its_purges_are_delivered(tmp_path) -> None:
    world = given_world(tmp_path)
    run = planned(world)
    run.purge()
    assert run.waiting() == {("orders", 0): 4}
    world.bind()
    assert run.waiting() == {("orders", 0): 4}
    world.deliver()
    assert run.waiting() == {}


@pytest.mark.parametrize(
    ("reached", "position", "is_passed"),
    [
        pytest.param(14, 99, False, id="not bound"),
        pytest.param(20, 99, False, id="bound, nothing delivered"),
        pytest.param(20, 103, False, id="delivered up to it"),
        pytest.param(20, 104, True, id="delivered in the middle of a binding"),
        pytest.param(20, 200, True, id="long ago"),
    ],
)
def test_whether_a_writer_has_passed_an_offset(reached: int, position: int, is_passed: bool) -> None:
    binding = Binding(1, 100, (Slice("orders", 0, 10, 20),), "run")
    beyond = [binding] if position < binding.end else []
    wanted = last_offsets(SentPurge("orders", "k", day(), 0, 1, offset, 0) for offset in (12, 14))
    assert wanted == {("orders", 0): 14}
    assert (not not_passed(wanted, {("orders", 0): reached}, beyond, position)) is is_passed


def test_item_12_entities_of_a_topic_that_was_made_again_are_left_alone(tmp_path) -> None:
    """A purge would reach the new topic: its entities have the same keys, and may be alive."""
    world = given_world(tmp_path)
    run = planned(world)
    head = world.log.control.bindings_head()
    ((topic, partition), read) = sorted(head.reached.items())[0]
    loss = Loss(LossKind.RECREATED, topic, partition, read, read, "another")
    accepted = AcceptedLoss(loss, None, 10**6, "ann", "known", 2, 1, True)
    world.log.control.record_losses(head, [accepted])
    run.purge()
    assert world.purges == []
    assert reasons(run.report([day()])) == dict.fromkeys("ab", "its topic is gone from Kafka")
    assert world.run("later").find([day()]) == []
