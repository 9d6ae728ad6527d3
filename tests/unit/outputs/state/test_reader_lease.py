"""A reader in the process that reads: renewed in the background, checked around every read, never wrong."""

from threading import Event
from threading import enumerate as threads

import pytest
from structlog.testing import capture_logs
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.output_store_world import OutputStoreWorld

from tidemark.clock import SECOND
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Undecided
from tidemark.outputs.model.capability import GRACE, Capability
from tidemark.outputs.model.reading import check_readable
from tidemark.outputs.reader_errors import CapabilityMovedBack, Forgotten, ReaderExpired
from tidemark.outputs.state.reader_lease import (
    TERM,
    ReaderLease,
    held_for_term,
    held_reader,
    new_capability,
)

pytestmark = pytest.mark.unit


def given_lease(world: OutputStoreWorld, t: int = 20) -> ReaderLease:
    """A registered reader without a thread that renews it."""
    capability = new_capability(world.readers, t, "a test")
    return ReaderLease(world.readers, capability, world.readers.register(capability))


def held(world: OutputStoreWorld) -> list[Capability]:
    return list(world.readers.load().capabilities.values())


# the block


def test_a_reader_is_registered_while_the_block_runs():
    world = OutputStoreWorld.begun()
    with held_reader(world.readers, 20, "a test") as lease:
        (known,) = held(world)
        assert (known.t, known.deadline) == (20, world.clock() + TERM)
        assert known.who.startswith("a test on ")
        assert (lease.check(), lease.since) == (known, 0)
    assert held(world) == []
    with pytest.raises(ReaderExpired):
        lease.check()


def test_a_block_below_since_does_not_begin():
    world = OutputStoreWorld.handed_over()
    world.retire(1)
    with pytest.raises(Forgotten), held_reader(world.readers, 40, "a test"):
        pytest.fail("it began")


