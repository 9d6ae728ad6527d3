"""A target that was deleted and made again is never taken for the one that was written to (item 3)."""

from dataclasses import replace

import pytest
from tests.support.faults import Killed
from tests.support.memory_letters import CountedLetters
from tests.support.pipeline_world import PipelineWorld, given_gate
from tests.support.topic_samples import Topic, TopicWriter

from tidemark.delivery.operator.action_plan import ChangedMeanwhile, NotPossible
from tidemark.delivery.operator.advice import advise
from tidemark.delivery.operator.forget_pipeline import PipelineForgetting
from tidemark.delivery.state.positions import ShapeChanged
from tidemark.delivery.state.writer_state import FORGET_PIPELINE, Cause, WriterState
from tidemark.delivery.target import (
    Lacking,
    LeftByForgotten,
    TargetVerdict,
    compare,
    gaps_of,
    lacking,
)
from tidemark.delivery.writer import TargetIdentity
from tidemark.faults import FaultPoint

pytestmark = pytest.mark.unit


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def writer(topic) -> TopicWriter:
    return TopicWriter(topic)


@pytest.fixture
def delivered(house, writer) -> PipelineWorld:
    """Ids 0 to 5 are in the topic."""
    house.publish(orders="abc")
    house.publish(orders="def")
    house.deliver(writer)
    return house


def of_older_version(house: PipelineWorld, writer: TopicWriter) -> None:
    """The state as a version left it that kept no ids."""
    state = house.state(writer)
    house.positions._store(replace(state, target=None, since=None))


# Deciding


def state(position: int, target: str | None = "first", since: int | None = 0) -> WriterState:
    return WriterState("orders", "out", 1, position, {}, target=target, since=since)


@pytest.mark.parametrize(
    ("known", "present", "verdict"),
    [
        (state(5), "first", TargetVerdict.SAME),
        (state(5), None, TargetVerdict.SAME),
        (state(5), "other", TargetVerdict.REPLACED),
        (state(-1), "other", TargetVerdict.FRESH),
        (state(5, since=6), "other", TargetVerdict.FRESH),
        (state(-1, target=None), "other", TargetVerdict.ADOPT),
        (state(5, target=None), "other", TargetVerdict.DOUBTFUL),
        (state(5, target=None, since=None), "other", TargetVerdict.DOUBTFUL),
    ],
)
def test_what_the_id_of_a_target_says(known, present, verdict):
    assert compare(known, TargetIdentity(present, "topic copy") if present else None) is verdict


def test_which_parts_end_too_early():
    assert lacking({0: 4, 1: -1, 2: 9}, {0: 4, 1: 5, 2: 8}) == [Lacking(1, -1, 5)]


@pytest.mark.parametrize(
    ("reached", "since", "has_finished", "parts"),
    [
        pytest.param({0: -1, 1: 3}, None, True, [], id="nothing since an unknown start"),
        pytest.param({0: 2, 1: 3}, None, True, [0], id="ends too early"),
        pytest.param({0: -1, 1: -1}, None, True, [0, 1], id="all empty, although something was finished"),
        pytest.param({0: -1, 1: -1}, None, False, [], id="all empty, and nothing was finished yet"),
        pytest.param({0: -1, 1: -1}, 5, True, [1], id="only what came after a known start"),
        pytest.param({}, None, True, [], id="emptied by retention"),
    ],
)
def test_which_parts_certainly_lack_something(reached, since, has_finished, parts):
    expected = {0: 4, 1: 5} if reached.get(1) != 3 else {0: 4, 1: 3}
    assert [gap.part for gap in gaps_of(reached, expected, since, has_finished)] == parts


# Registering again


@pytest.mark.parametrize(
    ("what", "is_refused"), [(FORGET_PIPELINE, True), ("forget", False)], ids=["the pipeline", "the writer"]
)
def test_a_pipeline_that_was_forgotten_leaves_ids_that_mean_nothing_any_more(
    delivered, writer, what, is_refused
):
    """The same log gives the same ids again after its writer alone was forgotten, a new log others."""
    delivered.positions.forget(delivered.state(writer), delivered.deed(what))
    if is_refused:
        with pytest.raises(LeftByForgotten, match="partition 0 is at id"):
            delivered.deliver(writer)
        assert delivered.positions.load(writer.name) is None
    else:
        assert delivered.deliver(writer).position == 5


