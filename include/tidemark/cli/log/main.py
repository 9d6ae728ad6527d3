"""``tidemark log``: show and verify a pipeline's commit log, and accept what closed its gate."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tidemark.cli.log import compact, pins
from tidemark.cli.open_pipeline import open_log
from tidemark.cli.options import Json, PipelineName, print_json
from tidemark.cli.plans import PlanOptions, plan_options

app = typer.Typer(help="A pipeline's commit log.", no_args_is_help=True)
app.command()(compact.compact)
app.command("pins")(pins.list_pins)
app.command()(pins.pin)
app.command()(pins.unpin)
app.command()(compact.sweep)


@app.command()
def show(
    pipeline: PipelineName,
    first: Annotated[int, typer.Option("--from", help="First id.")] = 0,
    last: Annotated[int | None, typer.Option("--to", help="Last id; by default the end of the log.")] = None,
    t: Annotated[int | None, typer.Option("--t", help="Only the binding at this time (µs).")] = None,
    namespace: Annotated[list[str] | None, typer.Option(help="Only this namespace; may be repeated.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many messages at most; 0 for all.")] = 100,
    as_json: Json = False,
) -> None:
    """Show messages: a table with truncated payloads, or with --json one whole message per line."""
    from tidemark.cli.output.tables import messages_table
    from tidemark.log.message_text import readable
    from tidemark.log.publish import read_manifest
    from tidemark.log.read import select
    from tidemark.log.state.readers import reading_log

    declared, control, folder = open_log(pipeline)
    with reading_log(control, "log show") as reading:
        manifest = read_manifest(pipeline, folder, reading.take_up())
        selection = select(
            manifest,
            declared.log.path,
            first_id=first,
            last_id=last,
            t=t,
            namespaces=namespace or (),
            allow_compacted=True,
        )
        if selection.partly_compacted:
            said = f"{pipeline}: compacted below id {manifest.compacted_below}: some messages are gone."
            typer.echo(said, err=True)
        messages = (message for batch in selection.batches() for message in batch.to_pylist())
        if as_json:
            for message in islice(messages, limit or None):
                print(json.dumps(readable(message), ensure_ascii=False))
            return
        shown = list(islice(messages, limit or None))
        Console().print(messages_table(shown))
        if next(messages, None) is not None:
            said = f"There are more: go on with --from {shown[-1]['id'] + 1}, or show all with --limit 0."
            typer.echo(said, err=True)


@app.command()
def verify(pipeline: PipelineName, as_json: Json = False) -> None:
    """Verify every digest and every range; explain every gap. Exit code 1 if something is wrong."""
    from tidemark.cli.output.tables import verification_lines
    from tidemark.log.state.readers import reading_log
    from tidemark.log.verify import LogVerifier

    _, control, folder = open_log(pipeline)
    with reading_log(control, "log verify") as reading:
        verifier = LogVerifier(control, folder, reading.take_up())
        for _ in _with_progress(verifier.files(), verifier.manifest.file_count):
            continue
        found = verifier.conclude()
    if as_json:
        print_json({**asdict(found), "ok": found.is_right})
    else:
        Console().print("\n".join(verification_lines(found)), highlight=False, soft_wrap=True)
    raise typer.Exit(0 if found.is_right else 1)


@app.command()
@plan_options
def accept(pipeline: PipelineName, *, options: PlanOptions) -> None:
    """Accept what closed the log's gate: lost offsets become holes, a failed audit is overruled, further
    partitions stay unused."""
    from tidemark.cli.output.tables import acceptance_lines
    from tidemark.delivery.operator.accept_plan import read_consequences
    from tidemark.delivery.state.positions import Positions
    from tidemark.log.accept import ACCEPT, accept_plan, require_closed_gate, unplanned_losses
    from tidemark.log.accept import accept as accept_gate

    declared, control, _ = open_log(pipeline)
    before = unplanned_losses(control)
    gate = control.log_gate() if before else require_closed_gate(control)
    losses = gate.losses if gate else tuple(one.loss for one in before)
    found = read_consequences(declared, control, Positions(control.consensus, pipeline), losses)
    options.require_reason("say why it is all right to go on")
    acceptance = options.audit_entry(ACCEPT)
    if options.execute and gate:
        accept_gate(control, gate, acceptance)
    elif options.execute:
        accept_plan(control, acceptance)
    goes_on = "Writers that stopped there go on when they are resumed."
    if gate:
        goes_on = f"The gate is open; the next run of {pipeline}.replicate goes on."
    options.print_result(
        {
            "pipeline": pipeline,
            "gate": asdict(gate) if gate else None,
            "writers": [one.to_dict() for one in found],
            "who": options.who,
            "executed": options.execute,
        },
        acceptance_lines(pipeline, gate, before, found),
        done=f"Accepted by {options.who}. {goes_on}",
        not_done='Nothing was changed. Add --execute --reason "…" to accept it.',
    )


def _with_progress(steps: Iterator[Any], total: int) -> Iterator[Any]:
    columns = (TextColumn("verifying"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(steps, total=total)
