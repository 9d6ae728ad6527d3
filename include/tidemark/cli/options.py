"""Options and output that every command shares."""

import json
from typing import Annotated, Any

import typer

PipelineName = Annotated[str, typer.Argument(metavar="PIPELINE", help="Name of the pipeline.")]
WriterName = Annotated[str, typer.Argument(metavar="WRITER", help="Name of the writer.")]
Execute = Annotated[bool, typer.Option("--execute", help="Do it, instead of showing the plan.")]
Reason = Annotated[str, typer.Option(help="Why; kept for ever.")]
By = Annotated[str | None, typer.Option(help="Who does it; this user when left out.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table for people.")]


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    print(json.dumps(value, indent=2))
