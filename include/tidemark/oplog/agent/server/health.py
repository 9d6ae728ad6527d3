"""``/health``: whether the services that an agent needs answer now. Its requests cost them little.

The answer of one check serves every request of the next two seconds, and one check runs at a time.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog

from tidemark.errors import TidemarkError

KEPT = 2.0
ANSWERED_WITHIN = 5.0

events = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Health:
    """The problems of the services, by the name of the check; empty where all of them answer."""

    problems: Mapping[str, str]

    @property
    def is_good(self) -> bool:
        """Whether all services answer."""
        return not self.problems


class HealthChecks:
    """The checks of one agent. A check raises ``TidemarkError`` where its service does not answer."""

    def __init__(
        self,
        checks: Mapping[str, Callable[[], Awaitable[None]]],
        clock: Callable[[], float] = time.monotonic,
        within: float = ANSWERED_WITHIN,
    ) -> None:
        """``within``: seconds for each check."""
        self._checks, self._clock, self._within = checks, clock, within
        self._found = Health({})
        self._found_at: float | None = None
        self._running: asyncio.Task[Health] | None = None

    async def check(self) -> Health:
        """The health now, or at most two seconds ago."""
        if self._found_at is not None and self._clock() - self._found_at < KEPT:
            return self._found
        if self._running is None:
            self._running = asyncio.create_task(self._all())
            self._running.add_done_callback(self._ended)
        return await asyncio.shield(self._running)

    def _ended(self, task: "asyncio.Task[Health]") -> None:
        self._running = None
        if not task.cancelled() and task.exception() is None:
            self._found, self._found_at = task.result(), self._clock()

    async def _all(self) -> Health:
        problems = await asyncio.gather(*(self._one(name, check) for name, check in self._checks.items()))
        named = zip(self._checks, problems, strict=True)
        return Health({name: problem for name, problem in named if problem is not None})

    async def _one(self, name: str, check: Callable[[], Awaitable[None]]) -> str | None:
        """The problem that one check finds; its details are for the log, because any client may ask."""
        try:
            await asyncio.wait_for(check(), self._within)
        except TimeoutError:
            events.warning("service is silent", service=name, seconds=self._within)
            return f"did not answer within {self._within:g} s"
        except TidemarkError as error:
            events.warning("service is not healthy", service=name, problem=str(error))
            return "does not answer as it should; the agent's log says more"
        return None
