"""The ``ask`` task of ``<pipeline>.resume``."""

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.definitions.param import ParamsDict

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.tasks.resume_request import ResumeAnswer

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.delivery.operator.advice import Advice


class ResumeQuestion(HITLOperator):
    """Asks an operator what to do about a writer that failed again; offers only answers that can help.

    The answers are chosen when the question is asked: another command may have changed the writer by then.
    """

    template_fields = (*HITLOperator.template_fields, "writer")

    def __init__(self, *, pipeline: str, writer: str, **kwargs: Any) -> None:
        about = f"{pipeline}: a writer failed again"
        super().__init__(subject=about, options=[answer.value for answer in ResumeAnswer], **kwargs)
        self.pipeline, self.writer = pipeline, writer

    def execute(self, context: "Context") -> Any:
        """Ask, and wait for the answer."""
        found = open_pipeline(self.pipeline).advice(self.writer)
        self.subject, self.body = subject_of(found), body_of(found)
        self.options = [answer.value for answer in answers_to(found)]
        if ResumeAnswer.ACKNOWLEDGE not in self.options:  # only an acknowledgement needs a reason
            self.params = ParamsDict()
        return super().execute(context)


def answers_to(found: "Advice") -> list[ResumeAnswer]:
    """The answers to offer: a message that failed may be acknowledged, a failure of the target may not."""
    if found.acknowledgeable is None:
        return [ResumeAnswer.RETRY, ResumeAnswer.STOP]
    return [ResumeAnswer.RETRY, ResumeAnswer.ACKNOWLEDGE, ResumeAnswer.STOP]


def subject_of(found: "Advice") -> str:
    """What failed, in one line."""
    name, id_ = f"{found.pipeline}/{found.writer}", found.acknowledgeable
    return f"{name}: id {id_} failed again" if id_ is not None else f"{name}: its target failed again"


def body_of(found: "Advice") -> str:
    """What an operator needs to know to decide."""
    said = "\n\n".join(line.strip() for line in found.lines)
    if found.acknowledgeable is None:
        return f"{said}\n\nNo message is to blame, so none can be acknowledged."
    return (
        f"{said}\n\nAcknowledged, the message is never written by this writer; a copy goes to the dead "
        "letters with your reason, which is needed."
    )
