"""The tasks ``bind`` and ``publish`` of ``<pipeline>.replicate``. They start no JVM."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, TriggerRule, task
from airflow.sdk.exceptions import AirflowFailException

from tidemark_airflow.connections import open_pipeline, pipeline_connections
from tidemark_airflow.failures import no_retry_if_person_needed
from tidemark_airflow.tasks.gates import gate_task

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline

BOUND_T = "{{ ti.xcom_pull(task_ids='bind', key='t') }}"
FROM_T = "{{ ti.xcom_pull(task_ids='bind', key='from_t') or '' }}"
TO_T = "{{ ti.xcom_pull(task_ids='bind', key='to_t') or '' }}"
VERIFY = "{{ 'all' if params.verify else 'sample' }}"
TIME = r"^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}.*)$"
"""What the form accepts as a time; ``binding_time`` refuses the rest with a reason."""
NEVER = 2**62
"""Later than any binding, in µs."""
HOLDER = "{{ dag.dag_id }} {{ run_id }}"
MESSAGES = "{{ ti.xcom_pull(task_ids='bind', key='messages') or 0 }}"


def log_asset(pipeline: str) -> Asset:
    """The pipeline's commit log, which a run of ``replicate`` extends."""
    return Asset(name=f"{pipeline}.log", uri=f"tidemark://{pipeline}/log", group="tidemark")


@task.branch(
    task_id="bind",
    trigger_rule=TriggerRule.NONE_FAILED,
    doc_md="Record durably which offsets this run takes; choose the tasks that run next.",
)
def bind(pipeline: str, **context: Any) -> list[str]:
    """Bind what is new; returns the ids of the tasks that run next."""
    from tidemark.pipeline.model import OnFailure

    opened = open_pipeline(pipeline, with_engine=True)
    declared = opened.pipeline
    if interval := again_interval(context["dag_run"], context["params"]):
        with no_retry_if_person_needed():
            opened.refuse_replicator(context["run_id"])
        context["ti"].xcom_push(key="from_t", value=str(interval[0]))
        context["ti"].xcom_push(key="to_t", value=str(interval[1]))
        print(f"{pipeline}: delivers the bindings from {interval[0]} to {interval[1]} again; makes none")
        return ["deliver", "check_gates"]
    by_hand = context["dag_run"].run_type == "manual"
    with no_retry_if_person_needed():
        plan = opened.begin_run(context["run_id"], retry=by_hand)
    context["ti"].xcom_push(key="messages", value=plan.messages)
    for line in opened.differences():
        print(line)
    waits = declared.on_failure is OnFailure.STOP_PIPELINE
    gates = [] if waits else [gate_task(writer.name) for writer in declared.writers]
    if plan.t is None:
        print(f"{pipeline}: nothing new in Kafka" + ("; a writer is behind" if plan.deliver else ""))
        if plan.deliver:
            return ["deliver", *gates, "find_stopped", "check_gates"]
        refuse_differences(opened, f"{pipeline}.replicate {context['run_id']}")
        return ["find_stopped", "check_gates"] if plan.stopped else []
    print(f"{pipeline}: bound {plan.records} offsets at t={plan.t}")
    context["ti"].xcom_push(key="t", value=plan.t)
    return ["capture", *gates, "find_stopped", "check_gates"]


def refuse_differences(opened: "OpenPipeline", holder: str) -> None:
    """Compare the writers' output with the log although nothing is new; fail at a difference."""
    from tidemark.app.reconcile_idle import reconcile_idle

    if different := reconcile_idle(opened, holder, print):
        raise AirflowFailException(" ".join(different))


def again_interval(dag_run: Any, params: Any) -> tuple[int, int] | None:
    """The interval (µs) whose bindings a run delivers again: a backfill's own, or that of the parameters."""
    if params["from_t"] is not None or params["to_t"] is not None:
        return binding_time(params["from_t"], 0), binding_time(params["to_t"], NEVER)
    if dag_run.run_type != "backfill":
        return None
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    return int(start.timestamp() * 1_000_000), int(end.timestamp() * 1_000_000) - 1


def binding_time(given: int | str | None, otherwise: int) -> int:
    """A parameter as a time in µs: it may be µs, a date or a time, in UTC unless it names a zone."""
    if given is None:
        return otherwise
    if isinstance(given, int) or given.isdecimal():
        return int(given)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise AirflowFailException(
            f"`{given}` is no time. Give a date or time, such as 2026-11-01 or 2026-11-01T12:00:00Z, or µs "
            "since 1970. Nothing was delivered."
        ) from None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(zoned.timestamp() * 1_000_000)


def publish(pipeline: str) -> Any:
    """The task that makes the captured binding part of the log."""

    @task(
        task_id="publish", outlets=[log_asset(pipeline)], doc_md="Make the captured binding part of the log."
    )
    def publish_binding(t: str, **context: Any) -> dict[str, Any]:
        from tidemark.app.replicate import publish_run
        from tidemark.pipeline.loader import find_pipeline

        declared = find_pipeline(pipeline)
        with no_retry_if_person_needed():
            head = publish_run(declared, pipeline_connections(declared), int(t))
        captured = context["ti"].xcom_pull(task_ids="capture")
        result = {
            "t": int(t),
            "end": head.end,
            "ids": captured["ids"],
            "records": captured["records"],
            "bytes": captured["bytes"],
            "seconds": captured["seconds"],
        }
        context["outlet_events"][log_asset(pipeline)].extra = result
        return result

    return publish_binding(BOUND_T)
