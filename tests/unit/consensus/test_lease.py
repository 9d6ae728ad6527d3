"""The rules of leases, whatever is lent."""

import pytest

from tidemark.consensus.lease import LEASE, MARGIN, Lease, confirmed, lease_of_another, new_lease

pytestmark = pytest.mark.unit

NOW = 1_000_000_000
HELD = Lease("ann", 3, NOW + 10)


@pytest.mark.parametrize(
    ("found", "holder", "now", "other"),
    [
        (None, "bob", NOW, None),
        (HELD, "bob", NOW, HELD),
        (HELD, "ann", NOW, None),
        (HELD, "bob", NOW + 9, HELD),
        (HELD, "bob", NOW + 10, None),
    ],
    ids=["no holder", "another holder", "the same holder", "to the last moment", "and no longer"],
)
def test_only_another_holder_that_is_alive_stands_in_the_way(found, holder, now, other):
    assert lease_of_another(found, holder, now) == other


def test_a_new_lease_has_a_token_that_was_never_used():
    assert new_lease(3, "bob", NOW) == Lease("bob", 4, NOW + LEASE)


def test_a_prolonged_lease_is_the_same_one():
    assert HELD.prolonged(NOW + 5) == Lease("ann", 3, NOW + 5 + LEASE)


def test_before_it_is_over_it_may_be_over_by_another_clock():
    lease = new_lease(0, "ann", NOW)
    assert lease.is_safe_at(lease.deadline - MARGIN - 1)
    assert not lease.is_safe_at(lease.deadline - MARGIN)
    assert lease.is_held_at(lease.deadline - 1)
    assert not lease.is_held_at(lease.deadline)


def test_a_lease_with_time_left_is_not_read_again():
    def reload() -> Lease:
        raise AssertionError("it was read")

    lease = new_lease(0, "ann", NOW)
    assert confirmed(lease, reload, lambda: NOW) is lease


def test_a_lease_whose_time_is_nearly_over_may_have_been_renewed():
    lease, late = new_lease(0, "ann", NOW), NOW + LEASE - MARGIN
    renewed = lease.prolonged(late)
    assert confirmed(lease, lambda: renewed, lambda: late) == renewed


@pytest.mark.parametrize(
    "found", [None, new_lease(1, "bob", NOW + LEASE), new_lease(0, "ann", NOW)], ids=["gone", "taken", "over"]
)
def test_a_lease_that_may_be_another_holder_s_is_not_confirmed(found):
    lease = new_lease(0, "ann", NOW)
    assert confirmed(lease, lambda: found, lambda: NOW + LEASE - MARGIN) is None
