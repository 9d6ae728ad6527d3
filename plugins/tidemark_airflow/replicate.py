"""The small tasks of ``<pipeline>.replicate``: they decide and start no JVM."""

from typing import Any

from airflow.sdk import Asset, task

from tidemark_airflow.asking import asking_a_person
from tidemark_airflow.connections import pipeline_connections

BOUND_T = "{{ ti.xcom_pull(task_ids='bind', key='t') }}"
MESSAGES = "{{ ti.xcom_pull(task_ids='bind', key='messages') or 0 }}"


def log_asset(pipeline: str) -> Asset:
    """What a run of ``replicate`` produces: the pipeline's commit log."""
    return Asset(name=f"{pipeline}.log", uri=f"tidemark://{pipeline}/log", group="tidemark")


@task.branch(
    task_id="bind", doc_md="Decide which offsets this run takes, durably; choose the steps that follow."
)
def bind(pipeline: str, **context: Any) -> list[str]:
    """Bind what is new; the task ids to go on with."""
    from tidemark.delivery.pipeline_file import find_pipeline
    from tidemark.delivery.replicate import begin_run

    declared = find_pipeline(pipeline)
    by_hand = context["dag_run"].run_type == "manual"
    with asking_a_person():
        plan = begin_run(declared, pipeline_connections(declared), context["run_id"], retry=by_hand)
    context["ti"].xcom_push(key="messages", value=plan.messages)
    if plan.t is None:
        print(f"{pipeline}: nothing new in Kafka" + ("; a writer is behind" if plan.deliver else ""))
        return ["deliver"] if plan.deliver else []
    print(f"{pipeline}: bound {plan.records} offsets at t={plan.t}")
    context["ti"].xcom_push(key="t", value=plan.t)
    return ["capture"]


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
