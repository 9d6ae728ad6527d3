"""``tidemark offsets``: the writers' positions, and how an operator changes them."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from tidemark.cli.open_pipeline import open_pipeline
from tidemark.cli.options import Json, PipelineName, WriterName, print_json
from tidemark.cli.plans import PlanOptions, carry_out, plan_options

app = typer.Typer(help="Writers' positions.", no_args_is_help=True)


@app.command(name="list")
def list_offsets(
    pipeline: PipelineName,
    writer: Annotated[str | None, typer.Argument(help="One writer, with its history.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many entries of the offset log.")] = 20,
    as_json: Json = False,
) -> None:
    """List every writer's position and lag; of one writer also namespaces, offset log, acknowledged ids."""
    from tidemark.cli.output.tables import history_table, status_table
    from tidemark.cli.pipeline_state import open_pipeline_state
    from tidemark.delivery.resume import NotRegistered
    from tidemark.delivery.state.writer_state import WRITER_AUDIT

    opened = open_pipeline_state(pipeline)
    if writer is None:
        status = opened.status()
        print_json(status.to_dict()["writers"]) if as_json else Console().print(status_table(status))
        return
    consumer = opened.consumer(writer)
    state = opened.positions.load(consumer)
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
    namespaces, history = opened.positions.namespaces(consumer), opened.positions.history(consumer, limit)
    deeds, passed = opened.positions.deeds(consumer), opened.positions.acknowledgements(consumer)
    redelivered = opened.positions.redelivered(consumer)
    if as_json:
        print_json(
            {
                "writer": writer,
                **state.to_row(),
                "namespaces": namespaces,
                "history": [asdict(entry) for entry in history],
                "deeds": [WRITER_AUDIT.to_row(deed) for deed in deeds],
                "left_out": [asdict(one) for one in opened.positions.left_out(consumer).values()],
                "acknowledged": [asdict(one) for one in passed],
                "redelivered": [asdict(one) for one in redelivered.values()],
            }
        )
        return
    Console().print(history_table(state, namespaces, history, deeds, passed, redelivered))
    for one in opened.positions.left_out(consumer).values():
        typer.echo(f"{pipeline}/{writer} {one}")


@app.command()
@plan_options
def ack(
    pipeline: PipelineName,
    writer: WriterName,
    first: Annotated[int, typer.Argument(metavar="ID", help="The message that the writer waits for.")],
    last: Annotated[int | None, typer.Argument(metavar="LAST", help="And all up to this one.")] = None,
    untried: Annotated[bool, typer.Option("--untried", help="Also messages that have not failed.")] = False,
    *,
    options: PlanOptions,
) -> None:
    """Let a message that failed pass unwritten; a copy goes to the dead letters."""
    with open_pipeline(pipeline).between_rounds(writer) as opened:
        carry_out(opened.plan_acknowledge(writer, first, last, untried=untried), options)


@app.command(context_settings={"ignore_unknown_options": True})  # -1 is an argument, not an option
@plan_options
def rewind(
    pipeline: PipelineName,
    writer: WriterName,
    position: Annotated[int, typer.Argument(metavar="ID", help="The last id that stays finished; -1: none.")],
    *,
    options: PlanOptions,
) -> None:
    """Go back, so that everything after ID is delivered again."""
    with open_pipeline(pipeline).between_rounds(writer) as opened:
        carry_out(opened.plan_rewind(writer, position), options)


@app.command()
@plan_options
def forget(
    pipeline: PipelineName,
    writer: WriterName,
    *,
    options: PlanOptions,
) -> None:
    """Remove a writer that is in no file any more; its output stays."""
    from tidemark.cli.pipeline_state import open_pipeline_state
    from tidemark.delivery.operator.forget import plan_forget

    known = open_pipeline_state(pipeline)
    declared = known.writers if known.declared is not None else []
    plan = plan_forget(known.positions, known.control, writer, declared)
    carry_out(plan, options)


@app.command()
@plan_options
def compact(
    pipeline: Annotated[str | None, typer.Argument(help="One pipeline; by default all.")] = None,
    writer: Annotated[str | None, typer.Argument(help="One of its writers.")] = None,
    *,
    options: PlanOptions,
) -> None:
    """Remove what newer entries made obsolete from offset logs; rewinds and the newest entry stay."""
    from tidemark.cli.pipeline_state import open_control_plane
    from tidemark.delivery.state.offset_log import choose_writers, compact_offsets

    options.require_reason()
    deed = options.audit_entry("compact offsets") if options.execute else None
    consensus = open_pipeline(pipeline).consensus if pipeline is not None else open_control_plane()
    chosen = choose_writers(consensus, pipeline, writer)
    outcomes = compact_offsets(consensus, chosen, execute=options.execute, deed=deed)
    for outcome in outcomes:
        if outcome.failure is not None and not options.as_json:
            typer.echo(outcome.line, err=True)
    lines = [outcome.line for outcome in outcomes if outcome.failure is None]
    written = [outcome.to_dict() for outcome in outcomes]
    options.print_result(
        {"who": options.who, "executed": options.execute, "writers": written},
        lines if outcomes else ["No writer is registered."],
    )
    if any(outcome.failure for outcome in outcomes):
        raise typer.Exit(1)
