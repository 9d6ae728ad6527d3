"""``tidemark.AsyncOpLog`` against a scripted agent on loopback."""

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_agent import ModelAgent, opened, operation, state_of
from tests.support.scripted_agent import STREAM, Received, ScriptedAgent, Silence, Step, answer

import tidemark
from tidemark.oplog.consumer.errors import AgentUnreachable, NothingDone, StateFileInUse, StreamDenied

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("_at_once")]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(120):
            return await work

    return asyncio.run(limited())


def endless(stream: bytes) -> list[Step]:
    return [STREAM, stream, Silence()]


def operations(count: int) -> bytes:
    return b"".join(operation("insert", str(number), f"o1.{number}") for number in range(1, count + 1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "position"


def test_C17_cut_again_and_again_the_copy_equals_the_source(path):
    model = ModelAgent([("insert", str(index)) for index in range(12)] + [("delete", "3"), ("delete", "4")])
    cuts = iter(range(10, 600, 25))

    def script(request: Received) -> Iterable[Step]:
        cut = next(cuts, None)
        stream = model.stream(request.last_event_id)
        return endless(stream) if cut is None else [STREAM, stream[:cut]]

    async def work(url: str) -> set[str]:
        copy = {"old"}
        async with tidemark.AsyncOpLog(url, state_file=path) as oplog:
            async for item in oplog:
                if item.event == "reset":
                    copy.clear()
                elif item.event == "insert":
                    copy.add(item.id)
                oplog.done(item)
                if item.event == "live":
                    break
        return copy

    with ScriptedAgent(script) as agent:
        assert run(work(agent.url)) == state_of(model.log)
    assert path.read_text() == "o1.14\n"
    assert len(agent.requests) > 3


def test_the_id_of_a_reset_is_durable_before_it_is_handed_out(path):
    async def work(url: str) -> None:
        async with tidemark.AsyncOpLog(url, state_file=path) as oplog:
            assert (await anext(oplog)).event == "reset"
            assert path.read_text() == "r1.0.0\nreset\n"

    with ScriptedAgent(lambda request: endless(ModelAgent().stream(request.last_event_id))) as agent:
        run(work(agent.url))


def test_two_consumers_with_one_state_file_are_refused(path):
    async def work() -> None:
        async with tidemark.AsyncOpLog("http://127.0.0.1:1", state_file=path):
            with pytest.raises(StateFileInUse):
                tidemark.AsyncOpLog("http://127.0.0.1:1", state_file=path)

    run(work())


def test_a_task_that_is_cancelled_while_it_waits_loses_nothing():
    more = threading.Event()

    def script(request: Received) -> Iterable[Step]:
        if request.last_event_id is None:
            yield STREAM + opened("live", "o1.0")
            yield operation("insert", "1", "o1.1")[:40]
            yield Silence()
        assert more.wait(60)
        yield STREAM + operations(1)
        yield Silence()

    async def work(url: str) -> None:
        async with tidemark.AsyncOpLog(url) as oplog:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await anext(oplog)
            more.set()
            assert (await anext(oplog)).event_id == "o1.1"

    with ScriptedAgent(script) as agent:
        run(work(agent.url))
    assert [request.last_event_id for request in agent.requests] == [None, "o1.0"]


def test_a_half_open_connection_is_given_up():
    answers = iter([[STREAM, Silence()]])

    async def work(url: str) -> None:
        async with tidemark.AsyncOpLog(url, silence=0.2) as oplog:
            assert (await anext(oplog)).event == "insert"

    with ScriptedAgent(lambda request: next(answers, None) or endless(operations(1))) as agent:
        run(work(agent.url))


def test_a_token_that_is_not_accepted_is_an_error():
    async def work(url: str) -> None:
        async with tidemark.AsyncOpLog(url, token="secret") as oplog:
            with pytest.raises(StreamDenied, match="expired"):
                await anext(oplog)

    with ScriptedAgent(lambda request: [answer(401, b"expired")]) as agent:
        run(work(agent.url))


def test_no_agent_is_an_error_after_as_many_attempts_as_allowed():
    async def work() -> None:
        async with tidemark.AsyncOpLog("http://127.0.0.1:1", attempts=2) as oplog:
            with pytest.raises(AgentUnreachable):
                await anext(oplog)

    run(work())


def test_room_is_made_by_another_thread():
    async def work(url: str) -> None:
        async with tidemark.AsyncOpLog(url, max_in_flight=1) as oplog:
            first = await anext(oplog)
            second = asyncio.create_task(anext(oplog))
            await asyncio.sleep(0)
            await asyncio.to_thread(oplog.done, first)
            assert (await second).event_id == "o1.2"

    with ScriptedAgent(lambda request: endless(operations(3))) as agent:
        run(work(agent.url))


def test_a_loop_that_never_calls_done_is_an_error_and_does_not_hang(monkeypatch):
    monkeypatch.setattr("tidemark.oplog.consumer.async_oplog.STALLED_AFTER", 0.05)

    async def work(url: str) -> None:
        async with tidemark.AsyncOpLog(url, max_in_flight=2) as oplog:
            with pytest.raises(NothingDone):
                async for _ in oplog:
                    pass

    with ScriptedAgent(lambda request: endless(operations(5))) as agent:
        run(work(agent.url))


def test_stop_ends_a_loop_that_waits_for_the_stream():
    async def work(url: str) -> None:
        async with tidemark.AsyncOpLog(url) as oplog:
            loop = asyncio.create_task(_all(oplog))
            while oplog.position != "o1.0":
                await asyncio.sleep(0)
            oplog.stop()
            assert await loop == []

    with ScriptedAgent(lambda request: endless(opened("live", "o1.0"))) as agent:
        run(work(agent.url))


async def _all(oplog: tidemark.AsyncOpLog) -> list[Any]:
    return [item async for item in oplog]
