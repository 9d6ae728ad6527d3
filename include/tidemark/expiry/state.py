"""What the control plane knows of expiry: days that are not done with, and what runs came to.

Rows of the log object, one a writer for the days and one a run for the history. Days are written down before
anybody is purged, so a run that fails leaves them to the next one; and how far scheduled runs have come, so
the next one knows which days nobody was there for.
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
"""Runs that are remembered."""


@dataclass(frozen=True, slots=True)
class Days:
    """What is on record about the days of one writer."""

    unfinished: tuple[date, ...] = ()
    """Those that have to be asked again, in their order."""
    through: date | None = None
    """The last one that a scheduled run has covered."""

    @classmethod
    def of(cls, snapshot: Snapshot, row: str) -> "Days":
        """What a row says."""
        body = snapshot.rows.get(row)
        if body is None:
            return cls()
        said = json.loads(body)
        through = said["through"] and date.fromisoformat(said["through"])
        return cls(tuple(map(date.fromisoformat, said["unfinished"])), through)

    def to_json(self) -> str:
        """The row."""
        days = [day.isoformat() for day in self.unfinished]
        return json.dumps({"unfinished": days, "through": self.through and self.through.isoformat()})


def read_days(control: LogControl, writer: str) -> Days:
    """What is on record about a writer's days."""
    row = _days_row(writer)
    return Days.of(control.read_log_rows([row]), row)


def open_days(control: LogControl, writer: str, days: Iterable[date], *, is_scheduled: bool = False) -> None:
    """Write down that these days are to be asked until they are done with."""
    row, wanted = _days_row(writer), tuple(days)

    def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
        known = Days.of(snapshot, row)
        covered = [day for day in (known.through, *(wanted if is_scheduled else ())) if day]
        after = Days(tuple(sorted({*known.unfinished, *wanted})), max(covered, default=None))
        return (None if after == known else Change({row: after.to_json()})), None

    control.amend_log([row], decide)


def settle_days(control: LogControl, report: PurgeReport, at: int, *, is_kept: bool = False) -> None:
    """Take the days that are done with off the list, and put the run on record, unless it is there already.

    Names of entities are not kept.
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
        puts = {row: days.to_json(), own or _run_row(number): _kept(report, at)}
        return Change(puts, [_run_row(number - MOST)] if not own and number > MOST else []), None

    control.amend_log([row], decide)


def left_over(known: Iterable[date], outcomes: Mapping[date, WaitsFor | None]) -> tuple[date, ...]:
    """The days that have to be asked again, now that some were."""
    again = {day for day, why in outcomes.items() if why}
    return tuple(sorted({day for day in known if day not in outcomes} | again))


def runs(control: LogControl, limit: int = MOST) -> list[dict[str, Any]]:
    """What the newest runs came to, oldest first."""
    return [json.loads(body) for body in control.scan_log(RUNS, limit).rows.values()]


def unreported_runs(control: LogControl) -> list[str]:
    """The runs that may have sent purges and have not looked for what these overtook: compaction waits."""
    return [hold.holder for hold in holds(control)]


def run_of(control: LogControl, run: str) -> dict[str, Any] | None:
    """What a run came to, if it is on record."""
    return next((row for row in reversed(runs(control)) if row["run"] == run), None)


def _kept(report: PurgeReport, at: int) -> str:
    row = report.to_dict()
    del row["spared"]
    row["overtaken"] = [one.id for one in report.overtaken]
    return json.dumps({**row, "at": at})


def _days_row(writer: str) -> str:
    return f"{DAYS}{writer}"


def _run_row(number: int) -> str:
    return f"{RUNS}{number:020d}"
