"""What people do: rewind, stop, open and forget; and what all of them have in common."""

from dataclasses import replace

import pytest
from tests.support.consensus import RacingConsensus
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import PipelineWorld, given_stopped_at

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease import LEASE
from tidemark.delivery.compacted_history import HistoryCompacted
from tidemark.delivery.operator.action_plan import ActionPlan, ChangedMeanwhile, NotPossible
from tidemark.delivery.operator.actions import OperatorActions
from tidemark.delivery.resume import Resumed
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.state.writer_state import Cause, WriterGate

pytestmark = pytest.mark.unit


def acknowledge(house: PipelineWorld, writer: Stream, first: int, last: int | None = None) -> ActionPlan:
    return house.operator.acknowledge(writer, first, last, house.letters, untried=True)


def given_compacted(house: PipelineWorld, below: int, policy: str = "journal") -> OperatorActions:
    """The operator of a log that is compacted."""
    log = house.log
    manifest = log.manifest.compacted(below, policy)
    return OperatorActions(house.positions, replace(log, manifest=manifest), house.clock)


# Rewind


def test_a_rewind_goes_back_and_everything_after_is_delivered_again(house):
    house.publish(orders="ab")
    house.publish(orders="cd")
    house.deliver(writer := Shelf())
    writer.calls = []
    house.rewind("shelf", 1)
    assert house.position(writer) == 1
    house.deliver(writer)
    assert (writer.calls, house.position(writer), writer.ids) == ([[2, 3]], 3, [0, 1, 2, 3])


def test_a_rewind_into_the_middle_of_a_binding_delivers_it_whole(house):
    house.publish(orders="abcd")
    house.deliver(writer := Shelf())
    writer.calls = []
    house.rewind("shelf", 1)
    house.deliver(writer)
    assert (writer.calls, house.position(writer)) == ([[0, 1, 2, 3]], 3)


@pytest.mark.parametrize("position", [-2, 3, 4, 100])
def test_a_rewind_goes_back_and_not_beyond_the_beginning(house, position):
    house.publish(orders="abcd")
    house.deliver(writer := Stream())
    with pytest.raises(NotPossible, match="it is at 3, so a rewind goes to an id from -1 to 2"):
        house.operator.rewind("stream", position)
    assert house.position(writer) == 3


@pytest.mark.parametrize("position", [-1, 0, 2])
def test_a_rewind_may_go_to_any_id_before(house, position):
    house.publish(orders="abcd")
    house.deliver(writer := Stream())
    house.rewind("stream", position)
    assert house.position(writer) == position


@pytest.mark.parametrize(
    ("position", "allowed"),
    [
        pytest.param(0, False, id="below"),
        pytest.param(2, False, id="a binding that begins below"),
        pytest.param(3, True, id="a binding that begins there"),
        pytest.param(4, True, id="above"),
    ],
)
def test_a_rewind_below_what_is_compacted_is_refused(house, position, allowed):
    """Bindings are delivered whole, so the one with the next id has to be there from its beginning."""
    house.publish(orders="ab")
    house.publish(orders="cd")
    house.publish(orders="ef")
    house.deliver(Stream())
    operator = given_compacted(house, below=3)
    if allowed:
        operator.rewind("stream", position, Stream())
    else:
        with pytest.raises(HistoryCompacted, match=r"compacted below id 3.*`start: earliest`"):
            operator.rewind("stream", position, Stream())


def test_a_rewind_leaves_the_gate_as_it_is(house):
    writer = given_stopped_at(house, 4)
    before = house.gate(writer)
    house.rewind("stream", 1)
    assert house.gate(writer) == before


def test_the_plan_of_a_rewind(house):
    writer = given_stopped_at(house, 4)
    house.acknowledge(writer, 4)
    plan = house.operator.rewind("stream", 1)
    assert (plan.action, plan.details) == ("rewind", {"position": 1, "again": 3})
    assert plan.lines == (
        "position 4 → 1",
        "3 ids are delivered again by the next run",
        "1 of them, from id 4 on, were acknowledged: never written",
    )


# Stop and open


def test_a_writer_is_stopped_where_it_is(house):
    house.publish(orders="abc")
    house.deliver(writer := Stream())
    house.operator.stop("stream").execute(house.deed("stop", "bob"))
    gate = house.gate(writer)
    assert (gate.cause, gate.first_id, gate.through) == (Cause.HAND, 3, 2)
    assert (gate.reason, gate.at) == ("stopped by bob: to test stop", house.clock.now)


def test_a_stopped_writer_gets_nothing(house):
    house.publish(orders="abc")
    writer = Stream()
    house.register(writer)
    house.operator.stop("stream").execute(house.deed("stop"))
    house.deliver(writer)
    assert writer.calls == []


def test_i19_a_stopped_writer_stays_as_it_is_when_it_is_stopped_again(house):
    writer = given_stopped_at(house, 2)
    before = house.state(writer)
    plan = house.operator.stop("stream")
    plan.execute(house.deed("stop"))
    assert (plan.changes, "it is stopped already" in plan.lines[0], house.state(writer)) == (
        False,
        True,
        before,
    )


def test_an_opened_writer_goes_on_in_bulk_and_skips_nothing(house):
    writer = given_stopped_at(house, 2)
    writer.bad, writer.calls = set(), []
    house.operator.open("stream").execute(house.deed("open"))
    house.deliver(writer)
    assert (writer.calls, writer.ids) == ([[0, 1, 2, 3, 4, 5], [6, 7, 8]], list(range(9)))


def test_an_open_writer_is_not_opened(house):
    house.register(Stream())
    with pytest.raises(NotPossible, match="its gate is open"):
        house.operator.open("stream")


