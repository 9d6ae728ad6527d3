"""The trigger of a work journal: waits until an entry is due, and closes the journal whatever happens."""

import asyncio
from typing import Any

import pytest

pytestmark = pytest.mark.unit


class Journal:
    """A journal that is ready after so many waits."""

    def __init__(self, waits: int) -> None:
        self.left, self.waited, self.closed = waits, list[float](), False

    def is_ready(self) -> bool:
        return self.left == 0

    def wait(self, seconds: float) -> None:
        if self.left < 0:
            raise ConnectionError("no host available")
        self.left -= 1
        self.waited.append(seconds)

    def close(self) -> None:
        self.closed = True


def run(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    from tidemark_airflow.triggers import work_ready

    monkeypatch.setattr(work_ready, "open_work", lambda name: journal)

    async def events() -> list[Any]:
        return [event.payload async for event in work_ready.WorkReadyTrigger("pages", 5.0).run()]

    return asyncio.run(events())


def test_it_fires_when_an_entry_is_due(monkeypatch):
    journal = Journal(2)
    assert run(journal, monkeypatch) == [{"journal": "pages"}]
    assert (journal.waited, journal.closed) == ([5.0, 5.0], True)


def test_the_journal_is_closed_after_an_error(monkeypatch):
    journal = Journal(-1)
    with pytest.raises(ConnectionError):
        run(journal, monkeypatch)
    assert journal.closed


def test_a_trigger_serializes_to_what_makes_it_again():
    from tidemark_airflow.triggers.work_ready import WorkReadyTrigger

    path, keys = WorkReadyTrigger("pages").serialize()
    assert keys == {"journal": "pages", "every": 30.0}
    assert WorkReadyTrigger(**keys).serialize() == (path, keys)
