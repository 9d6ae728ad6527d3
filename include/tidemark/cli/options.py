"""Arguments, options and output that commands share."""

import json
from datetime import timedelta
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


def parse_wait(text: str | None, name: str) -> timedelta | None:
    """A length of time such as ``10m``; ``name`` is the parameter in the error (exit code 2)."""
    from tidemark.pipeline.quantities import parse_duration

    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=name) from None
