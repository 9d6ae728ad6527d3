"""``tidemark dead-letters``: messages that were let pass unwritten, and putting them through after all."""

import getpass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tidemark.cli.opened_pipeline import demand_reason, open_pipeline
from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, print_json

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.delivery.dead_letters.listing import ListedLetter
    from tidemark.delivery.operator.action_plan import ActionPlan

app = typer.Typer(help="Messages that were let pass unwritten.", no_args_is_help=True)

SomeWriter = Annotated[str | None, typer.Argument(metavar="WRITER", help="One writer; all when left out.")]


@app.command(name="list")
def list_letters(pipeline: PipelineName, writer: SomeWriter = None, as_json: Json = False) -> None:
    """List the dead letters, and what became of each."""
    from tidemark.cli.output.tables import letters_table

    found = open_pipeline(pipeline).letters(writer)
    if as_json:
        print_json([one.to_dict() for one in found])
    elif found:
        Console().print(letters_table(found))
    else:
        typer.echo(f"{pipeline}{f'/{writer}' if writer else ''}: no dead letters.")


@app.command()
def show(
    pipeline: PipelineName,
    writer: SomeWriter = None,
    id_: Annotated[int | None, typer.Argument(metavar="ID", help="One letter; all when left out.")] = None,
    as_json: Json = False,
) -> None:
    """Show dead letters whole: the message, the error, and who let it pass and why."""
    from tidemark.cli.output.tables import letter_lines

    opened = open_pipeline(pipeline)
    found = opened.letters(writer)
    if writer is not None and id_ is not None:
        found = [opened.letter_box.letter(writer, id_)]
    if as_json:
        whole = [one.to_dict() for one in found]
        print_json(whole[0] if id_ is not None else whole)
        return
    for one in found:
        for line in letter_lines(one):
            typer.echo(line)
    if not found:
        typer.echo(f"{pipeline}{f'/{writer}' if writer else ''}: no dead letters.")


@app.command()
def redeliver(
    pipeline: PipelineName,
    writer: SomeWriter = None,
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="ID…", help="These letters; all dead ones when left out.")
    ] = None,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Put dead letters through their writers after all, where nothing later contradicts them."""
    from tidemark.consensus.lease import wall_clock
    from tidemark.delivery.state.writer_state import Deed
    from tidemark.errors import TidemarkError

    demand_reason(reason, execute)
    who, opened = by or getpass.getuser(), open_pipeline(pipeline)
    done: list[ActionPlan] = []
    refused: list[str] = []
    for letter in _chosen(opened, writer, ids or []):
        # One after the other: each changes what the next one comes after.
        try:
            plan = opened.plan_redelivery(letter)
            if execute:
                plan.execute(Deed(plan.action, who, reason.strip(), wall_clock()))
            done.append(plan)
        except TidemarkError as error:
            refused.append(str(error))
    if as_json:
        plans = [plan.to_dict() for plan in done]
        print_json({"letters": plans, "refused": refused, "who": who, "executed": execute})
    else:
        _print_plans(pipeline, done, refused, who, execute)
    if refused and (ids or not done):
        raise typer.Exit(1)


def _chosen(opened: "OpenPipeline", writer: str | None, ids: list[int]) -> "list[ListedLetter]":
    """The letters that are meant, in the order of their ids."""
    from tidemark.delivery.dead_letters.listing import Fate

    if writer is not None and ids:
        opened.letters(writer)  # refuses a writer that never was
        return [opened.letter_box.letter(writer, id_) for id_ in sorted(set(ids))]
    return [one for one in opened.letters(writer) if one.fate is Fate.DEAD]


def _print_plans(
    pipeline: str, done: "list[ActionPlan]", refused: list[str], who: str, execute: bool
) -> None:
    for plan in done:
        typer.echo(f"{plan.pipeline}/{plan.writer}: {plan.action}")
        for line in plan.lines:
            typer.echo(f"  {line}")
    for problem in refused:
        typer.echo(problem, err=True)
    if not done and not refused:
        typer.echo(f"{pipeline}: no dead letters.")
    elif done:
        undone = 'Nothing was changed. Add --execute --reason "…" to do it.'
        typer.echo(f"Done by {who}." if execute else undone)
