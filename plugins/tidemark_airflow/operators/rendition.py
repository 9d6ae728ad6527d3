"""The tasks ``verify``, ``approve`` and ``hand_over`` of ``<pipeline>.rebuild``; the link to the report."""

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from tidemark_airflow.operators.audit import PAGES
from tidemark_airflow.operators.spark_app import SparkAppOperator
from tidemark_airflow.tasks.approval import Approval

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import TaskInstanceKey

MOST_LINES = 60
"""The lines of a report that a question shows; the page has all."""


class ReportLink(BaseOperatorLink):
    """A link from a task to the whole report of the comparison."""

    name = "Differences"

    def get_link(self, operator: BaseOperator, *, ti_key: "TaskInstanceKey") -> str:
        """The page of the newest report of the task's rendition."""
        place = getattr(operator, "place", "")
        return report_address(getattr(operator, "pipeline", ""), place) if place else ""


def report_address(pipeline: str, place: str) -> str:
    """The page of a rendition's newest report; ``place`` is ``writer/number``."""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}{PAGES}/renditions/{pipeline}/{place}"


class VerifyRenditionOperator(SparkAppOperator):
    """Compares a rendition with the one that readers use; fails where a difference is not explained."""

    operator_extra_links = (ReportLink(),)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place = ""
        """The writer and the number of the report that the link leads to; known when the task has run."""

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """See ``SparkAppOperator``; the whole report is in the task's log."""
        report = super().execute(context)
        self.place = f"{report['writer']}/{report['candidate']['number']}"
        for line in report["lines"]:
            self.log.info("%s", line)
        if not report["clean"]:
            raise AirflowFailException(
                f"{report['pipeline']}/{report['writer']}: {report['summary']}. {report['way']}"
            )
        return {**report, "lines": report["lines"][:MOST_LINES]}


class ApproveRendition(HITLOperator):
    """Asks a person whether readers may take a rendition; shows the report of its verification."""

    operator_extra_links = (*HITLOperator.operator_extra_links, ReportLink())

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        about = f"{pipeline}: readers are to take another rendition"
        super().__init__(subject=about, options=[answer.value for answer in Approval], **kwargs)
        self.pipeline, self.place = pipeline, ""

    def execute(self, context: "Context") -> Any:
        """Ask, and wait for the answer."""
        report = context["ti"].xcom_pull(task_ids="verify")
        self.place = f"{report['writer']}/{report['candidate']['number']}"
        self.subject, self.body = question(report, report_address(self.pipeline, self.place))
        return super().execute(context)


def question(report: dict[str, Any], address: str) -> tuple[str, str]:
    """The headline, and what an operator needs to know to decide, in Markdown."""
    number, active = report["candidate"]["number"], report["active"]["number"]
    pipeline, writer, lines = report["pipeline"], report["writer"], "\n".join(report["lines"])
    subject = f"{pipeline}/{writer}: readers are to take rendition {number} instead of {active}"
    body = (
        f"{report['summary']}\n\n```\n{lines}\n```\n\n[The whole report]({address})\n\nIt is compared again "
        "directly before the handover, which a difference that is not explained refuses. Rejected, readers "
        f"stay with rendition {active}; rendition {number} stays as it is, and is abandoned only by: "
        f"tidemark renditions abandon {pipeline} {writer} {number}"
    )
    return subject, body


class HandOverOperator(SparkAppOperator):
    """Lets readers take a rendition, with the signature of this run: a retry finds what is done."""

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """See ``SparkAppOperator``."""
        from tidemark_airflow.tasks.rebuild import signature_of

        signed = signature_of(context, context["ti"].xcom_pull(task_ids="approve"))
        self.application_args = [
            *(self.application_args or ()),
            *("--hand-over", "--who", signed.who, "--reason", signed.why),
            *("--soak", context["params"]["soak"] or ""),
        ]
        return super().execute(context)
