"""``tidemark log compact`` and ``sweep``: take messages out of a log, and remove files it no longer names."""

from dataclasses import asdict
from typing import Annotated

import typer

from tidemark.cli.open_pipeline import open_log, open_pipeline
from tidemark.cli.options import PipelineName, print_json
from tidemark.cli.plans import NOT_EXECUTED, PlanOptions, plan_options


@plan_options
def compact(
    pipeline: PipelineName,
    policy: Annotated[
        str | None,
        typer.Option(help="Another policy than the pipeline's, this time: journal, latest, progress."),
    ] = None,
    *,
    options: PlanOptions,
) -> None:
    """Remove messages from the log that later ones made obsolete; in this process, without Spark."""
    from tidemark.compaction.compact import Compacted, Compaction
    from tidemark.compaction.engine import InProcess
    from tidemark.compaction.report import compacted_document, plan_document, plan_lines
    from tidemark.log.state.compactions import compactions
    from tidemark.pipeline.kinds import compacting_policies

    options.require_reason("say why it is to be done now")
    known = compacting_policies()
    if policy is not None and policy not in known:
        raise typer.BadParameter(f"is one of {', '.join(known)}", param_hint="--policy")
    opened = open_pipeline(pipeline)
    compaction = Compaction.open(opened.pipeline, opened.consensus, InProcess(), policy or None)
    if not options.execute:
        plan = compaction.look()
        if options.as_json:
            history = [asdict(record) for record in compactions(compaction.questions.control, limit=10)]
            print_json({**plan_document(plan), "history": history, "executed": False})
            return
        for line in plan_lines(plan):
            typer.echo(line)
        typer.echo(NOT_EXECUTED)
        return
    holder = f"compaction by {options.who}"
    with compaction.recording_refusals(holder):
        done = compaction.run(holder)
    plan = done.plan if isinstance(done, Compacted) else done
    said = f"plan {plan.digest[:12]}: {plan.dropped} messages dropped"
    compaction.questions.control.keep_decision(options.audit_entry("compact", said))
    if options.as_json:
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


@plan_options
def sweep(pipeline: PipelineName, *, options: PlanOptions) -> None:
    """Remove files that no manifest names, after their grace time. Without --execute only shows them."""
    from tidemark.clock import SECOND, wall_clock
    from tidemark.log.sweep import look_for_orphans, sweep_log

    declared, control, folder = open_log(pipeline)
    options.require_reason()
    grace = round(declared.log.compaction.grace.total_seconds() * SECOND)
    if options.execute:
        found = sweep_log(control, folder, f"sweep by {options.who}", grace)
        said = f"{len(found.removed)} files with {found.bytes} bytes"
        control.keep_decision(options.audit_entry("sweep", said))
    else:
        found = look_for_orphans(control, folder, grace, wall_clock())
    lines = [
        f"{pipeline}: {len(found.removed)} files with {found.bytes:,} bytes go, "
        f"{len(found.waiting)} wait for their grace time",
        *(f"  {orphan.path}" for orphan in found.removed),
    ]
    options.print_result({**found.to_dict(), "executed": options.execute}, lines, done="Done.")
