"""The tasks of ``<pipeline>.sync`` that need no engine: validate, guard, follow the approval, send, verify,
report."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import TriggerRule, task

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.dry_run import is_dry_run
from tidemark_airflow.failures import no_retry_if_person_needed
from tidemark_airflow.tasks.approval import is_approved, user_of

if TYPE_CHECKING:
    from tidemark.oplog.sync.synchronisation import Synchronisation

RUN = "{{ ti.xcom_pull(task_ids='validate')['run'] }}"
LINES = "{{ ti.xcom_pull(task_ids='validate')['lines'] }}"
T = "{{ ti.xcom_pull(task_ids='barrier')['t'] }}"


def open_sync(pipeline: str) -> "Synchronisation":
    """The synchronisations of a pipeline."""
    from tidemark.app.sync import open_sync as of_pipeline

    return of_pipeline(open_pipeline(pipeline))


@task(task_id="validate", doc_md="Read the dump; every bad line is named, and none is tolerated.")
def validate(pipeline: str, **context: Any) -> dict[str, Any]:
    """The key of the run, and the number of lines."""
    params = context["params"]
    with no_retry_if_person_needed():
        sync = open_sync(pipeline)
        dump = sync.validate(params["dump"], params["start"], print, force=params["force"])
    print(f"{pipeline}: {dump.lines:,} lines; the run is {dump.key}")
    return {"run": dump.key, "lines": dump.lines, "start": dump.start}


@task.branch(
    task_id="guard",
    doc_md="Refuse too many deletes; then send, ask for approval first, or end after the plan was shown.",
)
def guard(pipeline: str, plan: dict[str, Any], **context: Any) -> list[str]:
    """The ids of the tasks that run next."""
    from tidemark.oplog.sync.errors import TooManyDeletes
    from tidemark.oplog.sync.guard import DeleteLimit

    params = context["params"]
    is_dry = is_dry_run(context["dag_run"], params)
    with no_retry_if_person_needed():
        limit, sync = DeleteLimit.parse(params["max_deletes"]), open_sync(pipeline)
        try:
            sync.guard(sync.files.diff(plan["run"], plan["t"]), limit, force=params["force"])
        except TooManyDeletes as refusal:
            if not is_dry:
                raise
            print(refusal)
    if is_dry:
        print(f"{pipeline}: this was a dry run; nothing was sent")
        return []
    if not plan["corrections"]:
        print(f"{pipeline}: the dump and the objects agree")
        return ["report"]
    return ["approve" if params["approve"] else "send"]


@task.short_circuit(
    task_id="follow_approval",
    ignore_downstream_trigger_rules=True,
    doc_md="Go on only where the plan was approved.",
)
def follow_approval(pipeline: str, answer: dict[str, Any]) -> bool:
    """Whether to go on."""
    return is_approved(pipeline, answer)


@task(
    task_id="send",
    trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    doc_md="Send the corrections whose objects have not changed since, as operations.",
)
def send(pipeline: str, plan: dict[str, Any], **context: Any) -> dict[str, int]:
    """How many corrections were sent, and how many objects had changed."""
    from tidemark.consensus.audit_trail import AuditEntry

    dag_run, params = context["dag_run"], context["params"]
    answer = context["ti"].xcom_pull(task_ids="approve")
    who = user_of(answer) if answer else getattr(dag_run, "triggering_user_name", None) or context["run_id"]
    at = int(dag_run.start_date.timestamp() * 1_000_000)
    about = f"{plan['corrections']} corrections by {plan['dump']}"
    signed = AuditEntry("sync", who, (params["reason"] or "").strip(), at, about)
    with no_retry_if_person_needed():
        sync = open_sync(pipeline)
        sent = sync.send(sync.files.diff(plan["run"], plan["t"]), signed)
    print(f"{pipeline}: {sent.sent:,} corrections sent, {sent.overtaken:,} objects had changed meanwhile")
    return {"sent": sent.sent, "overtaken": sent.overtaken, "resent": sent.resent}


@task(
    task_id="verify",
    doc_md="Look at the corrected objects once more; fail where no later operation explains a difference.",
)
def verify(pipeline: str, plan: dict[str, Any]) -> dict[str, int]:
    """How many objects are as they were corrected, and how many have changed since."""
    with no_retry_if_person_needed():
        sync = open_sync(pipeline)
        found = sync.verify(sync.files.diff(plan["run"], plan["t"]))
    return {"as_sent": found.as_sent, "changed_since": found.changed_since, "missing": found.missing}


@task(
    task_id="report",
    trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    doc_md="Keep what the run did, and remove its other files.",
)
def report(pipeline: str, plan: dict[str, Any], **context: Any) -> dict[str, Any]:
    """What the run did."""
    from tidemark.oplog.sync.report import report_line
    from tidemark.oplog.sync.verify import Verified

    found = context["ti"].xcom_pull(task_ids="verify")
    with no_retry_if_person_needed():
        done = open_sync(pipeline).report(plan["run"], plan["t"], Verified(**found) if found else None)
    print(report_line(done))
    return done
