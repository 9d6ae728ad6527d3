"""Waiting until an entry of a work journal is due."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemark_airflow.connections import open_work

EVERY = 30.0
"""Seconds between two checks. Wake-up messages only make the next check earlier; no entry depends on one."""


class WorkReadyTrigger(BaseTrigger):
    """Fires when an entry of a work journal is due."""

    def __init__(self, journal: str, every: float = EVERY) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.journal, self.every = journal, every

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        keys = {"journal": self.journal, "every": self.every}
        return f"{type(self).__module__}.{type(self).__name__}", keys

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check; wait for the next due date or a wake-up message; check again. One event at the end."""
        work = await asyncio.to_thread(open_work, self.journal)
        try:
            while not await asyncio.to_thread(work.is_ready):
                await asyncio.to_thread(work.wait, self.every)
        finally:
            await asyncio.to_thread(work.close)
        yield TriggerEvent({"journal": self.journal})  # type: ignore[no-untyped-call]
