"""``tidemark log``: look at a pipeline's commit log, prove it, and let it go on over what closed its gate."""

import getpass
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tidemark.cli.log import compact
from tidemark.cli.log import files as log_files
from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, print_json
from tidemark.clock import wall_clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemark.delivery.operator.accept_plan import Consequence
    from tidemark.log.model.gate import LogGate
    from tidemark.log.model.loss import AcceptedLoss

app = typer.Typer(help="A pipeline's commit log.", no_args_is_help=True)
app.command("compact")(compact.compact)
app.command("pins")(log_files.list_pins)
app.command("pin")(log_files.pin)
app.command("unpin")(log_files.unpin)
app.command("sweep")(log_files.sweep)


@app.command()
def show(
    pipeline: PipelineName,
    first: Annotated[int, typer.Option("--from", help="First id.")] = 0,
    last: Annotated[int | None, typer.Option("--to", help="Last id; left out, the end of the log.")] = None,
    t: Annotated[int | None, typer.Option("--t", help="Only the binding at this time (µs).")] = None,
    namespace: Annotated[list[str] | None, typer.Option(help="Only this namespace; may be repeated.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many messages at most; 0 for all.")] = 100,
    as_json: Json = False,
) -> None:
    """Show messages. A table with payloads cut, or with --json one whole message per line."""
    from tidemark.cli.output.tables import messages_table
    from tidemark.log.message_text import readable
    from tidemark.log.publish import read_manifest
    from tidemark.log.read import select
    from tidemark.log.state.readers import reading_log

    declared, control, folder = log_files.open_log(pipeline)
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
    """Verify every digest and every range; explain every gap. Exit code 1 when something is wrong."""
    from tidemark.cli.output.tables import verification_lines
    from tidemark.log.state.readers import reading_log
    from tidemark.log.verify import LogVerifier

    _, control, folder = log_files.open_log(pipeline)
    with reading_log(control, "log verify") as reading:
        verifier = LogVerifier(control, folder, reading.take_up())
        for _ in _with_progress(verifier.files(), len(list(verifier.manifest.files))):
            continue
        found = verifier.conclude()
    if as_json:
        print_json({**asdict(found), "ok": found.is_right})
    else:
        Console().print("\n".join(verification_lines(found)), highlight=False, soft_wrap=True)
    raise typer.Exit(0 if found.is_right else 1)


@app.command()
def accept(
    pipeline: PipelineName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Let the log go on over what closed its gate: lost offsets become holes, a failed audit is overruled."""
    from tidemark.consensus.audit_trail import AuditEntry
    from tidemark.delivery.operator.accept_plan import read_consequences
    from tidemark.delivery.state.positions import Positions
    from tidemark.log.accept import ACCEPT, accept_plan, require_closed_gate, unplanned_losses
    from tidemark.log.accept import accept as accept_gate

    declared, control, _ = log_files.open_log(pipeline)
    before = unplanned_losses(control)
    gate = control.log_gate() if before else require_closed_gate(control)
    losses = gate.losses if gate else tuple(one.loss for one in before)
    found = read_consequences(declared, control, Positions(control.consensus, pipeline), losses)
    if execute and not reason.strip():
        raise typer.BadParameter("say why it is all right to go on", param_hint="--reason")
    who = by or getpass.getuser()
    acceptance = AuditEntry(ACCEPT, who, reason.strip(), wall_clock())
    if execute and gate:
        accept_gate(control, gate, acceptance)
    elif execute:
        accept_plan(control, acceptance)
    if as_json:
        said = {"gate": asdict(gate) if gate else None, "writers": [one.to_dict() for one in found]}
        print_json({"pipeline": pipeline, **said, "who": who, "executed": execute})
        return
    typer.echo("\n".join(_accept_lines(pipeline, gate, before, found)))
    if not execute:
        typer.echo('Nothing was changed. Add --execute --reason "…" to accept it.')
    elif gate:
        typer.echo(f"Accepted by {who}. The gate is open; the next run of {pipeline}.replicate goes on.")
    else:
        typer.echo(f"Accepted by {who}. Writers that stopped there go on when they are resumed.")


def _accept_lines(
    pipeline: str,
    gate: "LogGate | None",
    before: "Sequence[AcceptedLoss]",
    found: "Sequence[Consequence]",
) -> Iterator[str]:
    """What is accepted, and what becomes of the writers."""
    if gate:
        yield f"{pipeline}: the log's gate is closed: {gate.reason}"
        yield from (f"  lost for ever: {loss}" for loss in gate.losses)
        if gate.ids:
            yield f"  ids {gate.ids[0]} to {gate.ids[1]}"
    else:
        yield f"{pipeline}: accepted before, but not what becomes of the writers:"
        yield from (f"  {one.loss}, accepted by {one.who}" for one in before)
    yield from (f"  {one}" for one in found)


def _with_progress(steps: Iterator[Any], total: int) -> Iterator[Any]:
    columns = (TextColumn("verifying"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(steps, total=total)
