"""The tasks of ``<pipeline>.rebuild`` that need no engine, and those of ``replicate`` and ``follow`` that
start it."""

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import TriggerRule, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.dry_run import BY_ANOTHER_DAG, is_dry_run
from tidemark_airflow.failures import no_retry_if_person_needed
from tidemark_airflow.tasks.approval import is_approved, user_of

if TYPE_CHECKING:
    from tidemark.app.renditions.opened import WriterRenditions
    from tidemark.outputs.model.rendition import Signature

WRITER = "{{ params.writer }}"
MODE = "{{ params.mode or '' }}"
NUMBER = "{{ ti.xcom_pull(task_ids='register', key='number') }}"
CONSUMER = "{{ ti.xcom_pull(task_ids='register', key='consumer') }}"
MESSAGES = "{{ ti.xcom_pull(task_ids='register', key='messages') or 0 }}"
HOLDER = "{{ dag.dag_id }} {{ run_id }}"
DURATION = r"^([0-9]+(s|m|h|d))+$"


class Approve(StrEnum):
    """What a handover waits for.

    Attributes:
        PERSON: The answer of a person who has seen the report.
        AUTOMATIC: Nothing but a verification without unexplained differences.
    """

    PERSON = "person"
    AUTOMATIC = "automatic"


def signature_of(context: Any, answer: dict[str, Any] | None = None) -> "Signature":
    """Who does what this run does, why, and when: the same for every attempt of a task.

    ``answer`` is the approval, whose author signs the handover.
    """
    from tidemark.outputs.model.rendition import Signature

    dag_run, params = context["dag_run"], context["params"]
    who = user_of(answer) if answer else getattr(dag_run, "triggering_user_name", None) or context["run_id"]
    at = int(dag_run.start_date.timestamp() * 1_000_000)
    return Signature(f"{who} ({context['dag'].dag_id})", (params["reason"] or "").strip(), at)


@task.branch(
    task_id="register",
    doc_md="Show what would be built, from where and how long it may take; unless dry, declare it.",
)
def register(pipeline: str, **context: Any) -> list[str]:
    """The ids of the tasks that run next; none after a dry run."""
    from tidemark.app.renditions.next_rendition import NextRendition

    dag_run, params = context["dag_run"], context["params"]
    with no_retry_if_person_needed():
        renditions = _renditions(pipeline, params["writer"])
        build = NextRendition(renditions, is_automatic=dag_run.run_type == BY_ANOTHER_DAG)
        plan = build.plan()
        for line in (plan.head, *plan.lines, *retired_lines(renditions)):
            print(line)
        is_dry = is_dry_run(dag_run, params)
        signed = signature_of(context)
        is_begun = any(one.signed == signed for one in renditions.output.renditions)
        if plan.refused and not is_begun:
            raise AirflowFailException(str(plan.refused))
        if is_dry:
            print(f"{pipeline}: this was a dry run; nothing was declared or built")
            return []
        rendition = build.register(signed)
    context["ti"].xcom_push(key="number", value=rendition.number)
    context["ti"].xcom_push(key="consumer", value=renditions.consumer(rendition.number))
    context["ti"].xcom_push(key="messages", value=plan.details["messages"])
    print(f"{pipeline}/{params['writer']}: rendition {rendition.number} is declared: {rendition.place}")
    return ["build"]


def retired_lines(renditions: "WriterRenditions") -> list[str]:
    """Which renditions a rebuild takes out of use at its end, for its plan."""
    from tidemark.outputs.model.rendition import RenditionState

    output = renditions.output
    left = [one.number for one in output.renditions if one.state is RenditionState.SUPERSEDED]
    others = f"; so are others that readers have left by then: {', '.join(map(str, left))}" if left else ""
    number = output.active.number
    return [f"at the end, when the time to return to it is over, rendition {number} is retired{others}"]


@task.branch(task_id="decide", doc_md="Ask a person before the handover, or go on at once.")
def decide(**context: Any) -> list[str]:
    """The ids of the tasks that run next."""
    return ["approve"] if context["params"]["approve"] == Approve.PERSON else ["hand_over"]


@task.short_circuit(
    task_id="follow_approval",
    ignore_downstream_trigger_rules=True,
    doc_md="Go on only where the handover was approved; a rejection changes nothing.",
)
def follow_approval(pipeline: str, answer: dict[str, Any], **context: Any) -> bool:
    """Whether to go on."""
    if is_approved(pipeline, answer):
        return True
    writer = context["params"]["writer"]
    number = context["ti"].xcom_pull(task_ids="register", key="number")
    print(
        f"{pipeline}/{writer}: rejected. Nothing was changed: readers stay where they are, and rendition "
        f"{number} goes on being delivered to. Verify and hand it over later, or give it up: tidemark "
        f"renditions abandon {pipeline} {writer} {number}"
    )
    return False


@task(
    task_id="retire",
    retries=5,  # the lease of a process that was killed expires after a minute
    doc_md="Take the earlier rendition out of use for good, unless readers have returned to it; and others "
    "that readers have left and whose time to return is over.",
)
def retire(pipeline: str, handed: dict[str, Any], **context: Any) -> dict[str, Any]:
    """What became of the rendition that readers used before, and of others that they have left."""
    from tidemark.app.renditions.endings import RetiringLeft
    from tidemark.writers.removal import DropOption

    params, number = context["params"], int(handed["previous"])
    renditions = _renditions(pipeline, params["writer"])
    if renditions.output.active.number == number:
        raise AirflowSkipException(
            f"{pipeline}/{params['writer']}: readers have returned to rendition {number}, so nothing is "
            f"retired. See: tidemark renditions {pipeline} {params['writer']}"
        )
    with no_retry_if_person_needed():
        options = frozenset(DropOption) if params["drop"] else frozenset()
        left = RetiringLeft(renditions, number, options)
        states = left.carry_out(signature_of(context), print)
    return {"number": number, "state": states[number], "retired": {str(one): states[one] for one in states}}


def _renditions(pipeline: str, writer: str) -> "WriterRenditions":
    from tidemark.app.renditions.opened import WriterRenditions

    return WriterRenditions.of(open_pipeline(pipeline), writer)


@task(
    task_id="find_changed",
    trigger_rule=TriggerRule.ALL_DONE,  # also where nothing was new in Kafka
    doc_md="List the writers with `on_change: rebuild` whose settings in the file have changed.",
)
def find_changed(pipeline: str) -> list[dict[str, Any]]:
    """Arguments of the runs of ``rebuild`` to start, once for each change."""
    from tidemark.app.renditions.on_change import changed_writers

    found = changed_writers(open_pipeline(pipeline))
    for one in found:
        print(f"{pipeline}/{one.writer}: is rebuilt: {one.reason}")
    return [
        {
            "trigger_run_id": f"auto__{one.writer}__{one.digest[:16]}",
            "conf": {"writer": one.writer, "reason": one.reason},
        }
        for one in found
    ]


def rebuild_changed(pipeline: str, **given: Any) -> tuple[Any, Any]:
    """The tasks that look for changed writers and start their rebuilds; ``given`` are arguments of both."""
    changed = find_changed.override(**given)(pipeline) if given else find_changed(pipeline)
    start = TriggerDagRunOperator.partial(
        task_id="start_rebuild",
        trigger_dag_id=f"{pipeline}.rebuild",
        skip_when_already_exists=True,
        doc_md="Start a rebuild of every writer that changed; once for each change.",
        **given,
    ).expand_kwargs(changed)
    return changed, start
