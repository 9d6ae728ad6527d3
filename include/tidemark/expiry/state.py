"""Expiry's rows in the control plane: the unfinished days of each writer, and the reports of runs.

They are rows of the log object: one for the days of each writer, one for each run. Days are recorded before
anything is purged, so a failed run leaves them to the next one. The last day that a scheduled run covered is
recorded too, so that the next one covers the days in between.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from tidemark.consensus.objects import Change, Snapshot
from tidemark.expiry.days import WaitsFor
from tidemark.expiry.report import PurgeReport
from tidemark.log.state.control import LogControl
from tidemark.log.state.holds import holds

DAYS, RUNS = "expiry/days/", "expiry/run/"
MOST = 500
"""The most reports of runs that are kept."""


@dataclass(frozen=True, slots=True)
class Days:
    """The recorded days of one writer."""

    unfinished: tuple[date, ...] = ()
    """The days that have to be queried again, in ascending order."""
    through: date | None = None
    """The last day that a scheduled run covered; None before the first one."""

    @classmethod
    def of(cls, snapshot: Snapshot, row: str) -> "Days":
        """The days in a row of the log object; empty where there is no such row."""
        body = snapshot.rows.get(row)
        if body is None:
            return cls()
        stored = json.loads(body)
        through = stored["through"] and date.fromisoformat(stored["through"])
        return cls(tuple(map(date.fromisoformat, stored["unfinished"])), through)

    def to_json(self) -> str:
        """The body of the row."""
        days = [day.isoformat() for day in self.unfinished]
        return json.dumps({"unfinished": days, "through": self.through and self.through.isoformat()})


def read_days(control: LogControl, writer: str) -> Days:
    """The recorded days of a writer."""
    row = _days_row(writer)
    return Days.of(control.read_log_rows([row]), row)


def open_days(control: LogControl, writer: str, days: Iterable[date], *, is_scheduled: bool = False) -> None:
    """Records these days as unfinished, and as covered where the run is scheduled."""
    row, wanted = _days_row(writer), tuple(days)

    def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
        known = Days.of(snapshot, row)
        covered = [day for day in (known.through, *(wanted if is_scheduled else ())) if day]
        after = Days(tuple(sorted({*known.unfinished, *wanted})), max(covered, default=None))
        return (None if after == known else Change({row: after.to_json()})), None

    control.amend_log([row], decide)


def settle_days(control: LogControl, report: PurgeReport, at: int, *, is_kept: bool = False) -> None:
    """Removes the finished days from the record, and records the report without the names of entities.

    With ``is_kept`` the run's recorded report is left as it is.
    """
    row, outcomes = _days_row(report.writer), {day.day: day.waits_for for day in report.days}

    def decide(snapshot: Snapshot) -> tuple[Change, None]:
        known = Days.of(snapshot, row)
        days = replace(known, unfinished=left_over(known.unfinished, outcomes))
        if is_kept:
            return Change({row: days.to_json()}), None
        known_runs = control.scan_log(RUNS, MOST).rows
        own = next((name for name, body in known_runs.items() if json.loads(body)["run"] == report.run), None)
        number = int(max(known_runs).removeprefix(RUNS)) + 1 if known_runs else 1
        puts = {row: days.to_json(), own or _run_row(number): _report_body(report, at)}
        return Change(puts, [_run_row(number - MOST)] if not own and number > MOST else []), None

    control.amend_log([row], decide)


def left_over(known: Iterable[date], outcomes: Mapping[date, WaitsFor | None]) -> tuple[date, ...]:
    """The unfinished days after a run: ``outcomes`` has its days, with None for those that are finished."""
    again = {day for day, why in outcomes.items() if why}
    return tuple(sorted({day for day in known if day not in outcomes} | again))


def runs(control: LogControl, limit: int = MOST) -> list[dict[str, Any]]:
    """The reports of the newest runs, oldest first."""
    return [json.loads(body) for body in control.scan_log(RUNS, limit).rows.values()]


def unreported_runs(control: LogControl) -> list[str]:
    """The runs that may have sent purges and have not reported yet. Compaction waits for them."""
    return [hold.holder for hold in holds(control)]


def run_of(control: LogControl, run: str) -> dict[str, Any] | None:
    """The report of a run; None where there is none."""
    return next((row for row in reversed(runs(control)) if row["run"] == run), None)


def _report_body(report: PurgeReport, at: int) -> str:
    row = report.to_dict()
    del row["spared"]
    row["overtaken"] = [one.id for one in report.overtaken]
    return json.dumps({**row, "at": at})


def _days_row(writer: str) -> str:
    return f"{DAYS}{writer}"


def _run_row(number: int) -> str:
    return f"{RUNS}{number:020d}"
