"""``tidemark journal hand-back``, ``check`` and ``take-over``: which program writes a journal's tables."""

from typing import Annotated

import typer

from tidemark.cli.open_pipeline import open_pipeline
from tidemark.cli.options import Json, PipelineName, WriterName, print_json
from tidemark.cli.plans import PlanOptions, carry_out, plan_options


@plan_options
def hand_back(pipeline: PipelineName, writer: WriterName, *, options: PlanOptions) -> None:
    """Let a kafka-journal replicator continue from a stopped writer's position."""
    carry_out(open_pipeline(pipeline).plan_hand_back(writer), options)


def check(
    pipeline: PipelineName,
    writer: Annotated[
        str | None, typer.Argument(help="The journal's writer, where the pipeline has several.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a take-over from a kafka-journal replicator needs. Read-only."""
    found = open_pipeline(pipeline).check_take_over(writer)
    if as_json:
        print_json(found.to_dict())
    else:
        for line in found.to_lines():
            typer.echo(line)
    raise typer.Exit(0 if found.is_ready else 1)


@plan_options
def take_over(pipeline: PipelineName, writer: WriterName, *, options: PlanOptions) -> None:
    """Let a stopped writer continue after what a kafka-journal replicator has written."""
    carry_out(open_pipeline(pipeline).plan_take_over(writer), options)
