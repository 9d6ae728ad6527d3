"""The ``plan`` task of ``<pipeline>.compact_log``."""

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.dry_run import is_dry_run
from tidemark_airflow.failures import no_retry_if_person_needed
from tidemark_airflow.operators.spark_app import SparkAppOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.compaction.compact import Compaction


class PlanCompactionOperator(SparkAppOperator):
    """Makes the plan of a compaction, logs it as a table and returns it as a document.

    Starts no Spark where there is no message to read.

    Args:
        is_optional: Whether it is skipped where the policy keeps everything and the run names no other one.
        given: See ``SparkAppOperator``.
    """

    def __init__(self, *, is_optional: bool = False, **given: Any) -> None:
        super().__init__(**given)
        self.is_optional = is_optional

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """See ``SparkAppOperator``."""
        if self.is_optional and not context["params"]["policy"]:
            raise AirflowSkipException("the policy keeps every message of the log")
        with no_retry_if_person_needed():
            compaction = open_compaction(self.pipeline, context["params"]["policy"])
            is_idle = compaction.is_idle()
        if is_idle:
            result = self._plan_here(compaction, context)
        else:
            step = "look" if is_dry_run(context["dag_run"], context["params"]) else "plan"
            self.application_args = [*(self.application_args or ()), "--step", step]
            result = super().execute(context)
        for line in result.pop("table"):
            self.log.info("%s", line)
        return result

    def _plan_here(self, compaction: "Compaction", context: "Context") -> dict[str, Any]:
        from tidemark.compaction.report import plan_document, plan_lines

        holder = holder_of(context)
        with no_retry_if_person_needed(), compaction.recording_refusals(holder):
            is_dry = is_dry_run(context["dag_run"], context["params"])
            plan = compaction.look() if is_dry else compaction.plan(holder)
        return {**plan_document(plan), "table": list(plan_lines(plan))}


def open_compaction(pipeline: str, policy: str | None) -> "Compaction":
    """The compaction of a pipeline's log; ``policy`` replaces the pipeline's own."""
    from tidemark.compaction.compact import Compaction
    from tidemark.compaction.engine import InProcess

    opened = open_pipeline(pipeline)
    return Compaction.open(opened.pipeline, opened.consensus, InProcess(), policy or None)


def holder_of(context: Any) -> str:
    """The name under which a run holds the log's lease; all tasks of the run use the same."""
    return f"{context['dag'].dag_id} {context['run_id']}"
