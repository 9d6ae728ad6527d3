"""The tasks of ``<pipeline>.purge_expired`` after its plan: decide, follow the approval, purge, report."""

from datetime import date
from typing import Any

from airflow.sdk import TriggerRule, task

from tidemark_airflow.dry_run import is_dry_run
from tidemark_airflow.failures import no_retry_if_person_needed
from tidemark_airflow.operators.plan_purge import open_run
from tidemark_airflow.tasks.approval import is_approved

RUN = "{{ dag.dag_id }} {{ run_id }} %s"
"""The name of a run over the entities of one writer; the same as in ``open_run``."""


@task.branch(
    task_id="decide", doc_md="Carry out the plan, ask for approval first, or end after it was shown."
)
def decide(pipeline: str, group: str, plan: dict[str, Any], **context: Any) -> list[str]:
    """The ids of the tasks that run next."""
    if is_dry_run(context["dag_run"], context["params"]):
        print(f"{pipeline}: this was a dry run; nothing was sent")
        return []
    if not plan["days"]:
        print(f"{pipeline}: no day has ended since the last run, and none is unfinished")
        return []
    if not plan["total"]:
        print(f"{pipeline}: nothing has expired")
        return [f"{group}report"]
    return [f"{group}approve" if context["params"]["approve"] else f"{group}purge"]


@task.short_circuit(
    task_id="follow_approval",
    ignore_downstream_trigger_rules=True,
    doc_md="Go on only where the plan was approved.",
)
def follow_approval(pipeline: str, writer: str, answer: dict[str, Any], **context: Any) -> bool:
    """Whether to go on; a rejected plan is discarded."""
    if is_approved(pipeline, answer):
        return True
    open_run(pipeline, writer, context).discard()
    return False


@task(
    task_id="purge",
    trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    doc_md="Check every planned entity once more; send purges of those that have no newer message.",
)
def purge(pipeline: str, writer: str, plan: dict[str, Any], **context: Any) -> dict[str, int]:
    """How many entities were purged, and how many left alone."""
    run = open_run(pipeline, writer, context)
    with no_retry_if_person_needed():
        run.open_days(_days(plan))
        done = run.purge()
    print(f"{pipeline}: {len(done.sent):,} purges sent, {len(done.spared):,} entities left alone")
    return {"purged": len(done.sent), "left_alone": len(done.spared)}


@task(
    task_id="report",
    trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    doc_md="Report what the run did; fail it where a purge overtook an append, which is pinned.",
)
def report(pipeline: str, writer: str, plan: dict[str, Any], **context: Any) -> dict[str, Any]:
    """What the run did."""
    from tidemark.expiry.report import report_lines

    run = open_run(pipeline, writer, context)
    with no_retry_if_person_needed():
        result = run.report(_days(plan))
    for line in report_lines(result):
        print(line)
    return result


def _days(plan: dict[str, Any]) -> list[date]:
    return [date.fromisoformat(day) for day in plan["days"]]
