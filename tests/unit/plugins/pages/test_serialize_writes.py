"""Requests that may change something wait for each other; those that only read do not wait."""

import asyncio
from typing import Any

import pytest

from tidemark_airflow.pages.serialize_writes import SerializeWrites, is_needed

pytestmark = pytest.mark.unit


class Server:
    """An application whose requests end when they are told to."""

    def __init__(self) -> None:
        self.under_way: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.app = SerializeWrites(self._answer)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        name = scope["path"]
        self.under_way.append(name)
        try:
            await self.ends[name].wait()
            if name == "broken":
                raise RuntimeError(name)
        finally:
            self.under_way.remove(name)

    async def ask(self, method: str, name: str) -> asyncio.Task[None]:
        """Send a request; it is under way, or waits, when this returns."""
        self.ends[name] = asyncio.Event()
        scope = {"type": "http", "method": method, "path": name}
        task = asyncio.ensure_future(self.app(scope, None, None))  # type: ignore[arg-type]
        await self.settle()
        return task

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
def test_a_change_waits_until_the_one_before_has_ended(method: str) -> None:
    async def story() -> list[list[str]]:
        server, seen = Server(), []
        tasks = [await server.ask("POST", "first"), await server.ask(method, "second")]
        seen.append(list(server.under_way))
        await server.end("first")
        seen.append(list(server.under_way))
        await server.end("second")
        await asyncio.gather(*tasks)
        return seen

    assert asyncio.run(story()) == [["first"], ["second"]]


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_requests_that_only_read_do_not_wait(method: str) -> None:
    async def story() -> list[str]:
        server = Server()
        await server.ask("POST", "change")
        await server.ask(method, "look")
        return list(server.under_way)

    assert asyncio.run(story()) == ["change", "look"]


def test_a_change_that_breaks_lets_the_next_one_go_on() -> None:
    async def story() -> list[str]:
        server = Server()
        broken = await server.ask("POST", "broken")
        await server.ask("POST", "next")
        await server.end("broken")
        with pytest.raises(RuntimeError):
            await broken
        return list(server.under_way)

    assert asyncio.run(story()) == ["next"]


def test_a_change_that_is_given_up_lets_the_next_one_go_on() -> None:
    async def story() -> list[str]:
        server = Server()
        given_up = await server.ask("POST", "first")
        await server.ask("POST", "next")
        given_up.cancel()
        await server.settle()
        return list(server.under_way)

    assert asyncio.run(story()) == ["next"]


def test_what_is_no_request_passes() -> None:
    async def story() -> list[str]:
        passed = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            passed.append(scope["type"])

        await SerializeWrites(app)({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
        return passed

    assert asyncio.run(story()) == ["lifespan"]


@pytest.mark.parametrize(
    ("database", "answer"),
    [("sqlite:////home/airflow.db?timeout=60", True), ("postgresql+psycopg2://airflow@db/airflow", False)],
)
def test_only_sqlite_needs_it(database: str, answer: bool) -> None:
    assert is_needed(database) is answer
