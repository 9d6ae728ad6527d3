"""The tasks of ``<pipeline>.purge_expired``: plan, ask a person, purge, report. They decide nothing alone."""

from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import TriggerRule, task

from tidemark_airflow.asking import asking_a_person, is_approved
from tidemark_airflow.gates import open_pipeline
from tidemark_airflow.spark_app import SparkAppOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.expiry.run import ExpiryRun

RUN = "{{ dag.dag_id }} {{ run_id }} %s"
"""The name of a run over the entities of one writer: what the origin of its purges says."""
HERE = 200_000
"""Entities that one process finds about as soon as Spark, with its start, has found some."""


class PlanOperator(SparkAppOperator):
    """Finds whom the run is to purge, and shows it; with Spark only where there are many."""

    def __init__(self, *, writer: str, ceiling: int, **kwargs: Any) -> None:
        super().__init__(app="find_expired", **kwargs)
        self.writer, self.ceiling = writer, ceiling

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """See ``SparkAppOperator``."""
        run = open_run(self.pipeline, self.writer, context)
        is_look = is_dry(context["dag_run"], context["params"])
        ceiling = context["params"]["max_purges"] or self.ceiling
        with asking_a_person():
            days = find_days(run, context, keeps=not is_look)
            found = run.find(days, HERE + 1)
            if len(found) <= HERE:
                plan = run.look(days, found)
                self._show(plan.to_lines())
                if days and not is_look:
                    run.plan(days, found, ceiling)
                return plan.to_dict()
        self.log.info("more than %s entities: Spark looks for them", f"{HERE:,}")
        self.ask_for(days, run.run, ceiling, is_look)
        result = super().execute(context)
        self._show(result.pop("table"))
        return result

    def _show(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.log.info("%s", line)

    def ask_for(self, days: tuple[date, ...], run: str, ceiling: int, is_look: bool) -> None:
        """Tell the application what to look for."""
        self.application_args = [
            *(self.application_args or ()),
            *("--writer", self.writer, "--run", run, "--ceiling", str(ceiling)),
            *("--days", ",".join(map(str, days))),
            *(["--look"] if is_look else []),
        ]


def open_run(pipeline: str, writer: str, context: Any) -> "ExpiryRun":
    """The run of a writer's entities that a task belongs to."""
    from tidemark.app import purge as opened

    name = f"{context['dag'].dag_id} {context['run_id']} {writer}"
    return opened.open_run(open_pipeline(pipeline), writer, name)


def is_dry(dag_run: Any, params: Any) -> bool:
    """Whether a run only shows its plan: by hand unless the person says otherwise, else only if asked to."""
    if dag_run.run_type == "manual":
        return bool(params["dry_run"])
    return bool((dag_run.conf or {}).get("dry_run"))


def find_days(run: "ExpiryRun", context: Any, *, keeps: bool) -> tuple[date, ...]:
    """The days that a run asks; ``keeps`` writes those of a schedule or a backfill down before they are."""
    from tidemark.expiry.days import days_asked_for, days_ended_between

    dag_run, params = context["dag_run"], context["params"]
    if dag_run.run_type == "manual":
        first, last = (day and date.fromisoformat(day) for day in (params["first_day"], params["last_day"]))
        named = days_asked_for(first, last, run.clock(), run.zone)
        # Whoever names days means these and no others.
        return named if first or last else run.days(named)
    start, end = _micros(dag_run.data_interval_start), _micros(dag_run.data_interval_end)
    if dag_run.run_type == "backfill":
        # Several may be under way: each keeps to its own.
        days = days_ended_between(start, end, run.zone)
    else:
        days = run.due(start, end)
    if keeps:
        run.open_days(days, is_scheduled=dag_run.run_type == "scheduled")
    return days


@task.branch(task_id="decide", doc_md="Purge, ask a person first, or stop after the plan was shown.")
def decide(pipeline: str, group: str, plan: dict[str, Any], **context: Any) -> list[str]:
    """The task to go on with."""
    if is_dry(context["dag_run"], context["params"]):
        print(f"{pipeline}: this was a dry run; nothing was sent")
        return []
    if not plan["days"]:
        print(f"{pipeline}: no day has ended since the last run, and none is unfinished")
        return []
    if not plan["total"]:
        print(f"{pipeline}: nothing has expired")
        return [f"{group}report"]
    return [f"{group}approve" if context["params"]["approve"] else f"{group}purge"]


@task.short_circuit(
    task_id="follow_approval",
    ignore_downstream_trigger_rules=True,
    doc_md="Go on only where the person approved the plan.",
)
def follow_approval(pipeline: str, writer: str, answer: dict[str, Any], **context: Any) -> bool:
    """Whether to go on; a plan that was rejected is forgotten."""
    if is_approved(pipeline, answer):
        return True
    open_run(pipeline, writer, context).discard()
    return False


@task(
    task_id="purge",
    trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    doc_md="Look at every planned entity once more; send purges of those of which there is no news.",
)
def purge(pipeline: str, writer: str, plan: dict[str, Any], **context: Any) -> dict[str, int]:
    """How many were purged, how many left alone."""
    run = open_run(pipeline, writer, context)
    with asking_a_person():
        run.open_days(_days(plan))
        done = run.purge()
    print(f"{pipeline}: {len(done.sent):,} purges sent, {len(done.spared):,} entities left alone")
    return {"purged": len(done.sent), "left_alone": len(done.spared)}


@task(
    task_id="report",
    trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    doc_md="Say what the run came to; fail it where a purge overtook an append, which is pinned.",
)
def report(pipeline: str, writer: str, plan: dict[str, Any], **context: Any) -> dict[str, Any]:
    """What the run came to."""
    from tidemark.expiry.report import report_lines

    run = open_run(pipeline, writer, context)
    with asking_a_person():
        result = run.report(_days(plan))
    for line in report_lines(result):
        print(line)
    return result


def _days(plan: dict[str, Any]) -> list[date]:
    return [date.fromisoformat(day) for day in plan["days"]]


def _micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)
