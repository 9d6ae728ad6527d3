"""What the control plane knows of expiry: days that are not done with, and what runs came to.

Rows of the log object, one a writer for the days and one a run for the history. Days are written down before
anybody is purged, so a run that fails leaves them to the next one.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from tidemark.consensus.objects import Change, Snapshot
from tidemark.expiry.days import WaitsFor
from tidemark.expiry.report import PurgeReport
from tidemark.log.control import LogControl

DAYS, RUNS = "expiry/days/", "expiry/run/"
MOST = 500
"""Runs that are remembered."""


def unfinished_days(control: LogControl, writer: str) -> tuple[date, ...]:
    """The days of a writer that have to be asked again."""
    row = _days_row(writer)
    return _days(control.read_log_rows([row]), row)


def open_days(control: LogControl, writer: str, days: Iterable[date]) -> tuple[date, ...]:
    """Write down that these days are to be asked until they are done with; all that are."""
    row, wanted = _days_row(writer), tuple(days)

    def decide(snapshot: Snapshot) -> tuple[Change | None, tuple[date, ...]]:
        known = _days(snapshot, row)
        every = tuple(sorted({*known, *wanted}))
        return (None if every == known else Change({row: _text(every)})), every

    return control.amend_log([row], decide)


def settle_days(control: LogControl, report: PurgeReport, at: int) -> None:
    """Take the days that are done with off the list, and put the run on record; once, however often asked.

    Names of entities are not kept.
    """
    row, outcomes = _days_row(report.writer), {day.day: day.waits_for for day in report.days}

    def decide(snapshot: Snapshot) -> tuple[Change, None]:
        newest = control.scan_log(RUNS, 1).rows
        number = int(next(iter(newest)).removeprefix(RUNS)) + 1 if newest else 1
        if newest and json.loads(next(iter(newest.values())))["run"] == report.run:
            number -= 1
        puts = {row: _text(left_over(_days(snapshot, row), outcomes)), _run_row(number): _kept(report, at)}
        return Change(puts, [_run_row(number - MOST)] if number > MOST else []), None

    control.amend_log([row], decide)


def left_over(known: Iterable[date], outcomes: Mapping[date, WaitsFor | None]) -> tuple[date, ...]:
    """The days that have to be asked again, now that some were."""
    again = {day for day, why in outcomes.items() if why}
    return tuple(sorted({day for day in known if day not in outcomes} | again))


def runs(control: LogControl, limit: int = MOST) -> list[dict[str, Any]]:
    """What the newest runs came to, oldest first."""
    return [json.loads(body) for body in control.scan_log(RUNS, limit).rows.values()]


def run_of(control: LogControl, run: str) -> dict[str, Any] | None:
    """What a run came to, if it is on record."""
    return next((row for row in reversed(runs(control)) if row["run"] == run), None)


def _kept(report: PurgeReport, at: int) -> str:
    row = report.to_dict()
    del row["spared"]
    row["overtaken"] = [one.id for one in report.overtaken]
    return json.dumps({**row, "at": at})


def _days(snapshot: Snapshot, row: str) -> tuple[date, ...]:
    body = snapshot.rows.get(row)
    return tuple(date.fromisoformat(day) for day in json.loads(body)) if body else ()


def _text(days: Iterable[date]) -> str:
    return json.dumps([day.isoformat() for day in days])


def _days_row(writer: str) -> str:
    return f"{DAYS}{writer}"


def _run_row(number: int) -> str:
    return f"{RUNS}{number:020d}"
