"""The ``audit`` task of ``<pipeline>.replicate``, and the link from it to the page of its results."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.configuration import conf

from tidemark_airflow.asking import asking_a_person
from tidemark_airflow.connections import pipeline_connections

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import TaskInstanceKey

PAGES = "/tidemark"
"""Where ``plugin.py`` mounts the pages."""


class AuditLink(BaseOperatorLink):
    """From the task to what its audit found, whether it passed or not."""

    name = "Audit results"

    def get_link(self, operator: BaseOperator, *, ti_key: "TaskInstanceKey") -> str:
        """The page of this run's audit."""
        base = conf.get("api", "base_url", fallback="").rstrip("/")
        return f"{base}{PAGES}/audits/{getattr(operator, 'pipeline', '')}/{getattr(operator, 't', '')}"


class AuditOperator(BaseOperator):
    """Lets only a capture pass whose audit found nothing critical; shows everything it found."""

    template_fields: Sequence[str] = ("t",)
    operator_extra_links = (AuditLink(),)

    def __init__(self, *, pipeline: str, t: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.t = pipeline, t

    def execute(self, context: "Context") -> dict[str, Any]:
        """Show, then judge; a bad finding closes the log's gate."""
        from tidemark.app.replicate import audit_run
        from tidemark.pipeline.loader import find_pipeline

        declared = find_pipeline(self.pipeline)
        with asking_a_person():
            record = audit_run(declared, pipeline_connections(declared), int(self.t), show=self.log.info)
        failures, warnings = list(record.failures), list(record.warnings)
        return {
            "t": int(self.t),
            "passed": not failures,
            "failures": len(failures),
            "warnings": len(warnings),
        }
