"""The ``audit`` task of ``<pipeline>.replicate``, and its link to the page with the results."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.configuration import conf

from tidemark_airflow.connections import pipeline_connections
from tidemark_airflow.failures import no_retry_if_person_needed

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import TaskInstanceKey

PAGES = "/tidemark"
"""The URL prefix under which ``plugin.py`` mounts the pages."""


class AuditLink(BaseOperatorLink):
    """A link from the task to the results of its audit, passed or failed."""

    name = "Audit results"

    def get_link(self, operator: BaseOperator, *, ti_key: "TaskInstanceKey") -> str:
        """The page of this run's audit."""
        base = conf.get("api", "base_url", fallback="").rstrip("/")
        return f"{base}{PAGES}/audits/{getattr(operator, 'pipeline', '')}/{getattr(operator, 't', '')}"


class AuditOperator(BaseOperator):
    """Logs everything that the audit of a capture found; fails at a critical finding."""

    template_fields: Sequence[str] = ("t",)
    operator_extra_links = (AuditLink(),)

    def __init__(self, *, pipeline: str, t: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.t = pipeline, t

    def execute(self, context: "Context") -> dict[str, Any]:
        """Log the findings, then judge them; a critical one closes the log's gate."""
        from tidemark.app.replicate import audit_run
        from tidemark.pipeline.loader import find_pipeline

        declared = find_pipeline(self.pipeline)
        with no_retry_if_person_needed():
            record = audit_run(declared, pipeline_connections(declared), int(self.t), show=self.log.info)
        failures, warnings = list(record.failures), list(record.warnings)
        return {
            "t": int(self.t),
            "passed": not failures,
            "failures": len(failures),
            "warnings": len(warnings),
        }
