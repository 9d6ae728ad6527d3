"""Where parts are written: in the place of their binding's capture, for a lease that is still held."""

from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.delivery.binding_steps import PartDone
from tidemark.log.model.binding import CapturePlace
from tidemark.spark.jobs import follow
from tidemark.spark.jobs.follow import write_parts_by_place

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


def write(place: CapturePlace, ticket: Ticket, parts: int = 1) -> None:
    binding: Any = SimpleNamespace(captured_by=place, width=5)
    part: Any = SimpleNamespace(binding=binding)
    held: Any = ticket
    anything: Any = None
    write_parts_by_place(lambda: anything)(anything, [part] * parts, anything, (), held)


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
