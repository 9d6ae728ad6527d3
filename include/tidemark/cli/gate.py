"""``tidemark gate``: why a writer is stopped, and how a person stops or opens it."""

from dataclasses import asdict
from typing import Annotated

import typer

from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, WriterName, print_json
from tidemark.cli.writers import carry_out, open_pipeline

app = typer.Typer(help="Writers' gates.", no_args_is_help=True)


@app.command()
def show(
    pipeline: PipelineName,
    writer: Annotated[str | None, typer.Argument(help="One writer; all when left out.")] = None,
    as_json: Json = False,
) -> None:
    """Show which gates are closed, why, and what to do."""
    from tidemark.cli.known import open_known

    known = open_known(pipeline)
    states = {name: known.positions.load(name) for name in known.chosen(writer)}
    left = {name: known.positions.left_out(name) for name in states}
    if as_json:
        rows = {
            name: {
                "gate": state.status.value if state else "open",
                "declared": known.declared is not None,
                **(asdict(state.gate) if state and state.gate else {}),
                "left_out": [asdict(one) for one in left[name].values()],
            }
            for name, state in states.items()
        }
        print_json(rows[writer] if writer else rows)
        return
    for name, state in states.items():
        gate = state.gate if state else None
        for one in left[name].values():
            typer.echo(f"{pipeline}/{name}: {one}")
        if gate is None:
            typer.echo(f"{pipeline}/{name}{known.mark}: open")
            continue
        typer.echo(f"{pipeline}/{name}{known.mark}: stopped at {gate.where} ({gate.cause}): {gate.reason}")
        if known.declared is None:
            typer.echo("  go on: put its file back into the folder of the pipelines")
            typer.echo(f"  forget this writer:           tidemark offsets forget {pipeline} {name}")
            typer.echo(f"  forget the pipeline:          tidemark pipelines forget {pipeline}")
            continue
        typer.echo(f"  go on one message at a time:  tidemark resume {pipeline} {name}")
        typer.echo(f"  let the message pass:         tidemark offsets ack {pipeline} {name} {gate.first_id}")
        typer.echo(f"  go on in bulk:                tidemark gate open {pipeline} {name}")


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
    carry_out(open_pipeline(pipeline).plan("stop", writer), reason, execute, by, as_json)


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
    carry_out(open_pipeline(pipeline).plan("open", writer), reason, execute, by, as_json)
