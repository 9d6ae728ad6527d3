"""The days whose expired entities a run of ``purge_expired`` looks for: the kind of the run decides."""

from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tidemark.consensus.memory import MemoryConsensus
from tidemark.expiry.run import ExpiryRun
from tidemark.expiry.state import read_days
from tidemark.log.bindings.door import Bindings
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.system

PRAGUE = ZoneInfo("Europe/Prague")
NOW = int(datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp() * 1_000_000)


def nov(*days: int) -> tuple[date, ...]:
    return tuple(date(2026, 11, day) for day in days)


def ask(
    run: ExpiryRun, kind: str, day: int = 16, keeps: bool = True, **params: str | None
) -> tuple[date, ...]:
    from tidemark_airflow.operators.plan_purge import find_days

    dag_run = SimpleNamespace(
        run_type=kind,
        data_interval_start=datetime(2026, 11, day, tzinfo=PRAGUE),
        data_interval_end=datetime(2026, 11, day + 1, tzinfo=PRAGUE),
    )
    params = {"first_day": None, "last_day": None, **params}
    return find_days(run, {"dag_run": dag_run, "params": params}, keeps=keeps)


@pytest.fixture
def run(dag_bag: Any) -> ExpiryRun:
    """One with a day that an earlier run could not finish; it has what it needs to know its days."""
    control = LogControl(MemoryConsensus(), "orders")
    log: Any = SimpleNamespace(control=control, bindings=Bindings(control))
    unused: Any = None
    ports = (unused, log, unused, unused, unused)
    run = ExpiryRun("run", "w", PRAGUE, *ports, is_ours=lambda topic: True, clock=lambda: NOW)
    run.open_days(nov(3))
    return run


def test_a_run_on_schedule_asks_its_day_and_what_is_unfinished(run: ExpiryRun) -> None:
    assert ask(run, "scheduled") == nov(3, 16)
    assert read_days(run.log.control, "w").through == date(2026, 11, 16)


def test_the_next_one_asks_the_days_between_too(run: ExpiryRun) -> None:
    ask(run, "scheduled", 10)
    assert ask(run, "scheduled", 13) == nov(3, 10, 11, 12, 13)


def test_a_backfill_asks_its_own_days(run: ExpiryRun) -> None:
    assert ask(run, "backfill", 9) == nov(9)
    assert read_days(run.log.control, "w").unfinished == nov(3, 9)
    assert read_days(run.log.control, "w").through is None


def test_a_person_means_the_days_they_name(run: ExpiryRun) -> None:
    assert ask(run, "manual", first_day="2026-11-12", last_day="2026-11-13") == nov(12, 13)


def test_without_a_name_the_last_day_that_is_over_and_what_is_unfinished(run: ExpiryRun) -> None:
    assert ask(run, "manual") == nov(3, 16)
    assert read_days(run.log.control, "w").unfinished == nov(3)


def test_a_dry_run_writes_nothing_down(run: ExpiryRun) -> None:
    assert ask(run, "scheduled", keeps=False) == nov(3, 16)
    assert read_days(run.log.control, "w").unfinished == nov(3)


def test_spark_is_asked_for_what_the_task_would_have_looked_for(dag_bag: Any) -> None:
    plan = dag_bag.dags["orders.purge_expired"].get_task("plan")
    plan.ask_for(nov(3, 4), "the run", 7, True)
    assert plan.application_args == [
        *("--pipeline", "orders", "--writer", "cassandra", "--run", "the run", "--ceiling", "7"),
        *("--days", "2026-11-03,2026-11-04", "--look"),
    ]


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 29, 23), (10, 25, 25), (11, 16, 24)])
def test_the_interval_of_a_day_is_that_day_in_its_zone(
    dag_bag: Any, month: int, day: int, hours: int
) -> None:
    from airflow.timetables.interval import CronDataIntervalTimetable

    ends = datetime(2026, month, day + 1, 0, 1, tzinfo=PRAGUE).astimezone(UTC)
    timetable = CronDataIntervalTimetable("@daily", timezone="Europe/Prague")
    from pendulum import instance

    interval = timetable.infer_manual_data_interval(run_after=instance(ends))
    assert (interval.end - interval.start).total_seconds() == hours * 3600
    assert interval.start.in_timezone("Europe/Prague").date() == date(2026, month, day)
