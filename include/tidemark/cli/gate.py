"""``tidemark gate``: why a writer is stopped, and how an operator stops or opens it."""

from dataclasses import asdict
from typing import Annotated

import typer

from tidemark.cli.open_pipeline import open_pipeline
from tidemark.cli.options import Json, PipelineName, WriterName, print_json
from tidemark.cli.plans import PlanOptions, carry_out, plan_options

app = typer.Typer(help="Writers' gates.", no_args_is_help=True)


@app.command()
def show(
    pipeline: PipelineName,
    writer: Annotated[str | None, typer.Argument(help="One writer; by default all.")] = None,
    as_json: Json = False,
) -> None:
    """Show which gates are closed, why, and how to go on."""
    from tidemark.cli.pipeline_state import open_pipeline_state

    known = open_pipeline_state(pipeline)
    states = {name: known.positions.load(known.consumer(name)) for name in known.chosen(writer)}
    left = {name: known.positions.left_out(known.consumer(name)) for name in states}
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
@plan_options
def stop(
    pipeline: PipelineName,
    writer: WriterName,
    *,
    options: PlanOptions,
) -> None:
    """Stop a writer where it is; everything else goes on."""
    with open_pipeline(pipeline).between_rounds(writer) as opened:
        carry_out(opened.plan_stop(writer), options)


@app.command(name="open")
@plan_options
def open_gate(
    pipeline: PipelineName,
    writer: WriterName,
    *,
    options: PlanOptions,
) -> None:
    """Open a gate without redelivering one at a time."""
    with open_pipeline(pipeline).between_rounds(writer) as opened:
        carry_out(opened.plan_open(writer), options)
