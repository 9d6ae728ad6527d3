"""``tidemark journal``: a journal's tables and whom they belong to."""

from typing import Annotated

import typer

from tidemark.cli.journal import expired, verify
from tidemark.cli.opened_pipeline import carry_out, open_pipeline
from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, WriterName, print_json

app = typer.Typer(help="Journals in Cassandra.", no_args_is_help=True)
for command in (verify.verify, verify.diff, verify.history, expired.expired):
    app.command()(command)


@app.command(name="hand-back")
def hand_back(
    pipeline: PipelineName,
    writer: WriterName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Let a kafka-journal replicator go on where a stopped writer is."""
    carry_out(open_pipeline(pipeline).plan_hand_back(writer), reason, execute, by, as_json)


@app.command()
def check(
    pipeline: PipelineName,
    writer: Annotated[
        str | None, typer.Argument(help="The journal's writer, where the pipeline has several.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a take-over from a kafka-journal replicator needs; changes nothing."""
    found = open_pipeline(pipeline).check_take_over(writer)
    if as_json:
        print_json(found.to_dict())
    else:
        for line in found.to_lines():
            typer.echo(line)
    raise typer.Exit(0 if found.is_ready else 1)


@app.command(name="take-over")
def take_over(
    pipeline: PipelineName,
    writer: WriterName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Let a stopped writer go on behind what a kafka-journal replicator has written meanwhile."""
    carry_out(open_pipeline(pipeline).plan_take_over(writer), reason, execute, by, as_json)
