"""The ``plan`` task of ``<pipeline>.purge_expired``."""

from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.dry_run import is_dry_run
from tidemark_airflow.failures import no_retry_if_person_needed
from tidemark_airflow.operators.spark_app import SparkAppOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.expiry.run import ExpiryRun

IN_PROCESS = 200_000
"""Up to so many entities the task finds them itself: Spark would need as long for its start alone."""


class PlanPurgeOperator(SparkAppOperator):
    """Finds the entities that the run is to purge, and logs them; uses Spark only where there are many."""

    def __init__(self, *, writer: str, ceiling: int, **kwargs: Any) -> None:
        super().__init__(app="find_expired", **kwargs)
        self.writer, self.ceiling = writer, ceiling

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """See ``SparkAppOperator``."""
        run = open_run(self.pipeline, self.writer, context)
        is_dry = is_dry_run(context["dag_run"], context["params"])
        ceiling = context["params"]["max_purges"] or self.ceiling
        with no_retry_if_person_needed():
            days = find_days(run, context, keeps=not is_dry)
            found = run.find(days, IN_PROCESS + 1)
            if len(found) <= IN_PROCESS:
                plan = run.look(days, found)
                self._show(plan.to_lines())
                if days and not is_dry:
                    run.plan(days, found, ceiling)
                return plan.to_dict()
        self.log.info("more than %s entities: Spark finds them", f"{IN_PROCESS:,}")
        self.ask_for(days, run.run, ceiling, is_dry)
        result = super().execute(context)
        self._show(result.pop("table"))
        return result

    def _show(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.log.info("%s", line)

    def ask_for(self, days: tuple[date, ...], run: str, ceiling: int, is_dry: bool) -> None:
        """Add the arguments of the application: the days, the name of the run, the most purges."""
        self.application_args = [
            *(self.application_args or ()),
            *("--writer", self.writer, "--run", run, "--ceiling", str(ceiling)),
            *("--days", ",".join(map(str, days))),
            *(["--look"] if is_dry else []),
        ]


def open_run(pipeline: str, writer: str, context: Any) -> "ExpiryRun":
    """The purge of a writer's entities that a task belongs to, under the name that the DAG run gives it."""
    from tidemark.app import purge as opened

    name = f"{context['dag'].dag_id} {context['run_id']} {writer}"
    return opened.open_run(open_pipeline(pipeline), writer, name)


def find_days(run: "ExpiryRun", context: Any, *, keeps: bool) -> tuple[date, ...]:
    """The days whose expired entities a run looks for.

    ``keeps`` records the days of a schedule or a backfill as unfinished, before anything is looked for: a
    later run repeats those that this one cannot finish.
    """
    from tidemark.expiry.days import days_asked_for, days_ended_between

    dag_run, params = context["dag_run"], context["params"]
    if dag_run.run_type == "manual":
        first, last = (day and date.fromisoformat(day) for day in (params["first_day"], params["last_day"]))
        named = days_asked_for(first, last, run.clock(), run.zone)
        # Named days are exactly what was asked for; unfinished ones are added only where none is named.
        return named if first or last else run.days(named)
    start, end = _micros(dag_run.data_interval_start), _micros(dag_run.data_interval_end)
    if dag_run.run_type == "backfill":
        # Several runs of a backfill may be active: each takes the days of its own interval only.
        days = days_ended_between(start, end, run.zone)
    else:
        days = run.due(start, end)
    if keeps:
        run.open_days(days, is_scheduled=dag_run.run_type == "scheduled")
    return days


def _micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)
