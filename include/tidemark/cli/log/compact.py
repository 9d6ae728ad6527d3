"""``tidemark log compact``: what compaction would take out of a log, and doing it without Spark."""

import getpass
from dataclasses import asdict
from typing import Annotated

import typer

from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, print_json


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
    from tidemark.cli.connections import look_up
    from tidemark.compaction.compact import Compacted, Compaction
    from tidemark.compaction.engine import InProcess
    from tidemark.compaction.report import compacted_document, plan_document, plan_lines
    from tidemark.consensus.control_plane import look_at_control
    from tidemark.consensus.lease import wall_clock
    from tidemark.log.state.compactions import compactions
    from tidemark.log.state.control import Decision
    from tidemark.pipeline.connections import collect_connections
    from tidemark.pipeline.kinds import compacting_policies
    from tidemark.pipeline.loader import find_pipeline

    if execute and not reason.strip():
        raise typer.BadParameter("say why it is to be done now", param_hint="--reason")
    known = compacting_policies()
    if policy is not None and policy not in known:
        raise typer.BadParameter(f"is one of {', '.join(known)}", param_hint="--policy")
    declared = find_pipeline(pipeline)
    consensus = look_at_control(collect_connections(declared, look_up))
    compaction = Compaction.open(declared, consensus, InProcess(), policy or None)
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
    who = by or getpass.getuser()
    holder = f"compaction by {who}"
    with compaction.recording_refusals(holder):
        done = compaction.run(holder)
    plan = done.plan if isinstance(done, Compacted) else done
    said = f"plan {plan.digest[:12]}: {plan.dropped} messages dropped"
    compaction.questions.control.keep_decision(Decision("compact", who, reason.strip(), wall_clock(), said))
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