def test_a_writer_that_was_forgotten_before_its_pipeline_leaves_such_ids_too(delivered, writer, tmp_path):
    # given: the writer alone was forgotten, and its pipeline later
    delivered.positions.forget(delivered.state(writer), delivered.deed("forget"))
    delivered.clock.pass_seconds(60)
    forgetting = PipelineForgetting(delivered.consensus, "orders", CountedLetters(), clock=delivered.clock)
    forgetting.plan().execute(delivered.deed("forget"))
    # when: both are made again, with the same topic
    again = PipelineWorld(tmp_path / "again", delivered.consensus, delivered.clock)
    again.publish(orders="xyz")
    # then
    with pytest.raises(LeftByForgotten, match="partition 0 is at id 4"):
        again.deliver(writer)
    assert again.positions.load(writer.name) is None


def test_a_writer_that_was_forgotten_alone_after_its_pipeline_goes_on_where_the_topic_ends(
    delivered, writer, topic, tmp_path
):
    # given: an earlier pipeline was forgotten, and its topic made anew
    forgetting = PipelineForgetting(delivered.consensus, "orders", CountedLetters(), clock=delivered.clock)
    forgetting.plan().execute(delivered.deed("forget"))
    topic.make_again()
    again = PipelineWorld(tmp_path / "again", delivered.consensus, delivered.clock)
    again.publish(orders="xyz")
    again.deliver(writer)
    # when: the writer alone is forgotten, and added again
    again.clock.pass_seconds(60)
    again.positions.forget(again.state(writer), again.deed("forget"))
    again.deliver(writer)
    # then: what it sent is this pipeline's own
    assert (again.position(writer), topic.everything) == (2, [0, 1, 2])


def test_after_a_forgotten_pipeline_an_empty_target_is_as_good_as_any(delivered, writer, topic):
    delivered.positions.forget(delivered.state(writer), delivered.deed(FORGET_PIPELINE))
    topic.make_again()
    assert delivered.deliver(writer).position == 5


# Delivering


def test_the_id_is_kept_when_the_writer_is_registered(delivered, writer, topic):
    assert (delivered.state(writer).target, delivered.state(writer).since) == (topic.id, 0)


def test_another_id_closes_the_gate_before_anything_is_sent(delivered, writer, topic):
    topic.make_again()
    delivered.publish(orders="ghi")
    outcome = delivered.deliver(writer)
    assert (outcome.position, outcome.closed_now, topic.everything) == (5, True, [])
    assert outcome.gate.cause is Cause.REPLACED
    for said in ("first", topic.id, "tidemark offsets rewind orders out -1", "up to id 5"):
        assert said in outcome.gate.reason


@pytest.mark.parametrize("parts", [1, 3])
def test_with_other_partitions_it_is_the_same_question(delivered, writer, topic, parts):
    topic.make_again(parts)
    delivered.publish(orders="ghi")
    gate = delivered.deliver(writer).gate
    assert gate.cause is Cause.REPLACED
    assert f"{parts} partitions instead of 2" in gate.reason


def test_a_resume_sends_nothing_either_and_leaves_the_gate_closed(delivered, writer, topic):
    topic.make_again()
    delivered.publish(orders="ghi")
    delivered.deliver(writer)
    resumed = delivered.resume(writer)
    assert (resumed.gate.cause, resumed.gate.failures, topic.everything) == (Cause.REPLACED, 2, [])


def test_delivering_again_closes_the_gate_too(delivered, writer, topic):
    topic.make_again()
    outcome = delivered.deliver_again(writer)
    assert "made again" in outcome.failure
    assert (delivered.gate(writer).cause, topic.everything) == (Cause.REPLACED, [])


def test_opening_the_gate_by_hand_changes_nothing(delivered, writer, topic):
    topic.make_again()
    delivered.publish(orders="ghi")
    delivered.deliver(writer)
    delivered.operator.open("out").execute(delivered.deed("open"))
    assert delivered.deliver(writer).gate.cause is Cause.REPLACED
    assert topic.everything == []


def test_made_again_while_it_is_written_to_commits_nothing(delivered, writer, topic):
    delivered.publish(orders="ghi")
    meddling = iter([topic.make_again])
    outcome = delivered.deliver(replace(writer, before_write=lambda: next(meddling, lambda: None)()))
    assert (outcome.position, outcome.gate.cause) == (5, Cause.REPLACED)


def test_made_again_during_a_resume_commits_nothing(delivered, writer, topic):
    delivered.publish(orders="ghi")
    delivered.operator.stop("out").execute(delivered.deed("stop"))
    delivered.close_gate(writer, replace(delivered.gate(writer), cause=Cause.TARGET, through=8))
    meddling = iter([lambda: None, topic.make_again])
    resumed = delivered.resume(replace(writer, before_write=lambda: next(meddling, lambda: None)()))
    assert (resumed.position, resumed.gate.cause) == (5, Cause.REPLACED)


