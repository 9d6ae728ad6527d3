"""``tidemark collection``: a collection's rows and changes as of any readable time, and what holds its times.

Rows and changes are printed while they are read: one JSON document per line with ``--json``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.options import Json, PipelineName, WriterName, print_json
from tidemark.cli.plans import PlanOptions, plan_options

if TYPE_CHECKING:
    from tidemark.client.collection.collection import Collection
    from tidemark.client.collection.opened import OpenedCollection
    from tidemark.client.collection.settings import CollectionSettings

app = typer.Typer(no_args_is_help=True)

_TIME = "in µs since 1970, or as a date with a zone, such as 2026-11-17T10:00:00Z"
At = Annotated[str | None, typer.Option(help=f"The time to read, {_TIME}; by default the newest one.")]
Key = Annotated[
    str, typer.Argument(metavar="KEY", help="The value of the key column; a JSON object for several columns.")
]
PinName = Annotated[str | None, typer.Option(help="The pin's name; by default it is named after its time.")]


@app.command()
def get(pipeline: PipelineName, writer: WriterName, key: Key, at: At = None, as_json: Json = False) -> None:
    """Show the row of one key."""
    from tidemark.cli.output.collection import row_of_driver, row_text

    time = _time(at)
    with _opened(pipeline, writer) as (settings, collection):
        found = collection.get(settings.parse_key(key), time)
    row = None if found is None else row_of_driver(found)
    if as_json:
        print_json({"pipeline": pipeline, "writer": settings.declared.name, "row": row})
    else:
        typer.echo("There is no such row." if row is None else row_text(row))


@app.command()
def rows(pipeline: PipelineName, writer: WriterName, at: At = None, as_json: Json = False) -> None:
    """Show the rows of all keys, in no order; with --json one per line."""
    from tidemark.cli.output.collection import row_text, rows_of_batch

    time, count = _time(at), 0
    with _opened(pipeline, writer) as (_, collection), collection.rows(time) as found:
        for batch in found:
            for row in rows_of_batch(batch):
                count += 1
                print(row_text(row))
    if not as_json:
        typer.echo(f"{count} row{'' if count == 1 else 's'} at {found.t}.")


@app.command()
def changes(
    pipeline: PipelineName,
    writer: WriterName,
    after: Annotated[str, typer.Option(help=f"The time whose state the changes continue, {_TIME}.")],
    until: Annotated[str | None, typer.Option(help="The last time whose changes are wanted.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for later changes, until stopped.")] = False,
    as_json: Json = False,
) -> None:
    """Show the rows that appeared and disappeared after a time; with --json one per line."""
    from tidemark.cli.output.collection import change_json, change_line

    first, last, count = _required_time(after), _time(until), 0
    with _opened(pipeline, writer) as (_, collection):
        stream = collection.changes(first, until=last, timeout=None if follow else 0)
        for one in stream:
            for change in one:
                count += 1
                print(change_json(change) if as_json else change_line(change), flush=follow)
    if not as_json:
        typer.echo(f"{count} change{'' if count == 1 else 's'} through {stream.through}.")


@app.command()
def readers(pipeline: PipelineName, writer: WriterName, as_json: Json = False) -> None:
    """Show which times can be read, and the readers and pins that hold some."""
    from dataclasses import asdict

    from tidemark.cli.output.collection import readers_table

    opened = _parts(pipeline, writer)
    with opened.asking():
        known, since, frontier = opened.readers.load(), opened.since(), opened.frontier()
    now = opened.readers.clock()
    held = sorted(known.capabilities.values(), key=lambda one: (one.t, one.reader))
    if as_json:
        found = [asdict(one) | {"expired": one.is_expired_at(now)} for one in held]
        print_json(
            {
                "pipeline": pipeline,
                "writer": opened.name[1],
                "since": since,
                "frontier": frontier,
                "readers": found,
            }
        )
        return
    typer.echo(f"{pipeline}/{opened.name[1]}: times from {since} on and before {frontier} can be read.")
    if held:
        from rich import print as show

        show(readers_table(held, now))
    else:
        typer.echo("No reader and no pin holds a time.")


@app.command()
@plan_options
def pin(
    pipeline: PipelineName,
    writer: WriterName,
    at: Annotated[str, typer.Option(help=f"The time to keep, {_TIME}.")],
    name: PinName = None,
    *,
    options: PlanOptions,
) -> None:
    """Keep a time readable until it is unpinned. Without --execute only the plan is shown."""
    t = _required_time(at)
    options.require_reason()
    opened, called = _parts(pipeline, writer), name or f"pin-{t}"
    with opened.asking():
        opened.view.covering(t).resolve(t)
        if options.execute:
            opened.readers.pin(called, t, f"{options.who}: {options.reason}")
    options.print_result(
        {"pipeline": pipeline, "writer": opened.name[1], "name": called, "t": t, "executed": options.execute},
        [
            f"{pipeline}/{opened.name[1]}: {t} and all later times stay readable, held by pin {called}",
            f"what they need is not removed before: tidemark collection unpin {pipeline} {opened.name[1]} "
            f"{called}",
        ],
    )


@app.command()
@plan_options
def unpin(
    pipeline: PipelineName,
    writer: WriterName,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The pin's name.")],
    *,
    options: PlanOptions,
) -> None:
    """Give a pinned time up. Without --execute only the plan is shown."""
    from tidemark.client.collection.errors import UnknownPin

    options.require_reason()
    opened = _parts(pipeline, writer)
    with opened.asking():
        pins = {
            one.reader: one for one in opened.readers.load().capabilities.values() if one.deadline is None
        }
        if name not in pins:
            raise UnknownPin(*opened.name, name, tuple(sorted(pins)))
        if options.execute:
            opened.readers.drop(name)
    options.print_result(
        {"pipeline": pipeline, "writer": opened.name[1], "name": name, "t": pins[name].t}
        | {"executed": options.execute},
        [
            f"{pipeline}/{opened.name[1]}: pin {name} at {pins[name].t} ({pins[name].who}) is given up; "
            "older times may be forgotten then"
        ],
    )


@app.command()
@plan_options
def trim(pipeline: PipelineName, writer: WriterName, *, options: PlanOptions) -> None:
    """Remove versions that are older than the collection's `keep`, as far as readers allow.

    Without --execute only the plan is shown.
    """
    from tidemark.app.renditions.opened import WriterRenditions
    from tidemark.app.renditions.trim import Trimming, trimmed_document, trimmed_line
    from tidemark.cli.open_pipeline import open_pipeline
    from tidemark.log.state.control import LogControl

    options.require_reason()
    opened = open_pipeline(pipeline)
    trimming = Trimming(WriterRenditions.of(opened, writer))
    plan = trimming.plan()
    document = {**plan.to_dict(), "executed": options.execute}
    if not options.execute:
        options.print_result(document, plan.lines)
        return
    done = trimming.run()
    said = trimmed_line(done)
    LogControl(opened.consensus, pipeline).keep_decision(options.audit_entry("trim", f"{writer}: {said}"))
    options.print_result({**document, **trimmed_document(done)}, [*plan.lines, f"  {said}"])


@contextmanager
def _opened(pipeline: str, writer: str) -> "Iterator[tuple[CollectionSettings, Collection]]":
    from tidemark.client.collection.collection import Collection

    settings = _settings(pipeline, writer)
    with Collection.of_settings(settings, "tidemark collection") as collection:
        yield settings, collection


def _parts(pipeline: str, writer: str) -> "OpenedCollection":
    return _settings(pipeline, writer).open("tidemark collection")


def _settings(pipeline: str, writer: str) -> "CollectionSettings":
    from tidemark.cli.connections import look_up
    from tidemark.client.collection.settings import collection_settings

    return collection_settings(pipeline, writer, look_up)


def _time(text: str | None) -> int | None:
    return None if text is None else _required_time(text)


def _required_time(text: str) -> int:
    from tidemark.client.collection.times import parse_time

    return parse_time(text)
