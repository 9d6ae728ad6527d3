"""Where parts are written: in the place of their binding's capture, for a lease that is still held."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.delivery.binding_steps import PartDone
from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.writer import BadMessage, Part, Writing, Written
from tidemark.log.model.binding import CapturePlace
from tidemark.spark.jobs import follow
from tidemark.spark.jobs.follow import write_parts_by_place
from tidemark.writers.journal.writer import JournalWriter

pytestmark = pytest.mark.unit


class Ticket:
    """A lease; one that was lost is noticed when it is read anew."""

    def __init__(self, is_lost: bool = False) -> None:
        self.is_lost, self.confirmed = is_lost, 0

    def confirm(self) -> None:
        self.confirmed += 1
        if self.is_lost:
            raise InterruptedError("lost")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where parts were written, in order."""
    places: list[str] = []

    def write_to(place: str) -> Any:
        return lambda writer, parts, *_: places.append(place) or [PartDone() for _ in parts]

    monkeypatch.setattr(follow, "write_parts_here", write_to("process"))
    monkeypatch.setattr(follow, "write_parts_with", lambda spark: write_to("engine"))
    return places


def write(place: CapturePlace, ticket: Ticket, parts: int = 1, writer: Any = None) -> list[PartDone]:
    binding: Any = SimpleNamespace(captured_by=place, width=5)
    held: Any = ticket
    anything: Any = None
    cut = [Part(binding, (), first_id=number) for number in range(parts)]
    return write_parts_by_place(lambda: anything)(writer, cut, anything, (), held)


@pytest.mark.parametrize("place", CapturePlace)
def test_a_binding_is_delivered_where_it_was_captured(written: list[str], place: CapturePlace) -> None:
    write(place, Ticket())
    assert written == [place.value]


def test_the_lease_is_read_anew_once_before_the_parts_of_a_binding(written: list[str]) -> None:
    write(CapturePlace.PROCESS, ticket := Ticket(), parts=3)
    assert ticket.confirmed == 1


def test_nothing_is_written_for_a_lease_that_another_attempt_has_taken(written: list[str]) -> None:
    with pytest.raises(InterruptedError):
        write(CapturePlace.PROCESS, Ticket(is_lost=True))
    assert written == []


# Journals: parts in threads


@dataclass(frozen=True, kw_only=True)
class Threaded(JournalWriter):
    """A journal whose parts end, each as given, when all of them have begun."""

    ends: Sequence[Exception | None]
    begun: Barrier
    ended: list[int] = field(default_factory=list)

    def write(self, part: Part, writing: Writing) -> Written:
        number = part.first_id or 0
        self.begun.wait(30)
        self.ended.append(number)
        if error := self.ends[number]:
            raise error
        return Written(written=number)


def given_journal(*ends: Exception | None) -> Threaded:
    nothing: Any = None
    return Threaded("orders", nothing, nothing, "UTC", ends=ends, begun=Barrier(len(ends)))


BAD = BadMessage("orders", "cassandra", "orders", 1, 7, 3, "no JSON")


def test_parts_of_a_journal_are_written_at_once_and_answer_in_their_order() -> None:
    done = write(CapturePlace.PROCESS, Ticket(), parts=3, writer=given_journal(None, None, None))
    assert [one.written.written for one in done] == [0, 1, 2]


def test_a_bad_message_in_one_thread_leaves_the_other_parts_written() -> None:
    done = write(CapturePlace.PROCESS, Ticket(), parts=3, writer=given_journal(None, BAD, None))
    assert done == [PartDone(), PartDone(bad=BAD), PartDone(Written(written=2))]


def test_a_lease_that_one_thread_has_lost_is_raised_when_no_thread_writes_any_more() -> None:
    journal = given_journal(LeaseLost("orders", "cassandra", "run-1"), None, None)
    with pytest.raises(LeaseLost):
        write(CapturePlace.PROCESS, Ticket(), parts=3, writer=journal)
    assert sorted(journal.ended) == [0, 1, 2]


def test_a_journal_s_parts_are_not_begun_for_a_lease_that_was_lost() -> None:
    journal = given_journal(None)
    with pytest.raises(InterruptedError):
        write(CapturePlace.PROCESS, Ticket(is_lost=True), writer=journal)
    assert journal.ended == []
