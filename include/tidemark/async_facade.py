"""asyncio facades: a class whose methods run those of a blocking object in threads of the loop's executor.

``in_thread`` makes one such method from a blocking one, with the same parameters, result, errors and
docstring. A cancelled call is not undone: the thread goes on, and what it does may take effect.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar


class Closable(Protocol):
    """A blocking object that a facade can stand for."""

    def close(self) -> None:
        """Releases what the object holds."""


Blocking = TypeVar("Blocking")
Blocking_co = TypeVar("Blocking_co", covariant=True)
P = ParamSpec("P")
T = TypeVar("T")


class AsyncFacade(Generic[Blocking_co]):
    """The base of a facade. An ``async with`` block closes the blocking object at its end."""

    def __init__(self, blocking: Blocking_co) -> None:
        """Wraps an object that is open.

        Args:
            blocking: The object that does the work. It may be shared with blocking code; closing the facade
                closes it.
        """
        self._blocking = blocking

    async def close(self: "AsyncFacade[Closable]") -> None:
        """Closes the blocking object."""
        await asyncio.to_thread(self._blocking.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self: "AsyncFacade[Closable]",
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def in_thread(
    method: Callable[Concatenate[Blocking, P], T],
) -> Callable[Concatenate[AsyncFacade[Blocking], P], Coroutine[Any, Any, T]]:
    """The facade's method for a blocking one: it is awaited while a thread runs the blocking method."""

    @wraps(method)
    async def run(self: AsyncFacade[Blocking], /, *args: P.args, **kwargs: P.kwargs) -> T:
        bound: Callable[P, T] = getattr(self._blocking, method.__name__)
        return await asyncio.to_thread(bound, *args, **kwargs)

    return run


def list_in_thread(
    method: Callable[Concatenate[Blocking, P], Iterable[T]],
) -> Callable[Concatenate[AsyncFacade[Blocking], P], Coroutine[Any, Any, list[T]]]:
    """As ``in_thread`` for a method that returns an iterator: the thread reads all of it into a list."""

    @wraps(method)
    async def run(self: AsyncFacade[Blocking], /, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        bound: Callable[P, Iterable[T]] = getattr(self._blocking, method.__name__)
        return await asyncio.to_thread(lambda: list(bound(*args, **kwargs)))

    return run
