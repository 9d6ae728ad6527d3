"""The rules of leases, whatever is lent."""

from threading import Event

import pytest
from structlog.testing import capture_logs

from tidemark.consensus.lease import LEASE, MARGIN, Lease, kept_alive, lease_of_another, new_lease

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


class Lost(Exception):
    pass


def test_it_is_renewed_while_the_block_works_and_given_back_whatever_happens():
    renewed, given_back = Event(), []

    def work() -> None:
        with kept_alive("it", renewed.set, lambda: given_back.append(1), lambda _: False, 0.001):
            assert renewed.wait(10)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert given_back == [1]


@pytest.mark.parametrize(("error", "warned"), [(Lost(), 0), (OSError("no answer"), 1)])
def test_what_cannot_be_given_back_hides_nothing(error, warned):
    def release() -> None:
        raise error

    with (
        capture_logs() as logs,
        kept_alive("it", lambda: None, release, lambda found: isinstance(found, Lost)),
    ):
        pass
    assert len(logs) == warned


def test_a_renewal_that_fails_is_said_and_tried_again():
    tries = []
    twice = Event()

    def renew() -> None:
        tries.append(1)
        if len(tries) > 1:
            twice.set()
        raise OSError("no answer")

    with capture_logs() as logs, kept_alive("it", renew, lambda: None, lambda _: False, 0.001):
        assert twice.wait(10)
    assert logs[0]["event"] == "lease not renewed"
