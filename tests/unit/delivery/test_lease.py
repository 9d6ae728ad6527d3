"""The lease: one holder at a time moves a position, and a process that lost it is recognised."""

import threading
from contextlib import suppress

import pytest
from tests.support.clocks import Clock
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease import LEASE, MARGIN
from tidemark.consensus.lease_holder import holding
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Change, ObjectKey, ObjectKind, Undecided
from tidemark.delivery.state.lease import LeaseHeld, LeaseLost, WriterHold, take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState

pytestmark = pytest.mark.unit

KEY = ObjectKey(ObjectKind.WRITER, "orders/archive")


@pytest.fixture
def positions(consensus) -> Positions:
    positions = Positions(consensus, "orders")
    positions.register("archive", {})
    return positions


def state_of(positions: Positions) -> WriterState:
    state = positions.load("archive")
    assert state is not None
    return state


def taken(positions: Positions, holder: str, clock: Clock) -> WriterHold:
    return take(positions, state_of(positions), holder, clock)


def touch(consensus: MemoryConsensus) -> None:
    """Change the writer without taking it, as the compaction of its offset log does."""
    version = consensus.read(KEY, []).version
    consensus.commit(KEY, version, Change({"touched": "yes"}))


# Two holders


def test_a_taken_writer_says_who_has_it_until_when_and_with_which_token(positions, clock):
    taken(positions, "first", clock)
    lease = state_of(positions).lease
    assert (lease.holder, lease.token, lease.deadline) == ("first", 1, clock.now + LEASE)


def test_a_second_holder_is_refused_and_told_who_has_it(positions, clock):
    taken(positions, "first", clock)
    with pytest.raises(
        LeaseHeld, match="orders/archive: first has this writer until 00:17:40 UTC"
    ) as refusal:
        taken(positions, "second", clock)
    assert refusal.value.lease.holder == "first"


def test_a_refused_holder_changes_nothing(positions, clock):
    taken(positions, "first", clock)
    before = state_of(positions)
    with pytest.raises(LeaseHeld):
        taken(positions, "second", clock)
    assert state_of(positions) == before


def test_the_second_in_a_race_is_refused(positions, clock):
    seen_by_both = state_of(positions)
    take(positions, seen_by_both, "first", clock)
    with pytest.raises(LeaseHeld):
        take(positions, seen_by_both, "second", clock)


def test_a_released_writer_is_free_at_once(positions, clock):
    taken(positions, "first", clock).release()
    assert taken(positions, "second", clock).holder == "second"


def test_tokens_grow_with_every_holder(positions, clock):
    tokens = []
    for holder in ("a", "b", "c"):
        hold = taken(positions, holder, clock)
        tokens.append(hold.state.token)
        hold.release()
    assert tokens == [1, 2, 3]


def test_a_writer_that_is_gone_cannot_be_taken(positions, clock):
    seen = state_of(positions)
    positions.forget(seen, AuditEntry("forget", "ann", "why", 1))
    with pytest.raises(Exception, match="changed by another process"):
        take(positions, seen, "late", clock)


# Time-out and take-over


def test_a_silent_holder_keeps_the_writer_until_the_deadline(positions, clock):
    taken(positions, "silent", clock)
    clock.now += LEASE - 1
    with pytest.raises(LeaseHeld):
        taken(positions, "next", clock)


def test_a_silent_holder_loses_the_writer_at_the_deadline(positions, clock):
    taken(positions, "silent", clock)
    clock.now += LEASE
    assert taken(positions, "next", clock).state.token == 2


def test_a_stale_token_cannot_commit(positions, clock):
    zombie = taken(positions, "zombie", clock)
    clock.now += LEASE
    taken(positions, "next", clock)
    with pytest.raises(LeaseLost, match="orders/archive: zombie has lost this writer"):
        zombie.commit(15, {})
    assert state_of(positions).position == -1


def test_a_stale_token_cannot_commit_after_the_next_one_is_done(positions, clock):
    zombie = taken(positions, "zombie", clock)
    clock.now += LEASE
    following = taken(positions, "next", clock)
    following.commit(7, {})
    following.release()
    with pytest.raises(LeaseLost):
        zombie.commit(15, {})
    assert state_of(positions).position == 7


def test_a_stale_token_cannot_renew(positions, clock):
    zombie = taken(positions, "zombie", clock)
    clock.now += LEASE
    taken(positions, "next", clock)
    with pytest.raises(LeaseLost):
        zombie.renew()
    assert state_of(positions).lease.holder == "next"


def test_a_stale_token_cannot_release_the_next_one(positions, clock):
    zombie = taken(positions, "zombie", clock)
    clock.now += LEASE
    taken(positions, "next", clock)
    with pytest.raises(LeaseLost):
        zombie.release()
    assert state_of(positions).lease.holder == "next"


