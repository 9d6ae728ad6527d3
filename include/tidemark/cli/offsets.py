"""``tidemark offsets``: how far the writers have come, and what a person may do about it."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, WriterName, print_json
from tidemark.cli.writers import carry_out, open_pipeline

app = typer.Typer(help="Writers' positions.", no_args_is_help=True)


@app.command(name="list")
def list_offsets(
    pipeline: PipelineName,
    writer: Annotated[str | None, typer.Argument(help="One writer, with its history.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many entries of the offset log.")] = 20,
    as_json: Json = False,
) -> None:
    """List every writer's position and lag; of one writer also its namespaces and its offset log."""
    from tidemark.cli.tables import history_table, status_table
    from tidemark.delivery.resume import NotRegistered
    from tidemark.delivery.status import read_status

    opened = open_pipeline(pipeline)
    if writer is None:
        status = read_status(opened.pipeline, opened.consensus)
        print_json(status.to_dict()["writers"]) if as_json else Console().print(status_table(status))
        return
    state = opened.positions.load(writer)
    if state is None:
        raise NotRegistered(pipeline, writer, [one.name for one in opened.pipeline.writers])
    namespaces, history = opened.positions.namespaces(writer), opened.positions.history(writer, limit)
    deeds = opened.positions.deeds(writer)
    if as_json:
        print_json(
            {
                "writer": writer,
                **state.to_row(),
                "namespaces": namespaces,
                "history": [asdict(entry) for entry in history],
                "deeds": [asdict(deed) for deed in deeds],
            }
        )
        return
    Console().print(history_table(state, namespaces, history, deeds))


@app.command()
def ack(
    pipeline: PipelineName,
    writer: WriterName,
    first: Annotated[int, typer.Argument(metavar="ID", help="The message that the writer waits for.")],
    last: Annotated[int | None, typer.Argument(metavar="LAST", help="And all up to this one.")] = None,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Let messages pass unwritten; copies go to the dead letters."""
    plan = open_pipeline(pipeline).plan("acknowledge", writer, first=first, last=last)
    carry_out(plan, reason, execute, by, as_json)


@app.command(context_settings={"ignore_unknown_options": True})  # else -1 would be an option
def rewind(
    pipeline: PipelineName,
    writer: WriterName,
    position: Annotated[int, typer.Argument(metavar="ID", help="The last id that stays finished; -1: none.")],
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Go back, so that everything after ID is delivered again."""
    carry_out(open_pipeline(pipeline).plan("rewind", writer, position=position), reason, execute, by, as_json)


@app.command()
def forget(
    pipeline: PipelineName,
    writer: WriterName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Remove a writer that is in no file any more; its output stays."""
    carry_out(open_pipeline(pipeline).plan("forget", writer), reason, execute, by, as_json)
