"""A facade's methods run in threads, and look like the blocking ones."""

import asyncio
import inspect
import threading
from collections.abc import Iterator

import pytest

from tidemark.async_facade import AsyncFacade, in_thread, list_in_thread

pytestmark = pytest.mark.unit


class Blocking:
    is_closed = False

    def add(self, one: int, *, other: int = 1) -> tuple[int, str]:
        """Adds two numbers."""
        if one < 0:
            raise ValueError("too small")
        return one + other, threading.current_thread().name

    def up_to(self, last: int) -> Iterator[int]:
        yield from range(last)

    def close(self) -> None:
        self.is_closed = True


class Facade(AsyncFacade[Blocking]):
    add = in_thread(Blocking.add)
    up_to = list_in_thread(Blocking.up_to)


def test_a_method_runs_in_another_thread_and_returns_its_result() -> None:
    total, thread = asyncio.run(Facade(Blocking()).add(1, other=2))
    assert total == 3
    assert thread != threading.current_thread().name


def test_an_error_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match="too small"):
        asyncio.run(Facade(Blocking()).add(-1))


def test_signature_and_docstring_are_those_of_the_blocking_method() -> None:
    assert inspect.signature(Facade.add) == inspect.signature(Blocking.add)
    assert inspect.getdoc(Facade.add) == "Adds two numbers."
    assert inspect.iscoroutinefunction(Facade.add)


def test_an_iterator_becomes_a_list() -> None:
    assert asyncio.run(Facade(Blocking()).up_to(3)) == [0, 1, 2]


def test_an_overridden_method_is_called() -> None:
    class Tenfold(Blocking):
        def add(self, one: int, *, other: int = 1) -> tuple[int, str]:
            return 10 * (one + other), ""

    assert asyncio.run(Facade(Tenfold()).add(1)) == (20, "")


def test_leaving_the_block_closes_the_blocking_object() -> None:
    blocking = Blocking()

    async def use() -> None:
        async with Facade(blocking):
            assert not blocking.is_closed

    asyncio.run(use())
    assert blocking.is_closed
