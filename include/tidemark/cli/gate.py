"""``tidemark gate``: why a writer is stopped, and how a person stops or opens it."""

from dataclasses import asdict
from typing import Annotated

import typer

from tidemark.cli.opened_pipeline import carry_out, open_pipeline
from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, WriterName, print_json

app = typer.Typer(help="Writers' gates.", no_args_is_help=True)


@app.command()
def show(
    pipeline: PipelineName,
    writer: Annotated[str | None, typer.Argument(help="One writer; all when left out.")] = None,
    as_json: Json = False,
) -> None:
    """Show which gates are closed, why, and what to do."""
    from tidemark.cli.known_pipeline import open_known

    known = open_known(pipeline)
    states = {name: known.positions.load(name) for name in known.chosen(writer)}
    left = {name: known.positions.left_out(name) for name in states}
    found = {name: known.advice(name) for name in states}
    if as_json:
        rows = {
            name: {
                "gate": state.status.value if state else "stopped" if found[name].where else "open",
                "declared": known.declared is not None,
                **({"reason": found[name].where} if state is None and found[name].where else {}),
                **(asdict(state.gate) if state and state.gate else {}),
                "left_out": [asdict(one) for one in left[name].values()],
                **found[name].to_dict(),
            }
            for name, state in states.items()
        }
        print_json(rows[writer] if writer else rows)
        return
    for name, advice in found.items():
        for one in left[name].values():
            typer.echo(f"{pipeline}/{name}: {one}")
        for line in advice.lines:
            typer.echo(line)


@app.command()
def stop(
    pipeline: PipelineName,
    writer: WriterName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Stop a writer where it is; everything else goes on."""
    carry_out(open_pipeline(pipeline).plan_stop(writer), reason, execute, by, as_json)


@app.command(name="open")
def open_gate(
    pipeline: PipelineName,
    writer: WriterName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Open a gate without redelivering one at a time."""
    carry_out(open_pipeline(pipeline).plan_open(writer), reason, execute, by, as_json)
