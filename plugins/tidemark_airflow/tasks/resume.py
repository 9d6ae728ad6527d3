"""The tasks of ``<pipeline>.resume``: wait for the target, redeliver, ask an operator, do what they say.

What they are asked follows from what failed: a message may be acknowledged, a target's failure never.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import BaseSensorOperator, task
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemark_airflow.answers import Action, Answer, missing_of_run
from tidemark_airflow.asking import asking_a_person
from tidemark_airflow.gates import NO_TIMEOUT, open_pipeline, resume_run_id

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.delivery.operator.advice import Advice


FIRST_PAUSE, LONGEST_PAUSE = 1.0, 15.0


class TargetTrigger(BaseTrigger):
    """Waits until a writer's target answers; pauses grow, and the reason is shown."""

    def __init__(self, pipeline: str, writer: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline, self.writer = pipeline, writer

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        keys = {"pipeline": self.pipeline, "writer": self.writer}
        return f"{type(self).__module__}.{type(self).__name__}", keys

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ask, and ask again."""
        pause = FIRST_PAUSE
        while reason := await asyncio.to_thread(_silence, self.pipeline, self.writer):
            self.log.info("%s/%s: the target does not answer: %s", self.pipeline, self.writer, reason)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        yield TriggerEvent({"writer": self.writer})  # type: ignore[no-untyped-call]


def _silence(pipeline: str, writer: str) -> str | None:
    """Why the target cannot be written to; None where it can."""
    try:
        open_pipeline(pipeline).writer(writer).is_reachable()
    except Exception as error:  # whatever it is, it is shown, and asked again
        return f"{type(error).__name__}: {error}"
    return None


class TargetSensor(BaseSensorOperator):
    """Waits, without holding a worker, until the target of a writer answers."""

    template_fields = ("writer",)

    def __init__(self, *, pipeline: str, writer: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.writer = pipeline, writer

    def execute(self, context: "Context") -> None:
        """Ask once; then wait."""
        reason = _silence(self.pipeline, self.writer)
        if reason is None:
            return
        self.log.warning("%s/%s: the target does not answer: %s", self.pipeline, self.writer, reason)
        trigger = TargetTrigger(self.pipeline, self.writer)
        self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """The target answers."""
        self.log.info("%s/%s: the target answers", self.pipeline, self.writer)


@task.branch(task_id="choose", doc_md="Resume, or do what the parameters ask for.")
def choose(**context: Any) -> str:
    """The task to go on with."""
    return "wait_for_target" if context["params"]["action"] == Action.RESUME else "act"


@task(task_id="act", doc_md="Do what the parameters ask for: acknowledge, rewind, stop or open.")
def act(pipeline: str, **context: Any) -> dict[str, Any]:
    """One action of a person, with its reason."""
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
    show: Any,
    *,
    untried: bool = False,
) -> dict[str, Any]:
    """Show the plan of an action and do it."""
    from tidemark.consensus.lease import wall_clock
    from tidemark.delivery.operator.actions import NotPossible
    from tidemark.delivery.state.writer_state import Deed

    with asking_a_person():
        if missing := missing_of_run({"action": action, "id": id_, "reason": reason}):
            raise NotPossible(pipeline, writer, missing)
        plan = open_pipeline(pipeline).plan(action, writer, first=id_, position=id_, untried=untried)
        for line in plan.lines:
            show(line)
        plan.execute(Deed(action, who, str(reason).strip(), wall_clock()))
    return plan.to_dict()


@task(
    task_id="redeliver",
    retries=5,  # a process that died keeps its lease for a minute
    doc_md="One message at a time from the position to the end of what failed.",
)
def redeliver(pipeline: str, **context: Any) -> dict[str, Any]:
    """Resume the writer; what it came to."""
    from tidemark.app.resume import resume

    writer, holder = context["params"]["writer"], f"{pipeline}.resume {context['run_id']}"
    with asking_a_person():
        resumed = resume(open_pipeline(pipeline), writer, holder, print)
    if resumed.interrupted:
        raise InterruptedError(
            f"{pipeline}/{writer}: asked to stop at id {resumed.position}; what is done is kept"
        )
    return {"writer": writer, **resumed.to_dict()}


class Question(HITLOperator):
    """Asks an operator what to do about a writer that failed again, and offers only what is right.

    What is offered is decided when it is asked: by then another command may have changed the writer.
    """

    template_fields = (*HITLOperator.template_fields, "writer")

    def __init__(self, *, pipeline: str, writer: str, **kwargs: Any) -> None:
        about = f"{pipeline}: a writer failed again"
        super().__init__(subject=about, options=[answer.value for answer in Answer], **kwargs)
        self.pipeline, self.writer = pipeline, writer

    def execute(self, context: "Context") -> Any:
        """Ask, and wait for the answer."""
        found = open_pipeline(self.pipeline).advice(self.writer)
        self.subject, self.body = subject_of(found), body_of(found)
        self.options = [answer.value for answer in answers_to(found)]
        if Answer.ACKNOWLEDGE not in self.options:  # there is nothing to give a reason for
            self.params = ParamsDict()
        return super().execute(context)


def answers_to(found: "Advice") -> list[Answer]:
    """What may be said: to acknowledge only where a message has failed, never where the target has."""
    if found.acknowledgeable is None:
        return [Answer.RETRY, Answer.STOP]
    return [Answer.RETRY, Answer.ACKNOWLEDGE, Answer.STOP]


def subject_of(found: "Advice") -> str:
    """One line about what failed."""
    name, id_ = f"{found.pipeline}/{found.writer}", found.acknowledgeable
    return f"{name}: id {id_} failed again" if id_ is not None else f"{name}: its target failed again"


def body_of(found: "Advice") -> str:
    """Everything that is needed to decide."""
    said = "\n\n".join(line.strip() for line in found.lines)
    if found.acknowledgeable is None:
        return f"{said}\n\nNo message is to blame, so none can be acknowledged."
    return (
        f"{said}\n\nAcknowledged, the message is never written by this writer; a copy goes to the dead "
        "letters with your reason, which is needed."
    )


@task.short_circuit(task_id="is_stuck", doc_md="Ask an operator only where the same failed again.")
def is_stuck(resumed: dict[str, Any]) -> bool:
    """Whether the gate is still closed."""
    return bool(resumed["gate"] == "stopped")


@task(task_id="follow_answer", doc_md="Do what the person said; then another resume, unless they said stop.")
def follow_answer(pipeline: str, resumed: dict[str, Any], answer: dict[str, Any]) -> list[dict[str, Any]]:
    """What to start next: one resume, or nothing."""
    writer, (chosen,) = resumed["writer"], answer["chosen_options"]
    user = answer.get("responded_by_user") or {}
    who = user.get("name") or user.get("id") or "unknown"
    print(f"{who}: {chosen}")
    if chosen == Answer.ACKNOWLEDGE:
        reason = (answer.get("params_input") or {}).get("reason")
        perform(pipeline, writer, Action.ACKNOWLEDGE, resumed["failed_id"], who, reason, print)
    gate = open_pipeline(pipeline).stopped().get(writer)
    if gate is None or chosen == Answer.STOP:
        return []
    run_id = f"{resume_run_id(writer, gate.version)}__after_{resumed['failures']}"
    return [{"trigger_run_id": run_id, "conf": {"writer": writer}}]


@task(task_id="check_gate", doc_md="Fail where the gate is still closed, so that the run tells the truth.")
def check_gate(pipeline: str, **context: Any) -> dict[str, Any]:
    """How the writer stands after this run."""
    writer = context["params"]["writer"]
    opened = open_pipeline(pipeline)
    state = opened.state(writer)
    gate = state.gate if state else None
    goes_on = context["ti"].xcom_pull(task_ids="follow_answer")
    if gate is not None and not goes_on and context["params"]["action"] == Action.RESUME:
        raise AirflowFailException(opened.advice(writer).sentence)
    return {
        "writer": writer,
        "position": state.position if state else -1,
        "gate": "stopped" if gate else "open",
    }
