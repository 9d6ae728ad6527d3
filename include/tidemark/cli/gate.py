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
    from tidemark.delivery.handed_back import take_over_command

    opened = open_pipeline(pipeline)
    names = [opened.writer(writer).name] if writer else [one.name for one in opened.pipeline.writers]
    states = {name: opened.positions.load(name) for name in names}
    refused = {name: reason for name in names if not states[name] and (reason := opened.refusal(name))}
    if as_json:
        rows = {
            name: {
                "gate": state.status.value if state else "stopped" if name in refused else "open",
                **({"reason": refused[name]} if name in refused else {}),
                **(asdict(state.gate) if state and state.gate else {}),
            }
            for name, state in states.items()
        }
        print_json(rows[writer] if writer else rows)
        return
    for name, state in states.items():
        gate = state.gate if state else None
        if name in refused:
            typer.echo(
                f"{pipeline}/{name}: refused, so it is not registered and compaction does not wait for it"
            )
            typer.echo(f"  {refused[name]}")
            continue
        if gate is None:
            typer.echo(f"{pipeline}/{name}: open")
            continue
        typer.echo(f"{pipeline}/{name}: stopped at {gate.where} ({gate.cause}): {gate.reason}")
        if state and opened.positions.handed_back(state):
            typer.echo(f"  when the replicator is stopped:  {take_over_command(pipeline, name)}")
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
