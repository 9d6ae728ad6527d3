"""What every DAG of Tidemark shares: owner, retries, tags, timetables, the parameters of plans."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow.sdk import CronDataIntervalTimetable, Param

from tidemark_airflow.dry_run import dry_run_param


class Tag(StrEnum):
    """The tags that DAGs may carry; a mistyped tag fails at import."""

    TIDEMARK = "tidemark"
    REPLICATION = "replication"
    RESUME = "resume"
    COMPACTION = "compaction"
    EXPIRY = "expiry"
    WORK = "work"
    RENDITIONS = "renditions"
    OPLOG = "oplog"


START = datetime(2026, 1, 1, tzinfo=UTC)
"""Earlier than any data interval that a backfill may cover."""


def task_defaults() -> dict[str, Any]:
    """Default arguments of every task: two retries with growing pauses, then the task fails."""
    return {
        "owner": "tidemark",
        "retries": 2,
        "retry_delay": timedelta(seconds=15),
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": timedelta(minutes=5),
        "execution_timeout": timedelta(hours=6),
    }


def plan_params() -> dict[str, Param]:
    """Parameters of a DAG that shows a plan before it deletes something."""
    approve = "Wait for a person to approve the plan before it is carried out."
    return {"dry_run": dry_run_param(), "approve": Param(False, type="boolean", description=approve)}


def data_intervals(schedule: str | None, timezone: str = "UTC") -> CronDataIntervalTimetable | None:
    """A cron expression as a timetable whose runs cover intervals; a plain cron string has empty ones."""
    return CronDataIntervalTimetable(schedule, timezone=timezone) if schedule else None
