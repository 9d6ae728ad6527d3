"""The small tasks of ``<pipeline>.replicate``: they decide and start no JVM."""

from typing import Any

from airflow.sdk import Asset, TriggerRule, task

from tidemark_airflow.asking import asking_a_person
from tidemark_airflow.connections import pipeline_connections
from tidemark_airflow.gates import gate_task

BOUND_T = "{{ ti.xcom_pull(task_ids='bind', key='t') }}"
FROM_T = "{{ ti.xcom_pull(task_ids='bind', key='from_t') or '' }}"
TO_T = "{{ ti.xcom_pull(task_ids='bind', key='to_t') or '' }}"
VERIFY = "{{ 'all' if params.verify else 'sample' }}"
NEVER = 2**62
"""Later than any binding, in µs."""
HOLDER = "{{ dag.dag_id }} {{ run_id }}"
MESSAGES = "{{ ti.xcom_pull(task_ids='bind', key='messages') or 0 }}"


def log_asset(pipeline: str) -> Asset:
    """What a run of ``replicate`` produces: the pipeline's commit log."""
    return Asset(name=f"{pipeline}.log", uri=f"tidemark://{pipeline}/log", group="tidemark")


@task.branch(
    task_id="bind",
    trigger_rule=TriggerRule.NONE_FAILED,
    doc_md="Decide which offsets this run takes, durably; choose the steps that follow.",
)
def bind(pipeline: str, **context: Any) -> list[str]:
    """Bind what is new; the task ids to go on with."""
    from tidemark.delivery.pipeline import OnFailure
    from tidemark.delivery.pipeline_file import find_pipeline
    from tidemark.writers.opened import OpenPipeline

    declared = find_pipeline(pipeline)
    opened = OpenPipeline(declared, pipeline_connections(declared))
    if interval := again_interval(context["dag_run"], context["params"]):
        with asking_a_person():
            opened.refuse_replicator(context["run_id"])
        context["ti"].xcom_push(key="from_t", value=str(interval[0]))
        context["ti"].xcom_push(key="to_t", value=str(interval[1]))
        print(f"{pipeline}: delivers the bindings from {interval[0]} to {interval[1]} again; makes none")
        return ["deliver"]
    by_hand = context["dag_run"].run_type == "manual"
    with asking_a_person():
        plan = opened.begin_run(context["run_id"], retry=by_hand)
    context["ti"].xcom_push(key="messages", value=plan.messages)
    waits = declared.on_failure is OnFailure.STOP_PIPELINE
    gates = [] if waits else [gate_task(writer.name) for writer in declared.writers]
    if plan.t is None:
        print(f"{pipeline}: nothing new in Kafka" + ("; a writer is behind" if plan.deliver else ""))
        if plan.deliver:
            return ["deliver", *gates, "find_stopped"]
        return ["find_stopped"] if plan.stopped else []
    print(f"{pipeline}: bound {plan.records} offsets at t={plan.t}")
    context["ti"].xcom_push(key="t", value=plan.t)
    return ["capture", *gates, "find_stopped"]


def again_interval(dag_run: Any, params: Any) -> tuple[int, int] | None:
    """The times (µs) whose bindings a run delivers again: a backfill's, or what a person asked for."""
    if params["from_t"] is not None or params["to_t"] is not None:
        return params["from_t"] or 0, NEVER if params["to_t"] is None else params["to_t"]
    if dag_run.run_type != "backfill":
        return None
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    return int(start.timestamp() * 1_000_000), int(end.timestamp() * 1_000_000) - 1


def publish(pipeline: str) -> Any:
    """The task that makes the captured binding part of the log."""

    @task(
        task_id="publish", outlets=[log_asset(pipeline)], doc_md="Make the captured binding part of the log."
    )
    def publish_binding(t: str, **context: Any) -> dict[str, Any]:
        from tidemark.delivery.pipeline_file import find_pipeline
        from tidemark.delivery.replicate import publish_run

        declared = find_pipeline(pipeline)
        with asking_a_person():
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