def test_a_token_does_not_come_back_with_a_writer_that_was_forgotten(positions, clock):
    zombie = taken(positions, "zombie", clock)
    clock.now += LEASE
    positions.forget(state_of(positions), AuditEntry("forget", "ann", "why", 1))
    positions.register("archive", {})
    taken(positions, "next", clock)
    with pytest.raises(LeaseLost):
        zombie.commit(15, {})
    assert state_of(positions).position == -1


def test_a_holder_that_learned_of_its_loss_gets_no_ticket_any_more(positions, clock):
    zombie = taken(positions, "zombie", clock)
    clock.now += LEASE
    taken(positions, "next", clock)
    with pytest.raises(LeaseLost):
        zombie.renew()
    with pytest.raises(LeaseLost):
        zombie.ticket(lambda: None)


def test_a_late_holder_whose_writer_was_not_taken_goes_on(positions, clock):
    late = taken(positions, "late", clock)
    clock.now += 10 * LEASE
    assert late.commit(7, {}).position == 7


# The same holder again


def test_the_same_holder_takes_its_writer_again_without_waiting(positions, clock):
    taken(positions, "run-1", clock)
    assert taken(positions, "run-1", clock).state.token == 2


def test_of_two_processes_of_one_holder_only_the_later_commits(positions, clock):
    earlier, later = taken(positions, "run-1", clock), taken(positions, "run-1", clock)
    later.commit(3, {})
    with pytest.raises(LeaseLost):
        earlier.commit(7, {})
    assert state_of(positions).position == 3


def test_what_is_left_of_another_kind_of_work_stops_before_the_writer_can_be_taken(positions, clock):
    """It has another session on the engine, so the next holder cannot interrupt it."""
    ticket = taken(positions, "orders.follow run-1", clock).ticket(lambda: positions.load("archive"))

    def is_free() -> bool:
        with suppress(LeaseHeld):
            return bool(take(positions, state_of(positions), "run-2", clock, patience=0))
        return False

    clock.now += LEASE - MARGIN - 1
    ticket.check()
    assert not is_free()
    clock.now += 1
    with pytest.raises(LeaseLost):
        ticket.check()
    assert not is_free()
    clock.now += MARGIN
    assert is_free()


# Renewal


def test_a_process_of_a_holder_that_was_replaced_learns_it_before_it_writes(positions, clock):
    """The deadline alone does not tell: the same holder has taken its writer again."""
    ticket = taken(positions, "run", clock).ticket(lambda: positions.load("archive"))
    ticket.confirm()
    taken(positions, "run", clock)
    ticket.check()
    with pytest.raises(LeaseLost):
        ticket.confirm()


def test_a_lease_that_may_have_expired_is_not_confirmed(positions, clock):
    ticket = taken(positions, "run", clock).ticket(lambda: positions.load("archive"))
    clock.now += LEASE
    with pytest.raises(LeaseLost):
        ticket.confirm()


def test_a_writer_that_is_gone_confirms_nothing(positions, clock):
    ticket = taken(positions, "run", clock).ticket(lambda: None)
    with pytest.raises(LeaseLost):
        ticket.confirm()


def test_renewing_moves_the_deadline(positions, clock):
    hold = taken(positions, "run", clock)
    clock.now += LEASE // 2
    hold.renew()
    assert state_of(positions).lease.deadline == clock.now + LEASE


def test_renewing_keeps_the_token(positions, clock):
    hold = taken(positions, "run", clock)
    hold.renew()
    assert state_of(positions).lease.token == 1


def test_a_commit_renews_too(positions, clock):
    hold = taken(positions, "run", clock)
    clock.now += LEASE // 2
    hold.commit(7, {})
    assert state_of(positions).lease.deadline == clock.now + LEASE


# The writer is changed without its lease


@pytest.mark.parametrize("step", ["commit", "renew", "release"])
def test_a_holder_outpaced_by_a_change_without_a_lease_tries_again(consensus, positions, clock, step):
    hold = taken(positions, "run", clock)
    touch(consensus)
    getattr(hold, step)(*((7, {}) if step == "commit" else ()))
    assert consensus.read(KEY, ["touched"]).rows == {"touched": "yes"}
    assert state_of(positions).version == 4


def test_a_person_who_changes_a_writer_after_the_deadline_takes_it_away(positions, clock):
    hold = taken(positions, "silent", clock)
    clock.now += LEASE
    positions.commit(state_of(positions), -1, None, lease=None)
    with pytest.raises(LeaseLost):
        hold.commit(7, {})


# An answer is lost


