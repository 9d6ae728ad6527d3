"""``tidemark log``: look at a pipeline's commit log, prove it, and let it go on over what closed its gate."""

import getpass
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, print_json

if TYPE_CHECKING:
    from tidemark.consensus.objects import Consensus
    from tidemark.delivery.pipeline import Pipeline
    from tidemark.log.control import LogControl
    from tidemark.log.files import LogFolder

app = typer.Typer(help="A pipeline's commit log.", no_args_is_help=True)


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
    from tidemark.cli.tables import messages_table
    from tidemark.log.publish import read_manifest
    from tidemark.log.read import select
    from tidemark.log.readable import readable
    from tidemark.log.readers import reading_log

    declared, control, folder = _open(pipeline)
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
    from tidemark.cli.tables import verification_lines
    from tidemark.log.readers import reading_log
    from tidemark.log.verify import LogVerifier

    _, control, folder = _open(pipeline)
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
    from tidemark.log.accept import Acceptance, require_closed_gate
    from tidemark.log.accept import accept as accept_gate

    _, control, _ = _open(pipeline)
    gate = require_closed_gate(control)
    if execute and not reason.strip():
        raise typer.BadParameter("say why it is all right to go on", param_hint="--reason")
    who = by or getpass.getuser()
    if execute:
        accept_gate(control, gate, Acceptance(who, reason.strip(), time.time_ns() // 1000))
    if as_json:
        print_json({"pipeline": pipeline, "gate": asdict(gate), "who": who, "executed": execute})
        return
    typer.echo(f"{pipeline}: the log's gate is closed: {gate.reason}")
    for loss in gate.losses:
        typer.echo(f"  lost for ever: {loss}")
    if gate.ids:
        typer.echo(f"  ids {gate.ids[0]} to {gate.ids[1]}")
    if execute:
        typer.echo(f"Accepted by {who}. The gate is open; the next run of {pipeline}.replicate goes on.")
    else:
        typer.echo('Nothing was changed. Add --execute --reason "…" to accept it.')


@app.command()
def compact(
    pipeline: PipelineName,
    policy: Annotated[
        str | None,
        typer.Option(help="Another policy than the pipeline's, for once: journal, latest, progress."),
    ] = None,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Take out of the log what later messages made obsolete; in this process alone, without Spark."""
    from tidemark.compaction.compact import Compacted, Compaction
    from tidemark.compaction.engine import InProcess
    from tidemark.compaction.report import compacted_document, plan_document, plan_lines
    from tidemark.delivery.pipeline_choices import CompactionPolicy
    from tidemark.log.compactions import compactions

    if execute and not reason.strip():
        raise typer.BadParameter("say why it is to be done now", param_hint="--reason")
    known = [one.value for one in CompactionPolicy if one is not CompactionPolicy.NONE]
    if policy is not None and policy not in known:
        raise typer.BadParameter(f"is one of {', '.join(known)}", param_hint="--policy")
    declared, consensus = _declared(pipeline)
    chosen = CompactionPolicy(policy) if policy else None
    compaction = Compaction.open(declared, consensus, InProcess(), chosen)
    if not execute:
        plan = compaction.look()
        if as_json:
            history = [asdict(record) for record in compactions(compaction.questions.control, limit=10)]
            print_json({**plan_document(plan), "history": history, "executed": False})
            return
        for line in plan_lines(plan):
            typer.echo(line)
        typer.echo('Nothing was changed. Add --execute --reason "…" to do it.')
        return
    holder = f"{by or getpass.getuser()}: {reason.strip()}"
    with compaction.recording_refusals(holder):
        done = compaction.run(holder)
    plan = done.plan if isinstance(done, Compacted) else done
    if as_json:
        came_to = compacted_document(done) if isinstance(done, Compacted) else {}
        print_json({**plan_document(plan), **came_to, "executed": True})
        return
    for line in plan_lines(plan):
        typer.echo(line)
    if isinstance(done, Compacted):
        typer.echo(
            f"Compacted: {done.messages_before:,} messages are now {done.messages_after:,}, "
            f"{done.bytes_before:,} bytes {done.bytes_after:,}. Old files are removed by a later sweep."
        )


def _open(name: str) -> "tuple[Pipeline, LogControl, LogFolder]":
    """The pipeline's log as it is; a name that is mistyped creates nothing."""
    from tidemark.log.control import LogControl
    from tidemark.log.files import LogFolder

    pipeline, consensus = _declared(name)
    return pipeline, LogControl(consensus, name), LogFolder(name, pipeline.log.path)


def _declared(name: str) -> "tuple[Pipeline, Consensus]":
    from tidemark.cli.connections import look_up
    from tidemark.delivery.addresses import collect_connections
    from tidemark.delivery.pipeline_file import find_pipeline
    from tidemark.delivery.replicate import look_at_control

    pipeline = find_pipeline(name)
    return pipeline, look_at_control(collect_connections(pipeline, look_up))


def _with_progress(steps: Iterator[Any], total: int) -> Iterator[Any]:
    columns = (TextColumn("verifying"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(steps, total=total)
