"""``tidemark journal``: a journal's tables and whom they belong to."""

import typer

from tidemark.cli import journal_expired, journal_proof
from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, WriterName
from tidemark.cli.writers import carry_out, open_pipeline

app = typer.Typer(help="Journals in Cassandra.", no_args_is_help=True)
for command in (journal_proof.verify, journal_proof.diff, journal_proof.history, journal_expired.expired):
    app.command()(command)


@app.command(name="hand-back")
def hand_back(
    pipeline: PipelineName,
    writer: WriterName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Let a kafka-journal replicator go on where a stopped writer is."""
    carry_out(open_pipeline(pipeline).plan_hand_back(writer), reason, execute, by, as_json)


@app.command(name="take-over")
def take_over(
    pipeline: PipelineName,
    writer: WriterName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Let a stopped writer go on behind what a kafka-journal replicator has written meanwhile."""
    carry_out(open_pipeline(pipeline).plan_take_over(writer), reason, execute, by, as_json)