def test_the_plan_of_an_opening_says_what_closed_it_and_what_follows(house):
    given_stopped_at(house, 2)
    first, second = house.operator.open("stream").lines
    assert first.startswith("the gate opens (message: orders/stream: orders/0, offset 2")
    assert second == "the next run delivers from id 2 on, in bulk; nothing is skipped"


def test_a_gate_that_a_verification_closed_is_opened_by_hand(house):
    writer = Stream()
    house.register(writer)
    house.close_gate(writer, WriterGate(Cause.VERIFICATION, 0, 0, 0, "differs", 0))
    house.operator.open("stream").execute(house.deed("open"))
    assert house.gate(writer) is None


# Forget


def test_a_writer_that_is_in_no_file_is_forgotten(house):
    given_stopped_at(house, 2)
    house.operator.forget("stream", ["archive"]).execute(house.deed("forget"))
    assert house.positions.load("stream") is None


def test_a_declared_writer_is_not_forgotten(house):
    writer = given_stopped_at(house, 2)
    with pytest.raises(NotPossible, match="it is in the pipeline's file; remove it there first"):
        house.operator.forget("stream", ["archive", "stream"])
    assert house.position(writer) == 1


def test_what_people_did_is_kept_for_ever(house):
    given_stopped_at(house, 2)
    house.operator.open("stream").execute(AuditEntry("open", "ann", "fixed", 1))
    house.operator.stop("stream").execute(AuditEntry("stop", "bob", "to retire it", 2))
    house.operator.forget("stream", []).execute(AuditEntry("forget", "bob", "retired", 3))
    assert house.positions.deeds("stream") == [
        AuditEntry("open", "ann", "fixed", 1),
        AuditEntry("stop", "bob", "to retire it", 2),
        AuditEntry("forget", "bob", "retired", 3),
    ]


# All of them


ACTIONS = {
    "acknowledge": lambda house, writer: acknowledge(house, writer, 2),
    "rewind": lambda house, writer: house.operator.rewind(writer.name, 0),
    "stop": lambda house, writer: house.operator.stop(writer.name),
    "open": lambda house, writer: house.operator.open(writer.name),
    "forget": lambda house, writer: house.operator.forget(writer.name, []),
}


def given_ready_for(house: PipelineWorld, action: str) -> Stream:
    writer = given_stopped_at(house, 2)
    if action == "stop":
        house.operator.open("stream").execute(house.deed("open"))
    return writer


@pytest.mark.parametrize("action", ACTIONS)
def test_a_plan_changes_nothing(house, action):
    writer = given_ready_for(house, action)
    before = house.rows(writer)
    ACTIONS[action](house, writer)
    assert house.rows(writer) == before


@pytest.mark.parametrize("action", ACTIONS)
def test_a_mistyped_name_creates_nothing(house, action):
    given_ready_for(house, action)
    stranger = Stream("straem")
    with pytest.raises(NotPossible, match=r"orders/straem: no writer of this name .* Nothing was changed\."):
        ACTIONS[action](house, stranger)
    assert house.rows(stranger) == {}


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_is_done_while_a_run_has_the_writer(house, action):
    writer = given_ready_for(house, action)
    take(house.positions, house.state(writer), "run-7", house.clock)
    before = house.rows(writer)
    with pytest.raises(LeaseHeld, match="run-7 has this writer"):
        ACTIONS[action](house, writer)
    assert house.rows(writer) == before


@pytest.mark.parametrize("action", ACTIONS)
def test_what_a_dead_run_left_does_not_hold_a_person_up(house, action):
    writer = given_ready_for(house, action)
    take(house.positions, house.state(writer), "run-7", house.clock)
    house.clock.now += LEASE
    ACTIONS[action](house, writer).execute(house.deed(action))
    state = house.positions.load("stream")
    assert state is None or state.lease is None


@pytest.mark.parametrize("action", ACTIONS)
def test_a_plan_that_was_overtaken_is_not_carried_out(house, action):
    writer = given_ready_for(house, action)
    plan = ACTIONS[action](house, writer)
    take(house.positions, house.state(writer), "run-7", house.clock)
    before = house.rows(writer)
    with pytest.raises(ChangedMeanwhile, match="it was changed while you looked at the plan"):
        plan.execute(house.deed(action))
    assert house.rows(writer) == before


@pytest.mark.parametrize("action", ACTIONS)
def test_a_plan_that_is_overtaken_in_the_last_moment_is_not_carried_out(tmp_path, action):
    consensus = RacingConsensus()
    house = PipelineWorld(tmp_path, consensus)
    writer = given_ready_for(house, action)
    plan = ACTIONS[action](house, writer)
    state = house.state(writer)
    consensus.before_next_commit = lambda: take(house.positions, state, "run-7", house.clock)
    with pytest.raises(ChangedMeanwhile):
        plan.execute(house.deed(action))
    assert house.state(writer).lease.holder == "run-7"


@pytest.mark.parametrize("action", ACTIONS)
def test_every_deed_is_kept_with_who_when_and_why(house, action):
    writer = given_ready_for(house, action)
    deed = AuditEntry(action, "bob", "because", 42)
    ACTIONS[action](house, writer).execute(deed)
    assert house.positions.deeds("stream")[-1] == deed


def test_a_plan_is_carried_out_once(house):
    writer = given_stopped_at(house, 2)
    plan = acknowledge(house, writer, 2)
    plan.execute(house.deed("acknowledge"))
    with pytest.raises(ChangedMeanwhile):
        plan.execute(house.deed("acknowledge"))


def test_after_an_acknowledgement_a_resume_goes_on_behind_it(house):
    writer = given_stopped_at(house, 2)
    house.acknowledge(writer, 2)
    writer.calls = []
    assert house.resume(writer) == Resumed(5, 3, None)
    assert writer.calls == [[3], [4], [5]]
