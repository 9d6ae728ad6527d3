"""``tidemark journal expired``: entities that have expired and still exist, and the results of purge runs.

Read-only except ``--report``, which finishes a run that was interrupted.
"""

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.open_pipeline import open_pipeline
from tidemark.cli.options import Json, PipelineName, print_json
from tidemark.clock import wall_clock

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline

DAYS = 31


def expired(
    pipeline: PipelineName,
    on: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Only those that expired on this day.")
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=3660, help="How many days to search, up to the last complete one.")
    ] = DAYS,
    writer: Annotated[
        str | None, typer.Option(help="The journal's writer, where the pipeline has several.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many entities at most; 0 for all.")] = 100,
    history: Annotated[
        bool, typer.Option("--history", help="Show the results of purge_expired runs, oldest first.")
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Write the report of an interrupted run; --history names them."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show entities that have expired and are not purged yet, day by day in the pipeline's time zone."""
    from zoneinfo import ZoneInfo

    from tidemark.expiry.days import days_asked_for, local_date
    from tidemark.expiry.heads import JournalHeads, find_expired, topics_of
    from tidemark.expiry.plan import make_plan

    if history:
        _show_history(pipeline, as_json)
        return
    opened = open_pipeline(pipeline)
    journal = opened.journal(writer)
    if report is not None:
        _report(opened, journal.name, report, as_json)
        return
    zone, now = ZoneInfo(journal.zone), wall_clock()
    asked: tuple[date, ...]
    if on:
        asked = (on.date(),)
    else:
        asked = days_asked_for(local_date(now, zone) - timedelta(days=days), None, now, zone)
    is_ours = topics_of(opened.pipeline, journal.declared.namespaces)
    found = list(find_expired(JournalHeads(journal), asked, is_ours))
    plan = make_plan(pipeline, journal.name, asked if on else (), found, limit or len(found))
    if as_json:
        print_json({**plan.to_dict(), "timezone": journal.zone})
        return
    for line in plan.to_lines():
        typer.echo(line)
    if not found:
        typer.echo(f"  none of the days {asked[0]} to {asked[-1]} has any")


def _show_history(pipeline: str, as_json: bool) -> None:
    from tidemark.expiry.report import report_lines
    from tidemark.expiry.state import runs, unreported_runs
    from tidemark.log.state.control import LogControl

    control = LogControl(open_pipeline(pipeline).consensus, pipeline)
    found, unreported = runs(control), unreported_runs(control)
    if as_json:
        print_json({"pipeline": pipeline, "runs": found, "unreported": unreported})
        return
    for one in found:
        ended = datetime.fromtimestamp(one["at"] / 1_000_000, UTC)
        typer.echo(f"{ended:%Y-%m-%d %H:%M:%S} UTC  {one['run']}")
        for line in report_lines(one):
            typer.echo(f"  {line}")
        if one["overtaken"]:
            typer.echo(f"  appends that were purged too, pinned: {', '.join(map(str, one['overtaken']))}")
    for run in unreported:
        typer.echo(f"{run}: not reported yet, and compaction waits for it. If it is not at work any more,")
        typer.echo(f'  clear its failed task, or: tidemark journal expired {pipeline} --report "{run}"')
    if not found:
        typer.echo(f"{pipeline}: no run of {pipeline}.purge_expired has ended yet")


def _report(opened: "OpenPipeline", writer: str, run: str, as_json: bool) -> None:
    from tidemark.app.purge import open_run
    from tidemark.expiry.report import report_lines

    report = open_run(opened, writer, run).finish()
    if as_json:
        print_json(report)
        return
    for line in report_lines(report):
        typer.echo(line)
