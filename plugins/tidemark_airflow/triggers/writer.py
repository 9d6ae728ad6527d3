"""A trigger that checks one writer again and again, and logs what it is waiting for."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent


class WriterTrigger(BaseTrigger):
    """Fires when a condition of one writer holds; logs the reason for waiting whenever it changes."""

    def __init__(self, pipeline: str, writer: str, every: float = 2.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline, self.writer, self.every = pipeline, writer, every

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        keys = {"pipeline": self.pipeline, "writer": self.writer, "every": self.every}
        return f"{type(self).__module__}.{type(self).__name__}", keys

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check every ``every`` seconds; one event at the end."""
        shown = None
        while reason := await asyncio.to_thread(self._reason):
            if reason != shown:
                self.log.info("%s", reason)
                shown = reason
            await asyncio.sleep(self.every)
        yield TriggerEvent({"writer": self.writer})  # type: ignore[no-untyped-call]

    @abstractmethod
    def _reason(self) -> str | None:
        """Why to go on waiting; None when the condition holds. Must not raise: an exception ends the wait."""
