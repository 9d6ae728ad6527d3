"""The ``sweep`` task of ``work.sweep``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark_airflow.connections import look_up
from tidemark_airflow.dry_run import is_dry_run
from tidemark_airflow.failures import ApplicationFailed
from tidemark_airflow.operators.spark_app import SparkAppOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class SweepWorkOperator(SparkAppOperator):
    """Runs ``spark_apps/sweep_work.py`` over work journals; returns its JSON summary.

    A journal that cannot be swept fails the task after all others have been swept. So does a refused file.
    """

    template_fields: Sequence[str] = (*SparkAppOperator.template_fields, "journals")

    def __init__(self, *, journals: Any, **kwargs: Any) -> None:
        super().__init__(pipeline="work", app="sweep_work", **kwargs)
        self.journals = journals

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """Sweep all journals in one application."""
        from tidemark.work.loader import load_journals

        self.application_args = [part for name in self.journals for part in ("--journal", name)]
        if is_dry_run(context["dag_run"], context["params"]):
            self.application_args.append("--dry-run")
        result = super().execute(context)
        if not context["params"].get("journal") and (refused := load_journals().refused):
            raise ApplicationFailed("\n".join(str(refusal) for refusal in refused))
        return result

    def hand_over_connections(self, path: Path) -> None:
        """Write the connections of all journals.

        One that cannot be read is logged and left out: the application then refuses the journals that need
        it.
        """
        from tidemark.connections import CassandraConnection, WorkConnections
        from tidemark.work.store.known_journals import Address

        found = {}
        for name in sorted({Address.parse(journal).connection for journal in self.journals}):
            try:
                found[name] = CassandraConnection.from_airflow(name, look_up(name))
            except Exception as error:
                self.log.error("%s: %s", name, error)
        WorkConnections(cassandra=found, spark=self.find_engine()).write(path)
