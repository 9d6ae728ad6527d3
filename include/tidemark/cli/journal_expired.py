"""``tidemark journal expired``: entities whose time is over and that are still there. Only looks."""

import time
from datetime import date, datetime, timedelta
from typing import Annotated

import typer

from tidemark.cli.options import Json, PipelineName, print_json
from tidemark.cli.writers import open_pipeline

DAYS = 31


def expired(
    pipeline: PipelineName,
    on: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Only those that expired on this day.")
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=3660, help="How many days are looked at, up to the last that is over.")
    ] = DAYS,
    writer: Annotated[
        str | None, typer.Option(help="The journal's writer, where the pipeline has several.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many entities at most; 0 for all.")] = 100,
    as_json: Json = False,
) -> None:
    """Show entities that have expired and are not purged yet, day by day in the pipeline's time zone."""
    from zoneinfo import ZoneInfo

    from tidemark.expiry.days import days_asked_for, local_date
    from tidemark.expiry.heads import JournalHeads, find_expired, topics_of
    from tidemark.expiry.plan import make_plan

    opened = open_pipeline(pipeline)
    journal = opened.journal(writer)
    zone, now = ZoneInfo(journal.zone), time.time_ns() // 1000
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
