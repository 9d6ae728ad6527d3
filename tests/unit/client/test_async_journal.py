"""The same journal on an event loop: in order, no further ahead than asked for, and left behind tidily."""

import asyncio
import threading

import pytest
from tests.support.memory_client import World

from tidemark.client import async_journal
from tidemark.client.async_journal import AsyncJournal
from tidemark.client.errors import BadInput, BadRecord
from tidemark.client.events import Event

pytestmark = pytest.mark.unit


def client(world: World) -> AsyncJournal:
    return AsyncJournal.of_journal(world.client())


def test_everything_a_journal_does() -> None:
    world = World()

    async def work() -> list:
        async with client(world) as journal:
            await journal.append("k", [Event.json(1, 1), Event.json(2, 2)], expire_after="1 day")
            await journal.append("k", [Event.json(3, 3)])
            await journal.delete("k", 1)
            await journal.mark("k")
            seen = [event.payload async for event in journal.read("k")]
            last = await journal.pointer("k")
            await journal.purge("k")
            return [seen, last, [event async for event in journal.read("k")], journal.topic]

    assert asyncio.run(work()) == [[2, 3], 3, [], "orders"]
    assert world.asked[-1] == "close"


def test_a_read_goes_on_only_when_it_is_asked_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_journal, "EVENTS_AT_ONCE", 4)
    world = World("A" + ",".join(map(str, range(1, 101))), page_size=1)
    world.replicate()

    async def work() -> int:
        events = client(world).read("k")
        seen = [(await anext(events)).seq_nr for _ in range(10)]
        asked = world.asked.count("rows")
        await events.aclose()
        assert seen == list(range(1, 11))
        return asked

    assert asyncio.run(work()) <= 10 + 4 + 1


def test_what_was_read_before_an_error_is_handed_out() -> None:
    world = World("A1 A2 A3 A4 A5!")

    async def work(seen: list[int]) -> None:
        async for event in client(world).read("k"):
            seen.append(event.seq_nr)

    seen: list[int] = []
    with pytest.raises(BadRecord):
        asyncio.run(work(seen))
    assert seen == [1, 2, 3, 4]


def test_wrong_input_is_refused_at_once() -> None:
    with pytest.raises(BadInput):
        client(World()).read("k", 0)


def test_a_read_that_is_cancelled_ends_its_thread_first() -> None:
    world = World("A1,2,3")
    world.replicate()
    is_asked, may_answer = threading.Event(), threading.Event()

    def on_tick(_: int) -> None:
        if world.asked[-1] == "head":
            is_asked.set()
            may_answer.wait(10)

    world.on_tick = on_tick

    async def work() -> bool:
        reading = asyncio.ensure_future(anext(client(world).read("k")))
        await asyncio.to_thread(is_asked.wait, 10)
        reading.cancel()
        await asyncio.sleep(0)
        is_early = reading.done()
        may_answer.set()
        with pytest.raises(asyncio.CancelledError):
            await reading
        return is_early

    assert asyncio.run(work()) is False
