"""``tidemark offsets``: how far the writers have come, and what a person may do about it."""

import getpass
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tidemark.cli.opened_pipeline import carry_out, demand_reason, open_pipeline
from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, WriterName, print_json

if TYPE_CHECKING:
    from tidemark.consensus.objects import Consensus

app = typer.Typer(help="Writers' positions.", no_args_is_help=True)


@app.command(name="list")
def list_offsets(
    pipeline: PipelineName,
    writer: Annotated[str | None, typer.Argument(help="One writer, with its history.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many entries of the offset log.")] = 20,
    as_json: Json = False,
) -> None:
    """List every writer's position and lag; of one writer also namespaces, offset log, acknowledged ids."""
    from tidemark.cli.known_pipeline import open_known
    from tidemark.cli.output.tables import history_table, status_table
    from tidemark.delivery.resume import NotRegistered

    opened = open_known(pipeline)
    if writer is None:
        status = opened.status()
        print_json(status.to_dict()["writers"]) if as_json else Console().print(status_table(status))
        return
    state = opened.positions.load(writer)
    if state is None:
        status = opened.status()
        known = next((one for one in status.writers if one.name == writer), None)
        if known is None:
            raise NotRegistered(pipeline, writer, [one.name for one in status.writers if one.registered])
        if as_json:
            lists = dict.fromkeys(("history", "deeds", "acknowledged", "redelivered"), ())
            print_json({"writer": writer, **asdict(known), "namespaces": {}, **lists})
        else:
            why = known.reason or "the first run registers it."
            typer.echo(f"{pipeline}/{writer}: not registered, so it has no position yet: {why}")
        return
    namespaces, history = opened.positions.namespaces(writer), opened.positions.history(writer, limit)
    deeds, passed = opened.positions.deeds(writer), opened.positions.acknowledgements(writer)
    redelivered = opened.positions.redelivered(writer)
    if as_json:
        print_json(
            {
                "writer": writer,
                **state.to_row(),
                "namespaces": namespaces,
                "history": [asdict(entry) for entry in history],
                "deeds": [asdict(deed) for deed in deeds],
                "left_out": [asdict(one) for one in opened.positions.left_out(writer).values()],
                "acknowledged": [asdict(one) for one in passed],
                "redelivered": [asdict(one) for one in redelivered.values()],
            }
        )
        return
    Console().print(history_table(state, namespaces, history, deeds, passed, redelivered))
    for one in opened.positions.left_out(writer).values():
        typer.echo(f"{pipeline}/{writer} {one}")


@app.command()
def ack(
    pipeline: PipelineName,
    writer: WriterName,
    first: Annotated[int, typer.Argument(metavar="ID", help="The message that the writer waits for.")],
    last: Annotated[int | None, typer.Argument(metavar="LAST", help="And all up to this one.")] = None,
    untried: Annotated[bool, typer.Option("--untried", help="Also messages that have not failed.")] = False,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Let a message that failed pass unwritten; a copy goes to the dead letters."""
    plan = open_pipeline(pipeline).plan_acknowledge(writer, first, last, untried=untried)
    carry_out(plan, reason, execute, by, as_json)


@app.command(context_settings={"ignore_unknown_options": True})  # else -1 would be an option
def rewind(
    pipeline: PipelineName,
    writer: WriterName,
    position: Annotated[int, typer.Argument(metavar="ID", help="The last id that stays finished; -1: none.")],
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Go back, so that everything after ID is delivered again."""
    carry_out(open_pipeline(pipeline).plan_rewind(writer, position), reason, execute, by, as_json)


@app.command()
def forget(
    pipeline: PipelineName,
    writer: WriterName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Remove a writer that is in no file any more; its output stays."""
    from tidemark.cli.known_pipeline import open_known
    from tidemark.delivery.operator.forget import plan_forget

    known = open_known(pipeline)
    declared = known.writers if known.declared is not None else []
    plan = plan_forget(known.positions, known.control, writer, declared)
    carry_out(plan, reason, execute, by, as_json)


@app.command()
def compact(
    pipeline: Annotated[str | None, typer.Argument(help="One pipeline; all when left out.")] = None,
    writer: Annotated[str | None, typer.Argument(help="One of its writers.")] = None,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Remove what newer entries made obsolete from offset logs; rewinds and the newest entry stay."""
    from tidemark.consensus.lease import wall_clock
    from tidemark.delivery.state.offset_log import choose_writers, compact_offsets
    from tidemark.delivery.state.writer_state import Deed

    demand_reason(reason, execute)
    who = by or getpass.getuser()
    deed = Deed("compact offsets", who, reason.strip(), wall_clock()) if execute else None
    consensus = _control_plane(pipeline)
    chosen = choose_writers(consensus, pipeline, writer)
    outcomes = compact_offsets(consensus, chosen, execute=execute, deed=deed)
    if as_json:
        print_json({"who": who, "executed": execute, "writers": [outcome.to_dict() for outcome in outcomes]})
    else:
        for outcome in outcomes:
            typer.echo(outcome.line, err=outcome.failure is not None)
        if not outcomes:
            typer.echo("No writer is registered.")
        typer.echo(
            f"Done by {who}." if execute else 'Nothing was changed. Add --execute --reason "…" to do it.'
        )
    if any(outcome.failure for outcome in outcomes):
        raise typer.Exit(1)


def _control_plane(pipeline: str | None) -> "Consensus":
    """The control plane as a pipeline reaches it, or as all of them do."""
    if pipeline is not None:
        return open_pipeline(pipeline).consensus
    from tidemark.cli.connections import look_up
    from tidemark.connections import CONTROL, CassandraConnection
    from tidemark.consensus import control_plane

    return control_plane.look_at_cluster(CassandraConnection.from_airflow(CONTROL, look_up(CONTROL)))
