"""Waiting until a pipeline can be followed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemark_airflow.connections import engine_connections

EVERY = 2.0


class FollowTrigger(BaseTrigger):
    """Fires when the engine answers, the log's gate is open and the writers' leases are free.

    Logs what it waits for whenever that changes.
    """

    def __init__(self, pipeline: str, run_id: str, every: float = EVERY) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline, self.run_id, self.every = pipeline, run_id, every

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        keys = {"pipeline": self.pipeline, "run_id": self.run_id, "every": self.every}
        return f"{type(self).__module__}.{type(self).__name__}", keys

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check every ``every`` seconds; one event at the end."""
        shown = None
        while reason := await asyncio.to_thread(why_not_yet, self.pipeline, self.run_id):
            if reason != shown:
                self.log.info("%s", reason)
                shown = reason
            await asyncio.sleep(self.every)
        yield TriggerEvent({"pipeline": self.pipeline})  # type: ignore[no-untyped-call]


def why_not_yet(pipeline: str, run_id: str) -> str | None:
    """Why a follow cannot begin; None where it can. Raises nothing: an exception would end the wait."""
    try:
        from tidemark.app.follow.readiness import why_not_ready
        from tidemark.app.open_pipeline import OpenPipeline
        from tidemark.pipeline.loader import find_pipeline
        from tidemark.spark.engine import engine_problem

        declared = find_pipeline(pipeline)
        connections = engine_connections(declared)
        if problem := engine_problem(connections.spark):
            return f"{pipeline}: the Spark engine does not answer: {problem}"
        return why_not_ready(OpenPipeline(declared, connections), run_id)
    except Exception as error:  # a restart of Cassandra must not end the wait
        return f"{pipeline}: {type(error).__name__}: {error}"
