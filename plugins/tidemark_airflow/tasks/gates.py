"""Gates of writers in the DAGs: what a closed one holds up, and the resume that it starts."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseSensorOperator, TriggerRule, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemark_airflow.connections import pipeline_connections

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.app.open_pipeline import OpenPipeline


NO_TIMEOUT = timedelta(days=3650)
"""What waits for a person or for a target is never given up."""


def gate_task(writer: str) -> str:
    """The id of the task that shows a writer's gate."""
    return f"gate_{writer}"


def open_pipeline(name: str) -> "OpenPipeline":
    """A pipeline with the connections that Airflow has for it."""
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.pipeline.loader import find_pipeline

    declared = find_pipeline(name)
    return OpenPipeline(declared, pipeline_connections(declared))


def advice(opened: "OpenPipeline", writer: str) -> str:
    """What an operator should know about a closed gate, in one line."""
    return f"{opened.advice(writer).sentence} (see also the runs of {opened.pipeline.name}.resume)"


def resume_run_id(writer: str, version: int) -> str:
    """One automatic resume per closing of a gate: a second start finds the first one's run."""
    return f"auto__{writer}__gate_{version}"


class WriterTrigger(BaseTrigger):
    """Waits for something of a writer's, and shows for what whenever that changes."""

    def __init__(self, pipeline: str, writer: str, every: float = 5.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline, self.writer, self.every = pipeline, writer, every

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        keys = {"pipeline": self.pipeline, "writer": self.writer, "every": self.every}
        return f"{type(self).__module__}.{type(self).__name__}", keys

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, and look again."""
        shown = None
        while reason := await asyncio.to_thread(self._reason):
            if reason != shown:
                self.log.info("%s", reason)
                shown = reason
            await asyncio.sleep(self.every)
        yield TriggerEvent({"writer": self.writer})  # type: ignore[no-untyped-call]

    @abstractmethod
    def _reason(self) -> str | None:
        """Why to go on waiting; None when there is none. Raises nothing: a wait must not end with that."""


class GateTrigger(WriterTrigger):
    """Waits until a writer's gate is open."""

    def _reason(self) -> str | None:
        try:
            opened = open_pipeline(self.pipeline)
            return advice(opened, self.writer) if self.writer in opened.stopped() else None
        except Exception as error:  # a restart of Cassandra must not end the wait for a person
            said = f"{type(error).__name__}: {error}"
            return f"{self.pipeline}/{self.writer}: the control plane does not answer: {said}"


class GateSensor(BaseSensorOperator):
    """Lets a run pass where a writer's gate is open.

    Closed, it skips at once with what to do, or, for a pipeline that stops as a whole, waits without holding
    a worker.
    """

    def __init__(self, *, pipeline: str, writer: str, waits: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.writer, self.waits = pipeline, writer, waits

    def execute(self, context: "Context") -> None:
        """Pass, skip or wait."""
        opened = open_pipeline(self.pipeline)
        if self.writer not in opened.stopped():
            return
        said = advice(opened, self.writer)
        if not self.waits:
            raise AirflowSkipException(said)
        self.log.warning("%s Everything waits for it, because of on_failure: stop_pipeline.", said)
        self.defer(trigger=GateTrigger(self.pipeline, self.writer), method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """The gate is open."""
        self.log.info("%s/%s: the gate is open", self.pipeline, self.writer)


@task(task_id="find_stopped", doc_md="Which writers are stopped, and the resumes to start for them.")
def find_stopped(pipeline: str) -> list[dict[str, Any]]:
    """What to start: one resume per closed gate that may resume by itself."""
    from tidemark.app.open_pipeline import resumes_by_itself

    opened = open_pipeline(pipeline)
    stopped = opened.stopped()
    for writer in stopped:
        print(advice(opened, writer))
    return [
        {"trigger_run_id": resume_run_id(writer, gate.version), "conf": {"writer": writer}}
        for writer, gate in stopped.items()
        if resumes_by_itself(gate)
    ]


@task(
    task_id="check_gates",
    doc_md="Fail the run while a failure keeps a writer's gate closed, so that it stays visible.",
)
def check_gates(pipeline: str) -> dict[str, str]:
    """How every writer's gate stands after the run; refuses those that a failure has closed.

    A gate that an operator has closed is their wish: it is shown and fails nothing.
    """
    from tidemark.pipeline.model import StoppedWriters

    opened = open_pipeline(pipeline)
    stopped = opened.stopped()
    for writer in stopped:
        print(advice(opened, writer))
    failed = [writer for writer in stopped if opened.advice(writer).is_failure]
    if failed and opened.pipeline.stopped_writers is StoppedWriters.FAIL:
        raise AirflowFailException(stopped_line(opened, failed))
    return {
        writer.name: "stopped" if writer.name in stopped else "open" for writer in opened.pipeline.writers
    }


def stopped_line(opened: "OpenPipeline", failed: Sequence[str]) -> str:
    """Why a run is failed although it has done what it could."""
    name = opened.pipeline.name
    which = f"writer {failed[0]} is" if len(failed) == 1 else f"writers {', '.join(failed)} are"
    ways = " ".join(opened.advice(writer).sentence for writer in failed)
    return (
        f"{name}: {which} stopped, everything else was done. {ways} (Every run fails while that is so, "
        "unless the pipeline's file says `stopped_writers: skip`.)"
    )


def delivered_asset(pipeline: str) -> Asset:
    """What a run of ``replicate`` brings about: the writers' output."""
    return Asset(name=f"{pipeline}.delivered", uri=f"tidemark://{pipeline}/delivered", group="tidemark")


def check_writers(pipeline: str) -> Any:
    """The last task: it says what the run came to, or fails where a writer stopped in it."""

    @task(
        task_id="check_writers",
        outlets=[delivered_asset(pipeline)],
        trigger_rule=TriggerRule.NONE_FAILED,  # `reconcile` is skipped where nothing is compared
        doc_md="Say what the run came to; fail it where a writer stopped, so that somebody is told.",
    )
    def sum_up(**context: Any) -> dict[str, Any]:
        from tidemark.delivery.status import summarize

        delivered = context["ti"].xcom_pull(task_ids="deliver")
        if not delivered:
            raise AirflowSkipException(f"{pipeline}: nothing was delivered")
        refuse_failures(pipeline, delivered["writers"])
        began = context["dag_run"].start_date
        result = summarize(delivered, (datetime.now(UTC) - began).total_seconds())
        context["outlet_events"][delivered_asset(pipeline)].extra = result
        return result

    return sum_up()


def refuse_failures(pipeline: str, writers: dict[str, Any]) -> None:
    """Fail a run in which a writer stopped."""
    failures = [
        f"{name}: {one['failure'] or one['gate']['reason']}"
        for name, one in writers.items()
        if one["failure"] or one["stopped_now"]
    ]
    if failures:
        raise AirflowFailException(
            f"{pipeline}: not everything was delivered. {' '.join(failures)} What was finished is kept, and "
            f"the others went on. A resume was started where one helps: see {pipeline}.resume."
        )
