"""Arguments, options and output that commands share."""

import json
from typing import Annotated, Any

import typer

PipelineName = Annotated[str, typer.Argument(metavar="PIPELINE", help="Name of the pipeline.")]
WriterName = Annotated[str, typer.Argument(metavar="WRITER", help="Name of the writer.")]
Execute = Annotated[bool, typer.Option("--execute", help="Carry out the plan instead of only showing it.")]
Reason = Annotated[str, typer.Option(help="Why it is done; kept for ever.")]
By = Annotated[str | None, typer.Option(help="The operator; by default the current user.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def print_json(value: Any) -> None:
    """Print one JSON document to stdout."""
    print(json.dumps(value, indent=2))