def test_where_nothing_was_to_be_there_an_empty_one_is_taken(house, writer, topic):
    house.publish(orders="abc")
    house.register(writer)
    topic.make_again()
    house.deliver(writer)
    assert (topic.everything, house.state(writer).target) == ([0, 1, 2], topic.id)


def test_where_nothing_was_to_be_there_but_something_is_it_is_refused(house, writer, topic):
    house.publish(orders="abc")
    house.positions.register("out", writer.shape, target=topic.id)
    topic.make_again()
    topic.ids = {0: [2]}
    assert house.deliver(writer).gate.cause is Cause.REPLACED


# Writers of older versions


def test_an_older_writer_takes_the_present_id_once_where_nothing_is_missing(delivered, writer, topic):
    of_older_version(delivered, writer)
    delivered.publish(orders="g")
    assert delivered.deliver(writer).gate is None
    assert delivered.state(writer).target == topic.id
    topic.make_again()
    delivered.publish(orders="h")
    assert delivered.deliver(writer).gate.cause is Cause.REPLACED


def test_what_was_dropped_or_acknowledged_is_not_missing(house, topic):
    writer = TopicWriter(topic, dropped=frozenset({5}))
    house.publish(orders="abcdef")
    house.deliver(writer)
    of_older_version(house, writer)
    house.publish(orders="g")
    assert house.deliver(writer).gate is None


def test_an_older_writer_whose_topic_lacks_something_is_stopped(delivered, writer, topic):
    of_older_version(delivered, writer)
    topic.make_again()
    delivered.publish(orders="g")
    gate = delivered.deliver(writer).gate
    assert gate.cause is Cause.REPLACED
    assert "partition 0 is empty and should be at id 4 at least" in gate.reason
    assert (topic.everything, delivered.state(writer).target) == ([], None)


@pytest.mark.parametrize("letters", ["", "d"], ids=["nothing yet", "one message"])
def test_an_older_writer_that_began_later_is_not_asked_for_what_was_before(house, writer, topic, letters):
    house.publish(orders="abc")
    house.deliver(writer, start=2)
    for letter in letters:
        house.publish(orders=letter)
        house.deliver(writer)
    of_older_version(house, writer)
    house.publish(orders="ef")
    assert house.deliver(writer).gate is None
    assert (house.state(writer).target, topic.everything) == (topic.id, [3, 4, 5][: 2 + len(letters)])


def test_an_older_writer_that_began_later_is_stopped_by_an_empty_topic(house, writer, topic):
    house.publish(orders="abc")
    house.deliver(writer, start=2)
    house.publish(orders="d")
    house.deliver(writer)
    of_older_version(house, writer)
    topic.make_again()
    house.publish(orders="e")
    assert house.deliver(writer).gate.cause is Cause.REPLACED


def test_and_a_rewind_lets_it_go_on(delivered, writer, topic):
    of_older_version(delivered, writer)
    topic.make_again()
    delivered.publish(orders="g")
    delivered.deliver(writer)
    delivered.operator.rewind("out", -1, writer).execute(delivered.deed("rewind"))
    delivered.deliver(writer)
    assert (topic.everything, delivered.state(writer).target) == (list(range(7)), topic.id)


def test_dying_right_after_an_adoption_is_harmless(delivered, writer, topic, kill_at):
    of_older_version(delivered, writer)
    delivered.publish(orders="g")
    kill_at(FaultPoint.TARGET_ADOPTED)
    with pytest.raises(Killed):
        delivered.deliver(writer)
    delivered.deliver(writer)
    assert (delivered.state(writer).target, topic.everything) == (topic.id, list(range(7)))


# Rewinding


def test_a_rewind_into_an_empty_one_takes_its_id_and_everything_is_sent(delivered, writer, topic):
    topic.make_again(3)
    delivered.publish(orders="ghi")
    delivered.deliver(writer)
    plan = delivered.operator.rewind("out", -1, writer)
    assert f"topic copy was made again and is empty: the writer goes on with this one (id {topic.id})" in (
        plan.lines
    )
    assert "the gate opens" in plan.lines
    plan.execute(delivered.deed("rewind"))
    outcome = delivered.deliver(writer)
    assert (outcome.gate, outcome.total.written, topic.everything) == (None, 9, list(range(9)))
    assert delivered.state(writer).shape["partitions"] == 3


def test_what_lies_before_such_a_rewind_is_not_expected_there(delivered, writer, topic):
    topic.make_again()
    plan = delivered.operator.rewind("out", 2, writer)
    assert "what the old one had up to id 2 is not asked for in it" in plan.lines
    plan.execute(delivered.deed("rewind"))
    delivered.deliver(writer)
    assert (topic.everything, delivered.state(writer).since) == ([3, 4, 5], 3)


