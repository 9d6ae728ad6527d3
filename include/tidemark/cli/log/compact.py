"""``tidemark log compact`` and ``sweep``: take messages out of a log, and remove files it no longer names."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.open_pipeline import open_log, open_pipeline
from tidemark.cli.options import PipelineName, print_json
from tidemark.cli.plans import NOT_EXECUTED, PlanOptions, plan_options

if TYPE_CHECKING:
    from tidemark.compaction.merging.merge import Merging


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
    """Remove messages from the log that later ones made obsolete, and merge small files; without Spark.

    With policy none only small files are merged.
    """
    from tidemark.compaction.compact import Compacted, Compaction
    from tidemark.compaction.engine import InProcess
    from tidemark.compaction.merging.merge import Merging
    from tidemark.compaction.report import compacted_document, merge_line, plan_document, plan_lines
    from tidemark.log.state.compactions import compactions
    from tidemark.log.state.control import LogControl
    from tidemark.pipeline.kinds import POLICIES, compacting_policies

    options.require_reason("say why it is to be done now")
    known = compacting_policies()
    if policy is not None and policy not in known:
        raise typer.BadParameter(f"is one of {', '.join(known)}", param_hint="--policy")
    opened = open_pipeline(pipeline)
    merging = Merging(
        LogControl(opened.consensus, pipeline), opened.pipeline.log.path, opened.pipeline.log.segment_bytes
    )
    if POLICIES.find(policy or opened.pipeline.log.compaction.policy).keeps_everything:
        _merge(merging, options)
        return
    compaction = Compaction.open(opened.pipeline, opened.consensus, InProcess(), policy or None)
    if not options.execute:
        plan = compaction.look()
        if options.as_json:
            history = [asdict(record) for record in compactions(compaction.questions.control, limit=10)]
            merge = asdict(merging.look())
            print_json({**plan_document(plan), "merge": merge, "history": history, "executed": False})
            return
        for line in (*plan_lines(plan), merge_line(merging.look())):
            typer.echo(line)
        typer.echo(NOT_EXECUTED)
        return
    holder = f"compaction by {options.who}"
    with compaction.recording_refusals(holder):
        done = compaction.run(holder)
    merged = merging.merge_all(holder)
    plan = done.plan if isinstance(done, Compacted) else done
    said = f"plan {plan.digest[:12]}: {plan.dropped} messages dropped"
    compaction.questions.control.keep_decision(options.audit_entry("compact", said))
    if options.as_json:
        came_to = compacted_document(done) if isinstance(done, Compacted) else {}
        print_json({**plan_document(plan), **came_to, "merge": asdict(merged), "executed": True})
        return
    for line in plan_lines(plan):
        typer.echo(line)
    if isinstance(done, Compacted):
        typer.echo(
            f"Compacted: {done.messages_before:,} messages are now {done.messages_after:,}, "
            f"{done.bytes_before:,} bytes {done.bytes_after:,}. Old files are removed by a later sweep."
        )
    typer.echo(merge_line(merged))


def _merge(merging: "Merging", options: PlanOptions) -> None:
    """Merge small files alone, or show what the next merge would do."""
    from tidemark.compaction.report import merge_line

    if options.execute:
        merged = merging.merge_all(f"merge by {options.who}")
        merging.control.keep_decision(options.audit_entry("compact", merge_line(merged).strip()))
    else:
        merged = merging.look()
    options.print_result(
        {"pipeline": merging.control.pipeline, "merge": asdict(merged), "executed": options.execute},
        [f"{merging.control.pipeline}: policy none, no message is dropped", merge_line(merged)],
        done="Done.",
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
