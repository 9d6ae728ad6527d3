"""The tasks of ``<pipeline>.replicate`` about writers' gates: start resumes, fail the run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Asset, TriggerRule, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.triggers.gate import gate_advice

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline


def gate_task(writer: str) -> str:
    """The id of the sensor task of a writer's gate."""
    return f"gate_{writer}"


def resume_run_id(writer: str, version: int) -> str:
    """The id of the automatic resume after one closing of a gate: a second start finds the existing run."""
    return f"auto__{writer}__gate_{version}"


@task(task_id="find_stopped", doc_md="List the stopped writers, and the resumes to start for them.")
def find_stopped(pipeline: str) -> list[dict[str, Any]]:
    """Arguments of the runs to start: one resume per closed gate that may resume without an operator."""
    from tidemark.app.open_pipeline import resumes_by_itself

    opened = open_pipeline(pipeline)
    stopped = opened.stopped()
    for writer in stopped:
        print(gate_advice(opened, writer))
    return [
        {"trigger_run_id": resume_run_id(writer, gate.version), "conf": {"writer": writer}}
        for writer, gate in stopped.items()
        if resumes_by_itself(gate)
    ]


def resume_stopped(pipeline: str) -> tuple[Any, Any]:
    """The tasks that list stopped writers, however the tasks before them ended, and start their resumes."""
    stopped = find_stopped.override(trigger_rule=TriggerRule.ALL_DONE)(pipeline)
    start = TriggerDagRunOperator.partial(
        task_id="start_resume",
        trigger_dag_id=f"{pipeline}.resume",
        skip_when_already_exists=True,
        doc_md="Start a resume for every writer that stopped; once per closing of its gate.",
    ).expand_kwargs(stopped)
    return stopped, start


@task(
    task_id="check_gates",
    doc_md="Fail the run while a failure keeps a writer's gate closed, so that it stays visible.",
)
def check_gates(pipeline: str) -> dict[str, str]:
    """The state of every writer's gate after the run; fails where a failure has closed one.

    A gate that an operator has closed is shown, and fails no run.
    """
    from tidemark.pipeline.model import StoppedWriters

    opened = open_pipeline(pipeline)
    stopped = opened.stopped()
    for writer in stopped:
        print(gate_advice(opened, writer))
    failed = [writer for writer in stopped if opened.advice(writer).is_failure]
    if failed and opened.pipeline.stopped_writers is StoppedWriters.FAIL:
        raise AirflowFailException(stopped_line(opened, failed))
    return {
        writer.name: "stopped" if writer.name in stopped else "open" for writer in opened.pipeline.writers
    }


def stopped_line(opened: "OpenPipeline", failed: Sequence[str]) -> str:
    """Why a run fails although every other writer was delivered to."""
    name = opened.pipeline.name
    which = f"writer {failed[0]} is" if len(failed) == 1 else f"writers {', '.join(failed)} are"
    ways = " ".join(opened.advice(writer).sentence for writer in failed)
    return (
        f"{name}: {which} stopped, everything else was done. {ways} (Every run fails while that is so, "
        "unless the pipeline's file says `stopped_writers: skip`.)"
    )


def delivered_asset(pipeline: str) -> Asset:
    """The writers' output, which a run of ``replicate`` updates."""
    return Asset(name=f"{pipeline}.delivered", uri=f"tidemark://{pipeline}/delivered", group="tidemark")


def check_writers(pipeline: str) -> Any:
    """The task that returns the summary of the run, or fails where a writer stopped in it."""

    @task(
        task_id="check_writers",
        outlets=[delivered_asset(pipeline)],
        doc_md="Summarize the run; fail it where a writer stopped, so that an operator is notified.",
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
