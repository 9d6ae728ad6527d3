"""The ``diff`` task of ``<pipeline>.sync``."""

from typing import TYPE_CHECKING, Any

from tidemark_airflow.operators.spark_app import SparkAppOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class CompareDumpOperator(SparkAppOperator):
    """Compares the dump with the objects, logs the plan as a table and returns it as a document."""

    def __init__(self, *, run: str, t: str, **kwargs: Any) -> None:
        super().__init__(app="sync_objects", arguments=["--run", run, "--t", t], **kwargs)

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """See ``SparkAppOperator``."""
        plan = super().execute(context)
        for line in plan.pop("table"):
            self.log.info("%s", line)
        return plan
