"""The ``reconcile`` task of ``<pipeline>.replicate``, and its link to the page with the results."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidemark_airflow.operators.audit import PAGES

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import TaskInstanceKey


class ReconcileLink(BaseOperatorLink):
    """A link from the task to the results of the comparison, passed or failed."""

    name = "Reconciliation"

    def get_link(self, operator: BaseOperator, *, ti_key: "TaskInstanceKey") -> str:
        """The page of this run's first record that did not pass, else of its first."""
        base = conf.get("api", "base_url", fallback="").rstrip("/")
        place = getattr(operator, "place", "")
        return f"{base}{PAGES}/reconciliations/{getattr(operator, 'pipeline', '')}/{place}" if place else ""


class ReconcileOperator(BaseOperator):
    """Logs how the delivered output compares with the log; fails at a difference."""

    operator_extra_links = (ReconcileLink(),)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.place = ""
        """The writer and id of the record that the link leads to; known when the task has run."""

    def execute(self, context: "Context") -> dict[str, Any]:
        """Log every record of this run, then judge."""
        from tidemark.pipeline.loader import find_pipeline
        from tidemark.verification.reconciliation import read

        delivered = context["ti"].xcom_pull(task_ids="deliver") or {"writers": {}}
        found = {
            name: one["reconciled"] for name, one in delivered["writers"].items() if one.get("reconciled")
        }
        if not found:
            raise AirflowSkipException(f"{self.pipeline}: nothing was delivered that is compared")
        root, bad = find_pipeline(self.pipeline).log.path, []
        for name, one in sorted(found.items(), key=lambda item: bool(item[1]["passed"])):
            record = read(self.pipeline, root, name, one["position"])
            for line in record.to_lines() if record else ():
                self.log.info("%s", line)
            if record and not record.passed:
                bad.append(f"{self.pipeline}/{name}: {record.reason}")
        first = min(found, key=lambda name: bool(found[name]["passed"]))
        self.place = f"{first}/{found[first]['position']}"
        if bad:
            raise AirflowFailException(f"{' '.join(bad)} The gate is closed; see docs/verification.md.")
        return found
