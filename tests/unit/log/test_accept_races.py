"""accept beside others: two people, a run that goes on meanwhile, and the same offsets lost twice."""

from dataclasses import replace

import pytest
from tests.support.consensus import RacingConsensus
from tests.support.log_samples import given_kafka, mark_published

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.log.accept import GateChanged, accept, require_closed_gate
from tidemark.log.bind import OffsetsLost, bind
from tidemark.log.model.binding import Binding, Offsets, Slice
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit

ANN = AuditEntry("accept", "ann", "known", 7_000)
BOB = AuditEntry("accept", "bob", "known too", 7_001)
BAD = LogGate(LogGateCause.AUDIT, "the audit failed", 1_000, (0, 4), (), "d" * 64, 6_000)
AGAIN = {"orders": "second orders"}
TRUNCATED = (Offsets(0, 3), {})
RECREATED = (Offsets(0, 2), AGAIN)
REMOVED = (Offsets(8, 9), {})


class World:
    """Five offsets of one partition are bound and published; then Kafka changes."""

    def __init__(self) -> None:
        self.consensus = RacingConsensus()
        self.control = LogControl(self.consensus, "shop")
        self.runs = 0
        self.run(Offsets(0, 5))

    def run(self, offsets: Offsets, made_again: dict[str, str] | None = None) -> Binding | None:
        """Bind what Kafka has, and publish it."""
        self.runs += 1
        kafka = given_kafka({("orders", 0): offsets}, **(made_again or {}))
        binding = bind(self.control, kafka, 100, 10_000 * self.runs, f"run-{self.runs}")
        if binding is not None:
            mark_published(self.control, binding)
        return binding

    def lose(self, offsets: Offsets, made_again: dict[str, str] | None = None) -> LogGate:
        with pytest.raises(OffsetsLost):
            self.run(offsets, made_again)
        return require_closed_gate(self.control)

    @property
    def state(self) -> tuple[object, ...]:
        control = self.control
        return control.bindings_head(), control.log_head(), control.accepted_losses(), control.decisions()


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("loss", [TRUNCATED, RECREATED, REMOVED])
def test_accepting_again_changes_nothing(world, loss):
    gate = world.lose(*loss)
    accept(world.control, gate, ANN)
    before = world.state
    with pytest.raises(GateChanged):
        accept(world.control, gate, BOB)
    assert world.state == before


@pytest.mark.parametrize("loss", [TRUNCATED, RECREATED, REMOVED])
def test_of_two_people_at_once_the_first_is_kept(world, loss):
    gate = world.lose(*loss)
    world.consensus.before_next_commit = lambda: accept(world.control, gate, ANN)
    with pytest.raises(GateChanged):
        accept(world.control, gate, BOB)
    assert [one.who for one in world.control.accepted_losses()] == ["ann"]
    assert [one.who for one in world.control.decisions()] == ["ann"]


@pytest.mark.parametrize(
    ("loss", "later"),
    [
        pytest.param(TRUNCATED, Offsets(0, 5), id="truncated"),
        pytest.param(RECREATED, Offsets(0, 5), id="recreated"),
        pytest.param(REMOVED, Offsets(8, 12), id="removed"),
    ],
)
def test_an_acceptance_that_comes_late_does_not_take_the_source_back(world, loss, later):
    """What was bound since would be bound again, and every message of it would be there twice."""
    gate = world.lose(*loss)
    accept(world.control, gate, ANN)
    world.run(later, loss[1])
    before = world.state
    with pytest.raises(GateChanged):
        accept(world.control, gate, BOB)
    assert world.state == before


@pytest.mark.parametrize(
    ("loss", "later"),
    [
        pytest.param(TRUNCATED, Offsets(0, 5), id="truncated"),
        pytest.param(RECREATED, Offsets(0, 5), id="recreated"),
    ],
)
def test_an_acceptance_overtaken_by_another_and_a_run_does_not_take_the_source_back(world, loss, later):
    gate = world.lose(*loss)

    def overtake() -> None:
        accept(world.control, gate, ANN)
        world.run(later, loss[1])

    world.consensus.before_next_commit = overtake
    with pytest.raises(GateChanged):
        accept(world.control, gate, BOB)
    assert world.control.bindings_head().reached == {("orders", 0): 5}
    assert [one.who for one in world.control.accepted_losses()] == ["ann"]


