"""The tasks of ``<pipeline>.resume``: choose an action, carry it out or redeliver, follow an answer."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowFailException

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.failures import no_retry_if_person_needed
from tidemark_airflow.tasks.approval import user_of
from tidemark_airflow.tasks.gates import resume_run_id
from tidemark_airflow.tasks.resume_request import ResumeAction, ResumeAnswer, missing_of_run

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.delivery.operator.action_plan import ActionPlan


@task.branch(task_id="choose", doc_md="Resume the writer, or carry out the action that the parameters name.")
def choose(**context: Any) -> str:
    """The id of the task that runs next."""
    return "wait_for_target" if context["params"]["action"] == ResumeAction.RESUME else "act"


@task(task_id="act", doc_md="Carry out the action that was chosen: acknowledge, rewind, stop or open.")
def act(pipeline: str, **context: Any) -> dict[str, Any]:
    """One action of an operator, with its reason; returns its plan."""
    params = context["params"]
    who = context["dag_run"].triggering_user_name or context["run_id"]
    chosen = (params["writer"], params["action"], params["id"])
    return perform(pipeline, *chosen, who, params["reason"], print, untried=params["untried"])


def perform(
    pipeline: str,
    writer: str,
    action: str,
    id_: int | None,
    who: str,
    reason: str | None,
    show: Callable[[str], object],
    *,
    untried: bool = False,
) -> dict[str, Any]:
    """Show the plan of an action and execute it; rounds of a follow leave the writer alone meanwhile."""
    from tidemark.clock import wall_clock
    from tidemark.consensus.audit_trail import AuditEntry
    from tidemark.delivery.operator.action_plan import NotPossible

    with no_retry_if_person_needed():
        if missing := missing_of_run({"action": action, "id": id_, "reason": reason}):
            raise NotPossible(pipeline, writer, missing)
        with open_pipeline(pipeline).between_rounds(writer) as opened:
            plan = plan_action(opened, writer, action, id_, untried=untried)
            for line in plan.lines:
                show(line)
            plan.execute(AuditEntry(action, who, str(reason).strip(), wall_clock()))
    return plan.to_dict()


def plan_action(
    opened: "OpenPipeline", writer: str, action: str, id_: int | None, *, untried: bool
) -> "ActionPlan":
    """The plan of the action that the form names; any other word is refused."""
    from tidemark.delivery.operator.action_plan import NotPossible

    match action:
        case ResumeAction.ACKNOWLEDGE if id_ is not None:
            return opened.plan_acknowledge(writer, id_, untried=untried)
        case ResumeAction.REWIND if id_ is not None:
            return opened.plan_rewind(writer, id_)
        case ResumeAction.STOP:
            return opened.plan_stop(writer)
        case ResumeAction.OPEN:
            return opened.plan_open(writer)
    known = ", ".join(one for one in ResumeAction if one is not ResumeAction.RESUME)
    raise NotPossible(opened.pipeline.name, writer, f"`{action}` is no action; there is: {known}.")


@task(
    task_id="redeliver",
    retries=5,  # the lease of a process that was killed expires after a minute
    doc_md="Send one message at a time, from the position to the end of the binding that failed.",
)
def redeliver(pipeline: str, **context: Any) -> dict[str, Any]:
    """Resume the writer; returns its position, the number of messages, and what failed."""
    from tidemark.app.resume import resume

    writer, holder = context["params"]["writer"], f"{pipeline}.resume {context['run_id']}"
    with no_retry_if_person_needed():
        resumed = resume(open_pipeline(pipeline), writer, holder, print)
    if resumed.interrupted:
        raise InterruptedError(
            f"{pipeline}/{writer}: asked to stop at id {resumed.position}; what is done is kept"
        )
    return {"writer": writer, **resumed.to_dict()}


@task.short_circuit(task_id="is_stuck", doc_md="Ask an operator only where the same failed again.")
def is_stuck(resumed: dict[str, Any]) -> bool:
    """Whether the gate is still closed."""
    return bool(resumed["gate"] == "stopped")


@task(task_id="follow_answer", doc_md="Carry out the answer; then start another resume, unless it was Stop.")
def follow_answer(pipeline: str, resumed: dict[str, Any], answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Arguments of the runs to start next: one resume, or none."""
    writer, (chosen,), who = resumed["writer"], answer["chosen_options"], user_of(answer)
    print(f"{who}: {chosen}")
    if chosen == ResumeAnswer.ACKNOWLEDGE:
        reason = (answer.get("params_input") or {}).get("reason")
        perform(pipeline, writer, ResumeAction.ACKNOWLEDGE, resumed["failed_id"], who, reason, print)
    gate = open_pipeline(pipeline).stopped().get(writer)
    if gate is None or chosen == ResumeAnswer.STOP:
        return []
    run_id = f"{resume_run_id(writer, gate.version)}__after_{resumed['failures']}"
    return [{"trigger_run_id": run_id, "conf": {"writer": writer}}]


@task(task_id="check_gate", doc_md="Fail where the gate is still closed, so that the run's state shows it.")
def check_gate(pipeline: str, **context: Any) -> dict[str, Any]:
    """The writer's position and gate after this run."""
    writer = context["params"]["writer"]
    opened = open_pipeline(pipeline)
    state = opened.state(writer)
    gate = state.gate if state else None
    goes_on = context["ti"].xcom_pull(task_ids="follow_answer")
    if gate is not None and not goes_on and context["params"]["action"] == ResumeAction.RESUME:
        raise AirflowFailException(opened.advice(writer).sentence)
    return {
        "writer": writer,
        "position": state.position if state else -1,
        "gate": "stopped" if gate else "open",
    }
