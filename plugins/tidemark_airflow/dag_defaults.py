"""What every DAG of Tidemark shares: owner, retries, tags, defaults."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow.sdk import CronDataIntervalTimetable, Param


class Tag(StrEnum):
    """The tags DAGs may carry; a typo fails at import."""

    TIDEMARK = "tidemark"
    REPLICATION = "replication"
    RESUME = "resume"
    COMPACTION = "compaction"
    EXPIRY = "expiry"
    WORK = "work"


START = datetime(2026, 1, 1, tzinfo=UTC)
"""Before any data interval a backfill may ask for."""


def task_defaults() -> dict[str, Any]:
    """Defaults of every task: two retries with growing pauses, before a person is asked."""
    return {
        "owner": "tidemark",
        "retries": 2,
        "retry_delay": timedelta(seconds=15),
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": timedelta(minutes=5),
        "execution_timeout": timedelta(hours=6),
    }


def plan_params() -> dict[str, Param]:
    """What people choose where a plan comes before what it destroys."""
    dry = "Only show the plan. Runs on schedule are not dry."
    approve = "Wait for a person to approve the plan before it is done."
    return {
        "dry_run": Param(True, type="boolean", description=dry),
        "approve": Param(False, type="boolean", description=approve),
    }


def data_intervals(schedule: str | None, timezone: str = "UTC") -> CronDataIntervalTimetable | None:
    """A cron text as a timetable whose runs cover real intervals."""
    return CronDataIntervalTimetable(schedule, timezone=timezone) if schedule else None
