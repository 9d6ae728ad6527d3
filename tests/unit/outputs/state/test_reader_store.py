"""Readers in the control plane: what they hold stays, and who came first is decided by one object."""

import pytest
from tests.support.consensus import RecordingConsensus, SteppingConsensus
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.output_store_world import OutputStoreWorld

from tidemark.clock import SECOND
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ObjectKind, Undecided
from tidemark.outputs.errors import OutputMissing
from tidemark.outputs.model.capability import GRACE, Capability, raise_since
from tidemark.outputs.reader_errors import (
    CapabilityMovedBack,
    Forgotten,
    ReaderExpired,
    ReaderNameTaken,
    StillNeeded,
)

pytestmark = pytest.mark.unit

TERM = 60 * SECOND


def given_reader(world: OutputStoreWorld, name: str = "a", t: int = 20) -> Capability:
    capability = Capability(name, t, world.clock() + TERM, "a test")
    world.readers.register(capability)
    return capability


def raise_to(world: OutputStoreWorld, since: int) -> None:
    world.readers.change(lambda readers, now: raise_since(readers, since, now))


# registering


def test_without_readers_since_is_that_of_the_first_rendition_and_nothing_is_stored():
    world = OutputStoreWorld.begun()
    assert (world.readers.load().since, dict(world.readers.load().capabilities)) == (0, {})
    assert world.consensus.whole(world.readers.key).version == 0


def test_a_writer_without_output_has_no_readers():
    with pytest.raises(OutputMissing):
        OutputStoreWorld().readers.load()


def test_statement_22_a_reader_is_durable_when_it_has_registered():
    world = OutputStoreWorld.begun()
    held = given_reader(world)
    assert world.readers.load().capabilities == {"a": held}


def test_a_reader_is_never_registered_below_since():
    world = OutputStoreWorld.begun()
    raise_to(world, 21)
    with pytest.raises(Forgotten) as refusal:
        given_reader(world, t=20)
    assert refusal.value.since == 21
    assert world.readers.load().capabilities == {}


def test_the_id_of_another_reader_is_refused():
    world = OutputStoreWorld.begun()
    given_reader(world)
    with pytest.raises(ReaderNameTaken):
        world.readers.pin("a", 20, "ann")


@pytest.mark.parametrize("fault", Fault)
def test_statement_22_a_reader_that_registered_without_an_answer_may_do_it_again(fault):
    flaky = FlakyConsensus(MemoryConsensus())
    world = OutputStoreWorld.begun(flaky)
    capability = Capability("a", 20, world.clock() + TERM, "a test")
    flaky.arm(fault)
    with pytest.raises(Undecided):
        world.readers.register(capability)
    assert world.readers.register(capability) == 0
    flaky.land()
    assert world.readers.load().capabilities == {"a": capability}


def test_many_readers_share_the_rows_and_each_is_found_again():
    world = OutputStoreWorld.begun(RecordingConsensus())
    for number in range(200):
        given_reader(world, f"reader {number}", t=number)
    for number in range(0, 200, 2):
        world.readers.drop(f"reader {number}")
    assert sorted(one.t for one in world.readers.load().capabilities.values()) == list(range(1, 200, 2))
    changes = [change for kind, change in world.consensus.changes if kind is ObjectKind.READERS]
    # A removed row is a tombstone that every later read has to pass.
    assert [one for one in changes if one.deletes or one.ranges] == []
    assert max(len(one.puts) for one in changes[1:]) == 1


# using


def test_statement_22_a_capability_is_renewed_moved_forward_and_dropped():
    world = OutputStoreWorld.begun()
    given_reader(world)
    world.clock.pass_seconds(30)
    assert world.readers.renew("a", TERM).deadline == world.clock() + TERM
    assert world.readers.move_forward("a", 30).t == 30
    assert world.readers.load().earliest(world.clock()).t == 30
    for _ in range(2):
        world.readers.drop("a")
    assert world.readers.load().capabilities == {}


def test_statement_23_a_capability_never_moves_back():
    world = OutputStoreWorld.begun()
    given_reader(world, t=20)
    with pytest.raises(CapabilityMovedBack):
        world.readers.move_forward("a", 19)
    assert world.readers.load().capabilities["a"].t == 20


