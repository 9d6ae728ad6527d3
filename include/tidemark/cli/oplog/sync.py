"""``tidemark oplog sync`` and ``syncs``: synchronise the operations with a dump of their source.

The script ``oplog-sync`` is the first of them under its original's name. Neither needs a running agent.
"""

import sys
from typing import Annotated

import typer

from tidemark.cli.options import Json, PipelineName, print_json
from tidemark.cli.plans import PlanOptions, plan_options


@plan_options
def sync(
    pipeline: PipelineName,
    dump: Annotated[
        str, typer.Argument(metavar="DUMP", help="The dump: a path or a URI; - for standard input.")
    ],
    start: Annotated[
        str,
        typer.Option(
            help="When the dump began, such as 2026-11-17T10:00:00Z; or newest, the greatest timestamp in it."
        ),
    ],
    max_deletes: Annotated[
        str, typer.Option(help="The most deletes: a number, or a share of the objects (at least ten).")
    ] = "10%",
    force: Annotated[
        bool, typer.Option("--force", help="Send any number of deletes; take an empty dump too.")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for replication, before and after.")
    ] = 600.0,
    *,
    options: PlanOptions,
) -> None:
    """Compare the objects with a dump of their source, and send what differs.

    Without --execute only the plan is shown. The pipeline has to be replicated meanwhile.
    """
    from tidemark.app.sync import open_sync, wait_until_reached
    from tidemark.cli.journal.verify import pipeline_spark
    from tidemark.cli.open_pipeline import open_pipeline
    from tidemark.oplog.sync.guard import DeleteLimit
    from tidemark.oplog.sync.report import corrections_of, plan_document, plan_lines, report_line
    from tidemark.spark.jobs.oplog.sync_objects import compare

    def say(text: str) -> None:
        typer.echo(text, err=True)

    options.require_reason()
    limit, opened = DeleteLimit.parse(max_deletes), open_pipeline(pipeline)
    synchronisation = open_sync(opened)
    validated = synchronisation.validate(dump, start, say, force=force, stdin=sys.stdin.buffer)
    topic = synchronisation.read_topic()
    known = wait_until_reached(synchronisation, topic, topic.ends, wait, say)
    with pipeline_spark(opened, "sync_objects") as spark:
        diff = compare(spark, synchronisation, validated, topic, known)
    plan = plan_document(pipeline, validated, diff)
    lines = list(plan_lines(pipeline, validated, diff))
    if options.execute:
        synchronisation.guard(diff, limit, force=force)
        verified = None
        if corrections_of(diff):
            about = f"{corrections_of(diff)} corrections by {dump}"
            sent = synchronisation.send(diff, options.audit_entry("sync", about))
            wait_until_reached(synchronisation, topic, sent.ends, wait, say)
            verified = synchronisation.verify(diff)
        plan = synchronisation.report(diff.key, diff.t, verified)
        lines.append(report_line(plan))
    options.print_result({**plan, "executed": options.execute}, lines)


def syncs(pipeline: PipelineName, as_json: Json = False) -> None:
    """Show the reports of the synchronisations that were carried out."""
    from tidemark.app.sync import open_sync
    from tidemark.cli.open_pipeline import open_pipeline
    from tidemark.oplog.sync.report import report_line

    reports = open_sync(open_pipeline(pipeline)).files.reports()
    if as_json:
        print_json(reports)
        return
    for report in reports:
        typer.echo(f"{report['start']}  {report['dump']}")
        typer.echo(f"  {report_line(report)}")
    if not reports:
        typer.echo(f"{pipeline}: no synchronisation was carried out.")


def main() -> None:
    """The script ``oplog-sync``."""
    from tidemark.cli.main import main as tidemark

    tidemark(["oplog", "sync", *sys.argv[1:]])
