"""``tidemark verify``: verifies the output of every writer of a pipeline against the log.

Files and topics are verified in this process; for a journal Spark is started in it, as by ``tidemark journal
verify``. A difference is exit code 1 and closes the gate of a files or kafka writer, so that a resume repairs
it. With ``--look`` it is read-only.
"""

import getpass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tidemark.cli.open_pipeline import open_pipeline
from tidemark.cli.options import PipelineName, print_json
from tidemark.cli.plans import PlanOptions, carry_out, plan_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.delivery.writer import Writer
    from tidemark.writers.journal.writer import JournalWriter

Outcome = tuple[dict[str, Any], "RenderableType"]


@plan_options
def verify(
    pipeline: PipelineName,
    writer: Annotated[str | None, typer.Argument(help="One writer; by default all.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Read every file and every message, not only a sample.")
    ] = False,
    look: Annotated[bool, typer.Option("--look", help="Read-only: close no gate over a difference.")] = False,
    let_go: Annotated[
        bool, typer.Option("--let-go", help="Plan to accept that files of a writer are missing.")
    ] = False,
    *,
    options: PlanOptions,
) -> None:
    """Verify what writers have delivered against the log. Exit code 1 if there are differences."""
    opened = open_pipeline(pipeline)
    if let_go:
        _let_go(opened, writer, options)
        return
    if options.execute or options.reason:
        raise typer.BadParameter("goes with --let-go only", param_hint="--execute")
    names = [writer] if writer else [one.name for one in opened.pipeline.writers]
    outcomes = [_verify_one(opened, opened.writer(name), everything, look) for name in names]
    if not options.as_json:
        for line in opened.differences():
            typer.echo(line, err=True)
    is_clean = all(body["clean"] for body, _ in outcomes)
    if options.as_json:
        print_json({"pipeline": pipeline, "clean": is_clean, "writers": [body for body, _ in outcomes]})
    else:
        for _, table in outcomes:
            Console().print(table)
    raise typer.Exit(0 if is_clean else 1)


def _let_go(opened: "OpenPipeline", writer: str | None, options: PlanOptions) -> None:
    from tidemark.verification.outputs.accept_missing import plan_let_go

    if writer is None:
        raise typer.BadParameter("say of which writer", param_hint="WRITER")
    with opened.log.held("verify") as log:
        plan = plan_let_go(opened.writer(writer), log, opened.positions)
        carry_out(plan, options)


def _verify_one(opened: "OpenPipeline", writer: "Writer", everything: bool, look: bool) -> Outcome:
    from tidemark.verification.outputs.reconcile import is_output
    from tidemark.writers.journal.writer import JournalWriter

    state = opened.positions.load(writer.name)
    if state is None or state.position < 0:
        name = f"{opened.pipeline.name}/{writer.name}"
        body = {"pipeline": opened.pipeline.name, "writer": writer.name, "position": -1, "clean": True}
        return body, f"{name}  nothing is delivered yet"
    if is_output(writer):
        return _verify_output(opened, writer, everything, look)
    if not isinstance(writer, JournalWriter):
        body = {"pipeline": opened.pipeline.name, "writer": writer.name, "position": state.position}
        said = f"{opened.pipeline.name}/{writer.name}  was not compared: its kind of writer has no verifier"
        return {**body, "clean": True}, said
    return _verify_journal(opened, writer)


def _verify_journal(opened: "OpenPipeline", journal: "JournalWriter") -> Outcome:
    from tidemark.cli.journal.verify import pipeline_spark
    from tidemark.cli.output.verification import verification_table
    from tidemark.spark.jobs.verify import verify_with_spark
    from tidemark.verification.selection import EVERYTHING

    with pipeline_spark(opened, "verify") as spark, opened.log.held("verify") as log:
        found = verify_with_spark(spark, journal, log, opened.positions, EVERYTHING)
    return {"kind": "journal", **found.to_dict()}, verification_table(found)


def _verify_output(opened: "OpenPipeline", writer: "Writer", everything: bool, look: bool) -> Outcome:
    from tidemark.cli.output.verification import output_table
    from tidemark.delivery.state.lease import LeaseHeld
    from tidemark.verification.outputs.found import Extent
    from tidemark.verification.outputs.reconcile import reconcile_output, usual_extent, verify_output

    usual = usual_extent(writer, everything=everything)
    extent = usual or Extent(1)
    with opened.log.held("verify") as log:
        found = verify_output(writer, log, opened.positions, extent)
    if found is None:
        body = {"pipeline": opened.pipeline.name, "writer": writer.name, "clean": True}
        return body, f"{opened.pipeline.name}/{writer.name}  there is nothing to look at yet"
    held = ""
    if usual and not look:  # with `reconcile: 0` differences are expected, and close no gate
        holder, root = f"tidemark verify by {getpass.getuser()}", opened.pipeline.log.path
        try:
            reconcile_output(found, opened.positions, root, holder)
        except LeaseHeld as error:
            held = f"Its gate was not closed: {error}"
    return {**found.to_dict(), "not_closed": held or None}, output_table(found, held)