def test_a_commit_whose_answer_was_lost_is_found_by_the_release(clock):
    flaky = FlakyConsensus(MemoryConsensus())
    positions = Positions(flaky, "orders")
    positions.register("archive", {})
    hold = taken(positions, "run", clock)
    flaky.arm(Fault.ANSWER_LOST)
    with pytest.raises(Undecided):
        hold.commit(7, {})
    hold.release()
    assert (state_of(positions).position, state_of(positions).lease) == (7, None)


# The ticket that tasks carry


def test_a_ticket_is_good_while_there_is_time_and_the_control_plane_is_not_asked(positions, clock):
    ticket = taken(positions, "run", clock).ticket(lambda: pytest.fail("asked"))
    clock.now += LEASE - MARGIN - 1
    ticket.check()


def test_a_ticket_whose_time_may_be_over_asks_and_goes_on_where_it_was_renewed(positions, clock):
    hold = taken(positions, "run", clock)
    ticket = hold.ticket(lambda: positions.load("archive"))
    clock.now += LEASE - MARGIN
    hold.renew()
    ticket.check()


def test_a_ticket_remembers_how_far_it_was_renewed_and_does_not_ask_before_every_batch(positions, clock):
    hold, asked = taken(positions, "run", clock), []
    ticket = hold.ticket(lambda: asked.append(clock.now) or positions.load("archive"))
    clock.now += LEASE - MARGIN
    hold.renew()
    for _ in range(3):
        ticket.check()
        clock.now += 1
    assert len(asked) == 1


def test_a_ticket_is_over_a_margin_before_the_deadline(positions, clock):
    ticket = taken(positions, "run", clock).ticket(lambda: positions.load("archive"))
    clock.now += LEASE - MARGIN
    with pytest.raises(LeaseLost):
        ticket.check()


def test_a_zombie_s_ticket_is_refused(positions, clock):
    ticket = taken(positions, "zombie", clock).ticket(lambda: positions.load("archive"))
    clock.now += LEASE
    taken(positions, "next", clock)
    with pytest.raises(LeaseLost, match="zombie"):
        ticket.check()


def test_a_ticket_for_a_released_writer_is_refused(positions, clock):
    hold = taken(positions, "run", clock)
    ticket = hold.ticket(lambda: positions.load("archive"))
    hold.release()
    clock.now += LEASE
    with pytest.raises(LeaseLost):
        ticket.check()


def test_a_ticket_for_a_writer_that_is_gone_is_refused(positions, clock):
    ticket = taken(positions, "run", clock).ticket(lambda: None)
    clock.now += LEASE
    with pytest.raises(LeaseLost):
        ticket.check()


# Holding


def test_the_writer_is_given_back_at_the_end(positions, clock):
    with holding(taken(positions, "run", clock)):
        pass
    assert state_of(positions).lease is None


def test_the_writer_is_given_back_after_a_failure(positions, clock):
    with pytest.raises(ZeroDivisionError), holding(taken(positions, "run", clock)):
        raise ZeroDivisionError
    assert state_of(positions).lease is None


def test_a_lost_writer_is_left_alone_at_the_end(positions, clock):
    with holding(taken(positions, "zombie", clock)):
        clock.now += LEASE
        taken(positions, "next", clock)
    assert state_of(positions).lease.holder == "next"


def test_what_went_wrong_is_not_hidden_by_a_release_that_goes_wrong_too(clock):
    flaky = FlakyConsensus(MemoryConsensus())
    positions = Positions(flaky, "orders")
    positions.register("archive", {})
    hold = taken(positions, "run", clock)
    flaky.arm(Fault.REQUEST_LOST)
    with pytest.raises(ZeroDivisionError), holding(hold):
        raise ZeroDivisionError


def test_what_went_well_is_not_undone_by_a_release_that_goes_wrong(clock):
    flaky = FlakyConsensus(MemoryConsensus())
    positions = Positions(flaky, "orders")
    positions.register("archive", {})
    with holding(taken(positions, "run", clock)) as hold:
        hold.commit(7, {})
        flaky.arm(Fault.REQUEST_LOST)
    assert (state_of(positions).position, state_of(positions).lease.holder) == (7, "run")


def test_a_lease_is_kept_alive_while_one_step_takes_long(positions, clock, monkeypatch):
    renewed = threading.Event()
    hold = taken(positions, "run", clock)
    monkeypatch.setattr(hold, "renew", renewed.set)
    with holding(hold, every=0.001):
        assert renewed.wait(5)


def test_a_renewal_that_fails_is_tried_again(positions, clock, monkeypatch):
    failed, renewed = threading.Event(), threading.Event()
    hold = taken(positions, "run", clock)

    def renew() -> None:
        if not failed.is_set():
            failed.set()
            raise ConnectionError("no answer")
        renewed.set()

    monkeypatch.setattr(hold, "renew", renew)
    with holding(hold, every=0.001):
        assert renewed.wait(5)
