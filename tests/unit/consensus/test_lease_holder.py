"""The one holder with renewal: it renews while a block works, notices a loss, and gives back."""

from threading import Event, Thread
from threading import enumerate as threads

import pytest
from structlog.testing import capture_logs

from tidemark.consensus.lease_holder import LeaseHolder, holding

pytestmark = pytest.mark.unit


class Lost(Exception):
    """Another process has it."""


class Loan:
    """Something that can be held, and what was done with it."""

    lost = Lost
    what = "a loan"

    def __init__(self) -> None:
        self.renewed, self.released = Event(), 0

    def renew(self) -> None:
        self.renewed.set()

    def release(self) -> None:
        self.released += 1


def test_it_is_renewed_while_the_block_works_and_given_back_whatever_happens():
    loan = Loan()

    def work() -> None:
        with holding(loan, every=0.001) as held:
            assert held is loan
            assert loan.renewed.wait(10)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert loan.released == 1


def test_it_is_not_renewed_before_its_time():
    loan = Loan()
    with holding(loan, every=3600):
        pass
    assert not loan.renewed.is_set()
    assert loan.released == 1


@pytest.mark.parametrize(("error", "warned"), [(Lost(), 0), (OSError("no answer"), 1)])
def test_what_cannot_be_given_back_hides_nothing(error, warned):
    def release() -> None:
        raise error

    with capture_logs() as logs, LeaseHolder("it", lambda: None, release, lost=Lost):
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

    with capture_logs() as logs, LeaseHolder("it", renew, lost=Lost, every=0.001) as holder:
        assert twice.wait(10)
        assert not holder.is_lost
    assert logs[0]["event"] == "lease not renewed"


def test_what_is_lost_is_told_and_neither_renewed_nor_given_back_any_more():
    tries, released = [], []

    def renew() -> None:
        tries.append(1)
        raise Lost("taken over")

    with (
        capture_logs() as logs,
        LeaseHolder("it", renew, lambda: released.append(1), lost=Lost, every=0.001) as one,
    ):
        one._thread.join(10)
        assert one.is_lost
    assert [log["event"] for log in logs] == ["lease lost"]
    assert (tries, released) == ([1], [])


def test_what_turns_out_to_be_lost_when_it_is_given_back_is_told():
    def release() -> None:
        raise Lost("taken over")

    with LeaseHolder("it", lambda: None, release, lost=Lost) as holder:
        assert not holder.is_lost
    assert holder.is_lost


def named(name: str) -> list[Thread]:
    return [thread for thread in threads() if thread.name == name]


def test_no_thread_is_left_behind():
    with LeaseHolder("a thread of its own", lambda: None):
        assert len(named("lease of a thread of its own")) == 1
    assert not named("lease of a thread of its own")