def test_it_is_renewed_in_the_background():
    world = OutputStoreWorld.begun()
    renewed = Event()
    real = ReaderLease.renew

    class Watched(ReaderLease):
        def renew(self) -> None:
            real(self)
            renewed.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.outputs.state.reader_lease.ReaderLease", Watched)
        world.clock.pass_seconds(1)
        with held_reader(world.readers, 20, "a test", term=SECOND // 100):
            assert renewed.wait(10)
    assert not [one for one in threads() if one.name.startswith("lease of reader")]


def test_a_reader_that_was_removed_is_lost_and_not_dropped_again():
    world = OutputStoreWorld.begun()
    with capture_logs() as logs, held_reader(world.readers, 20, "a test") as lease:
        world.clock.now += TERM + GRACE
        world.readers.expire()
        with pytest.raises(ReaderExpired):
            lease.renew()
    assert logs == []


# the term


def test_within_the_term_nothing_is_asked():
    world = OutputStoreWorld.begun()
    lease = given_lease(world)
    world.clock.now += TERM - 1
    world.consensus = None  # any request would fail
    assert lease.check().t == 20


@pytest.mark.parametrize("late", [TERM, TERM + GRACE - 1])
def test_a_process_that_slept_past_its_deadline_goes_on_while_its_row_is_there(late):
    world = OutputStoreWorld.begun()
    lease = given_lease(world)
    world.clock.now += late
    assert lease.check().deadline == world.clock() + TERM
    assert held(world) == [lease.check()]


def test_statement_22_after_expiry_every_call_is_an_error_for_ever():
    world = OutputStoreWorld.begun()
    lease = given_lease(world)
    world.clock.now += TERM + GRACE
    for _ in range(2):
        for use in (lease.check, lease.renew, lambda: lease.move_forward(30), lambda: lease.while_held(str)):
            with pytest.raises(ReaderExpired):
                use()


def test_a_holder_whose_clock_is_behind_is_told_as_soon_as_it_asks():
    world = OutputStoreWorld.begun()
    lease = given_lease(world)
    ahead = OutputStoreWorld(world.consensus)
    ahead.pipeline, ahead.clock.now = world.pipeline, world.clock() + TERM + GRACE
    ahead.readers.expire()
    world.clock.now += TERM + 1
    with pytest.raises(ReaderExpired):
        lease.check()


def test_a_reader_that_was_removed_before_its_deadline_is_over_as_soon_as_a_renewal_finds_that():
    world = OutputStoreWorld.begun()
    lease = given_lease(world)
    world.readers.drop(lease.check().reader)  # by an operator
    with pytest.raises(ReaderExpired):
        lease.renew()
    with pytest.raises(ReaderExpired):
        lease.check()


def test_a_read_that_outlasts_the_term_gives_no_answer():
    world = OutputStoreWorld.handed_over()
    lease = given_lease(world, t=20)

    def slow(capability: Capability) -> str:
        rendition = check_readable(world.output, capability, 20, world.clock())
        world.clock.now += TERM + GRACE
        world.retire(1)  # the reader is expired: its times are forgotten, and the place is dropped
        return "what was left of it" if rendition.place not in world.removal.places else "all rows"

    with pytest.raises(ReaderExpired):
        lease.while_held(slow)


# moving on


def test_statement_23_a_reader_moves_forward_only():
    world = OutputStoreWorld.begun()
    lease = given_lease(world, t=20)
    lease.move_forward(30)
    assert (lease.check().t, held(world)[0].t) == (30, 30)
    with pytest.raises(CapabilityMovedBack):
        lease.move_forward(29)
    assert lease.check().t == 30


@pytest.mark.parametrize("fault", Fault)
def test_what_may_have_been_given_up_is_given_up(fault):
    flaky = FlakyConsensus(MemoryConsensus())
    world = OutputStoreWorld.begun(flaky)
    lease = given_lease(world, t=20)
    flaky.arm(fault)
    with pytest.raises(Undecided):
        lease.move_forward(30)
    flaky.land()
    assert lease.check().t == 30
    lease.renew()
    assert lease.check().t == 30
    lease.move_forward(30)
    assert held(world)[0].t == 30


@pytest.mark.parametrize("fault", Fault)
def test_a_renewal_without_an_answer_counts_for_nothing(fault):
    flaky = FlakyConsensus(MemoryConsensus())
    world = OutputStoreWorld.begun(flaky)
    lease = given_lease(world)
    before = lease.check()
    world.clock.pass_seconds(1)
    flaky.arm(fault)
    with pytest.raises(Undecided):
        lease.renew()
    assert lease.check() == before
    lease.renew()
    flaky.land()
    assert lease.check().deadline == held(world)[0].deadline == world.clock() + TERM


def test_a_read_is_repeated_where_the_reader_moves_on_during_it():
    world = OutputStoreWorld.begun()
    lease = given_lease(world, t=20)
    seen: list[int] = []

    def read(capability: Capability) -> int:
        seen.append(capability.t)
        if len(seen) == 1:
            lease.move_forward(30)  # another thread
        return capability.t

    assert lease.while_held(read) == 30
    assert seen == [20, 30]


# for a term, without a process


def test_reads_of_one_time_share_a_capability_that_ends_by_itself():
    world = OutputStoreWorld.begun()
    first = held_for_term(world.readers, "spark-20", 20, "a test", TERM)
    world.clock.pass_seconds(60)
    second = held_for_term(world.readers, "spark-20", 20, "another test", TERM)
    assert [one.reader for one in held(world)] == ["spark-20"]
    assert second.deadline == first.deadline + 60 * SECOND
    assert first.who.startswith("a test on ")


def test_a_capability_whose_term_is_over_begins_again():
    world = OutputStoreWorld.begun()
    held_for_term(world.readers, "spark-20", 20, "a test", TERM)
    world.clock.pass_seconds((TERM + GRACE) / SECOND)
    again = held_for_term(world.readers, "spark-20", 20, "a test", TERM)
    assert held(world) == [again]
    assert again.is_usable_at(world.clock())


def test_a_time_below_since_is_not_held_for_a_term():
    world = OutputStoreWorld.handed_over()
    world.retire(1)
    with pytest.raises(Forgotten):
        held_for_term(world.readers, "spark-40", 40, "a test", TERM)
    assert held(world) == []