@pytest.mark.parametrize(
    ("there", "since"),
    [({1: [7]}, 6), ({}, 3)],
    ids=["what is there keeps older ones out", "everything is sent into an empty one"],
)
def test_before_its_start_a_writer_is_expected_only_to_have_what_a_rewind_can_send(
    house, writer, topic, there, since
):
    house.publish(orders="abcdef")
    house.deliver(writer, start=5)
    house.publish(orders="gh")
    house.deliver(writer)
    topic.ids = there
    house.operator.rewind("out", 2, writer).execute(house.deed("rewind"))
    assert house.state(writer).since == since


def test_a_rewind_of_an_older_writer_does_not_guess_where_it_began(delivered, writer):
    of_older_version(delivered, writer)
    delivered.operator.rewind("out", -1, writer).execute(delivered.deed("rewind"))
    assert delivered.state(writer).since is None


def test_a_rewind_says_what_is_skipped_and_a_delivery_what_was_sent(delivered, writer, topic):
    plan = delivered.operator.rewind("out", -1, writer)
    assert "0 messages are sent to topic copy" in plan.lines
    skipped = "6 are not, because it is past them already: partition 0 up to id 4, partition 1 up to id 5"
    assert skipped in plan.lines
    assert (plan.details["to_send"], plan.details["skipped"]) == (0, 6)
    plan.execute(delivered.deed("rewind"))
    outcome = delivered.deliver(writer)
    assert (outcome.total.written, outcome.total.ignored) == (0, 6)


def test_a_resume_counts_only_what_it_really_sent(delivered, writer, topic):
    delivered.operator.stop("out").execute(delivered.deed("stop"))
    delivered.close_gate(writer, replace(delivered.gate(writer), cause=Cause.TARGET, through=5))
    topic.ids = {0: [0, 2], 1: [1, 3, 5]}
    delivered.operator.rewind("out", -1, writer).execute(delivered.deed("rewind"))
    resumed = delivered.resume(writer)
    assert (resumed.delivered, topic.everything, resumed.gate) == (1, list(range(6)), None)


def test_a_rewind_into_one_that_has_something_already_is_refused(delivered, writer, topic):
    topic.make_again()
    topic.ids = {1: [5]}
    with pytest.raises(NotPossible, match="partition 1 is at id 5, and what lies below could never be sent"):
        delivered.operator.rewind("out", -1, writer)


def test_made_again_between_plan_and_execution_is_refused(delivered, writer, topic):
    plan = delivered.operator.rewind("out", -1, writer)
    topic.make_again()
    with pytest.raises(ChangedMeanwhile):
        plan.execute(delivered.deed("rewind"))
    assert delivered.position(writer) == 5


def test_filled_between_plan_and_execution_is_refused(delivered, writer, topic):
    topic.make_again()
    plan = delivered.operator.rewind("out", -1, writer)
    topic.ids = {0: [6]}
    with pytest.raises(ChangedMeanwhile):
        plan.execute(delivered.deed("rewind"))


def test_a_rewind_while_the_topic_is_not_there_says_so_and_the_next_one_is_taken(delivered, writer, topic):
    topic.is_there = False
    plan = delivered.operator.rewind("out", -1, writer)
    assert any("not there now" in line for line in plan.lines)
    plan.execute(delivered.deed("rewind"))
    topic.make_again()
    delivered.deliver(writer)
    assert topic.everything == list(range(6))


def test_rewound_before_the_topic_was_made_again_the_advice_is_what_works(delivered, writer, topic):
    topic.is_there = False
    given_gate(delivered, writer, Cause.REPLACED, 5)
    delivered.operator.rewind("out", -1, writer).execute(delivered.deed("rewind"))
    topic.make_again()
    (hint,) = advise(delivered.state(writer), ()).hints
    assert hint.command == "tidemark resume orders out"
    assert (delivered.resume(writer).gate, topic.everything) == (None, list(range(6)))


class OtherSetting(TopicWriter):
    """The same writer after a change of its file."""

    @property
    def shape(self):
        return {**super().shape, "kind": "another"}


def test_another_setting_is_still_refused(delivered, topic):
    topic.make_again()
    with pytest.raises(ShapeChanged):
        delivered.operator.rewind("out", -1, OtherSetting(topic))


def test_another_setting_is_not_taken_for_a_target_that_was_made_again(delivered, topic):
    delivered.publish(orders="g")
    with pytest.raises(ShapeChanged, match="kind was 'topic' and is now 'another'"):
        delivered.deliver(OtherSetting(Topic(id="of another name")))
    assert delivered.gate(OtherSetting(topic)) is None