def test_a_pin_has_no_deadline_and_may_be_made_again():
    world = OutputStoreWorld.begun()
    for _ in range(2):
        held = world.readers.pin("year end", 20, "ann")
    world.clock.pass_seconds(10**9)
    assert (held.deadline, world.readers.expire()) == (None, [])
    with pytest.raises(StillNeeded) as refusal:
        raise_to(world, 20)
    assert (refusal.value.reader, refusal.value.who) == ("year end", "ann")
    world.readers.drop("year end")
    raise_to(world, 20)


# expiry


@pytest.mark.parametrize(("late", "is_gone"), [(TERM + GRACE - 1, False), (TERM + GRACE, True)])
def test_a_reader_is_removed_ten_seconds_after_its_deadline_and_not_before(late, is_gone):
    world = OutputStoreWorld.begun()
    held = given_reader(world)
    world.clock.now += late
    assert world.readers.expire() == ([held] if is_gone else [])
    assert ("a" in world.readers.load().capabilities) is not is_gone


def test_statement_22_after_expiry_every_use_is_an_error():
    world = OutputStoreWorld.begun()
    given_reader(world)
    world.clock.now += TERM + GRACE
    for _ in range(2):  # before it is removed, and afterwards
        for use in (
            lambda: world.readers.renew("a", TERM),
            lambda: world.readers.move_forward("a", 30),
        ):
            with pytest.raises(ReaderExpired):
                use()
        world.readers.expire()


def test_an_expired_reader_is_removed_in_the_step_that_forgets_its_times():
    world = OutputStoreWorld.begun(RecordingConsensus())
    given_reader(world, t=5)
    world.clock.now += TERM + GRACE
    raise_to(world, 30)
    kind, change = world.consensus.changes[-1]
    assert (kind, len(change.puts)) == (ObjectKind.READERS, 2)
    assert (world.readers.load().since, world.readers.load().capabilities) == (30, {})


def test_readers_that_crashed_are_removed_by_those_that_come():
    world = OutputStoreWorld.begun()
    for round_ in range(400):
        given_reader(world, f"reader {round_}")
        world.clock.now += TERM + GRACE
    assert len(world.readers.load().capabilities) <= 64


# at once


def test_two_readers_at_once_both_register():
    consensus = SteppingConsensus()
    world = OutputStoreWorld.begun(consensus)
    for number, request_ in enumerate(range(1, 5)):
        consensus.step_in(request_, lambda number=number: given_reader(world, f"b{number}"))
        given_reader(world, f"a{number}")
        consensus.step_in_at_last()
    assert len(world.readers.load().capabilities) == 8


@pytest.mark.parametrize("request_", range(1, 6))
def test_a_reader_that_registers_while_times_are_forgotten_holds_them_or_is_refused(request_):
    """Both orders, in one object: no reader holds a time that was forgotten."""
    consensus = SteppingConsensus()
    world = OutputStoreWorld.begun(consensus)
    refused = []

    def register() -> None:
        try:
            given_reader(world, t=20)
        except Forgotten:
            refused.append("reader")

    consensus.step_in(request_, register)
    try:
        raise_to(world, 30)
    except StillNeeded:
        refused.append("retirement")
    consensus.step_in_at_last()
    assert len(refused) == 1
    readers = world.readers.load()
    assert (readers.since, len(readers.capabilities)) == ((30, 0) if refused == ["reader"] else (0, 1))


@pytest.mark.parametrize("request_", range(1, 6))
def test_a_renewal_while_times_are_forgotten_keeps_the_reader_or_is_an_error(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.begun(consensus)
    given_reader(world, t=20)
    world.clock.now += TERM + GRACE - 1
    refused = []

    def forget_late() -> None:
        late = OutputStoreWorld(consensus)
        late.pipeline, late.clock.now = world.pipeline, world.clock() + 1  # a clock that is ahead
        try:
            raise_to(late, 30)
        except StillNeeded:
            refused.append("retirement")

    consensus.step_in(request_, forget_late)
    try:
        world.readers.renew("a", TERM)
    except ReaderExpired:
        refused.append("reader")
    consensus.step_in_at_last()
    assert len(refused) == 1