@pytest.mark.parametrize("loss", [TRUNCATED, RECREATED])
def test_finishing_for_a_process_that_died_does_not_take_the_source_back(world, loss):
    """Ann's loss was recorded, her gate is not open yet, and a run has bound what came behind the loss."""
    offsets, made_again = loss
    gate = world.lose(offsets, made_again)
    accept(world.control, gate, ANN)
    kafka = given_kafka({("orders", 0): Offsets(0, 5)}, **made_again)
    bind(world.control, kafka, 100, 90_000, "run that died too")
    world.control.close_gate(gate)  # as if that run had died before it opened the gate
    accept(world.control, gate, BOB)
    assert world.control.log_gate() is None
    assert world.control.bindings_head().reached == {("orders", 0): 5}
    assert [one.who for one in world.control.accepted_losses()] == ["ann"]


def test_a_loss_that_kafka_has_made_good_is_not_recorded_any_more(world):
    gate = world.lose(*TRUNCATED)
    world.run(Offsets(0, 6))
    before = world.state
    with pytest.raises(GateChanged):
        accept(world.control, gate, ANN)
    assert world.state == before


def test_a_gate_that_closed_for_another_reason_stays_closed_and_nothing_is_recorded(world):
    gate = world.lose(*TRUNCATED)
    world.control.close_gate(BAD)
    before = world.state
    with pytest.raises(GateChanged):
        accept(world.control, gate, ANN)
    assert world.state == before
    assert world.control.log_gate() == BAD


def test_more_that_is_lost_is_not_accepted_with_what_the_person_saw(world):
    gate = world.lose(Offsets(0, 3))
    more = world.lose(Offsets(0, 1))
    with pytest.raises(GateChanged):
        accept(world.control, gate, ANN)
    assert (world.control.log_gate(), world.control.accepted_losses()) == (more, [])


def test_an_acceptance_goes_through_while_time_passes(world):
    gate = world.lose(*TRUNCATED)
    head = world.control.bindings_head()
    world.consensus.before_next_commit = lambda: world.control.advance_upper(head, 90_000)
    accept(world.control, gate, ANN)
    after = world.control.bindings_head()
    assert (after.upper, after.reached) == (90_000, {("orders", 0): 3})


def test_a_gate_closed_again_for_the_same_loss_is_accepted_with_its_time(world):
    gate = world.lose(*TRUNCATED)
    world.lose(*TRUNCATED)
    accept(world.control, replace(gate, at=1), ANN)
    assert [one.found for one in world.control.accepted_losses()] == [gate.at]


# Again, with nothing bound in between


@pytest.mark.parametrize(
    ("second", "goes_on"),
    [
        pytest.param((Offsets(6, 9), {}), Slice("orders", 0, 6, 9), id="then removed"),
        pytest.param((Offsets(0, 9), AGAIN), Slice("orders", 0, 0, 9), id="then recreated"),
        pytest.param((Offsets(0, 1), {}), Slice("orders", 0, 1, 4), id="then truncated further"),
    ],
)
def test_a_partition_that_lost_something_can_lose_more(world, second, goes_on):
    accept(world.control, world.lose(*TRUNCATED), ANN)
    accept(world.control, world.lose(*second), BOB)
    offsets, made_again = second
    binding = world.run(Offsets(offsets.earliest, goes_on.upper), made_again)
    assert binding.slices == (goes_on,)
    assert [one.who for one in world.control.accepted_losses()] == ["ann", "bob"]


def test_the_same_offsets_can_be_lost_twice(world):
    """Removed up to 8, truncated to 5, filled again and removed again up to 8."""
    for offsets, person in ((Offsets(8, 8), ANN), (Offsets(0, 5), BOB), (Offsets(8, 8), ANN)):
        accept(world.control, world.lose(offsets), person)
    assert world.run(Offsets(8, 9)).slices == (Slice("orders", 0, 8, 9),)
    assert [one.who for one in world.control.accepted_losses()] == ["ann", "bob", "ann"]
