"""The tasks ``deliver`` of ``<pipeline>.replicate`` and ``follow`` of ``<pipeline>.follow``: where every gate
is open, no task about gates runs, and where no writer's settings have changed, none that starts rebuilds."""

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import DownstreamTasksSkipped

from tidemark_airflow.operators.spark_app import SparkAppOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

RESULT = "return_value"
"""The key under which Airflow keeps what a task returns."""


class DeliverOperator(SparkAppOperator):
    """Runs an application that delivers; skips the tasks ``about_gates`` where every writer's gate is open,
    and ``about_changes`` where the application says that no writer has changed.

    A task costs as much as a small delivery, and the next run of a follow waits for it. A delivery that fails
    skips nothing.
    """

    def __init__(
        self,
        *,
        about_gates: "Sequence[str]",
        about_changes: "Sequence[str]" = (),
        app: str = "deliver",
        **kwargs: Any,
    ) -> None:
        super().__init__(app=app, **kwargs)
        self.about_gates, self.about_changes = tuple(about_gates), tuple(about_changes)

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """Deliver; the result is the same with and without skipped tasks."""
        result = super().execute(context)
        skipped = [] if stopped_writers(result) else [*self.about_gates]
        if result.get("changed") == []:
            skipped += self.about_changes
        if not skipped:
            return result
        context["ti"].xcom_push(key=RESULT, value=result)
        raise DownstreamTasksSkipped(tasks=skipped)  # type: ignore[no-untyped-call]


def stopped_writers(result: dict[str, Any]) -> list[str]:
    """The writers that are stopped, or have failed, by an application's summary."""
    if "stopped" in result:
        return list(result["stopped"])
    return [name for name, one in result["writers"].items() if is_stopped(one)]


def is_stopped(writer: dict[str, Any]) -> bool:
    """Whether a writer's part of the summary says that its gate is closed, or that it has failed."""
    return bool(writer["gate"] or writer["stopped_now"] or writer["failure"])
