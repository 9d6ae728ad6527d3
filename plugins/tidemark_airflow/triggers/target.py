"""Waiting until a writer's target can be written to."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemark_airflow.connections import open_pipeline

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 15.0


class TargetTrigger(BaseTrigger):
    """Fires when a writer's target answers; logs the reason of each failed attempt, with growing pauses."""

    def __init__(self, pipeline: str, writer: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline, self.writer = pipeline, writer

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        keys = {"pipeline": self.pipeline, "writer": self.writer}
        return f"{type(self).__module__}.{type(self).__name__}", keys

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Try until it succeeds; one event at the end."""
        pause = FIRST_PAUSE
        while reason := await asyncio.to_thread(why_unreachable, self.pipeline, self.writer):
            self.log.info("%s/%s: the target does not answer: %s", self.pipeline, self.writer, reason)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        yield TriggerEvent({"writer": self.writer})  # type: ignore[no-untyped-call]


def why_unreachable(pipeline: str, writer: str) -> str | None:
    """Why the target cannot be written to; None where it can."""
    try:
        open_pipeline(pipeline).writer(writer).is_reachable()
    except Exception as error:  # any failure is a reason to try again
        return f"{type(error).__name__}: {error}"
    return None
