"""``tidemark dead-letters``: messages that were acknowledged without being written, and their redelivery."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tidemark.cli.open_pipeline import open_pipeline
from tidemark.cli.options import Json, PipelineName, print_json
from tidemark.cli.plans import PlanOptions, plan_lines, plan_options

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.delivery.dead_letters.listing import ListedLetter
    from tidemark.delivery.operator.action_plan import ActionPlan

app = typer.Typer(help="Messages that were acknowledged without being written.", no_args_is_help=True)

SomeWriter = Annotated[str | None, typer.Argument(metavar="WRITER", help="One writer; by default all.")]


@app.command(name="list")
def list_letters(pipeline: PipelineName, writer: SomeWriter = None, as_json: Json = False) -> None:
    """List the dead letters and their state."""
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
    id_: Annotated[int | None, typer.Argument(metavar="ID", help="One letter; by default all.")] = None,
    as_json: Json = False,
) -> None:
    """Show dead letters with message, error, operator and reason."""
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
@plan_options
def redeliver(
    pipeline: PipelineName,
    writer: SomeWriter = None,
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="ID…", help="These letters; by default all that are dead.")
    ] = None,
    *,
    options: PlanOptions,
) -> None:
    """Redeliver dead letters to their writers, unless later messages forbid it."""
    from tidemark.delivery.dead_letters.redelivery import REDELIVERING
    from tidemark.errors import TidemarkError

    options.require_reason()
    opened = open_pipeline(pipeline)
    done: list[ActionPlan] = []
    refused: list[str] = []
    for letter in _chosen(opened, writer, ids or []):
        # One at a time: each redelivery changes what the next plan is based on.
        try:
            with opened.between_rounds(letter.writer, REDELIVERING) as quiet:
                plan = quiet.plan_redelivery(letter)
                if options.execute:
                    plan.execute(options.audit_entry(plan.action))
            done.append(plan)
        except TidemarkError as error:
            refused.append(str(error))
    if not options.as_json:
        for problem in refused:
            typer.echo(problem, err=True)
    if done or options.as_json:
        plans = [plan.to_dict() for plan in done]
        options.print_result(
            {"letters": plans, "refused": refused, "who": options.who, "executed": options.execute},
            [line for plan in done for line in plan_lines(plan)],
        )
    elif not refused:
        typer.echo(f"{pipeline}: no dead letters.")
    if refused and (ids or not done):
        raise typer.Exit(1)


def _chosen(opened: "OpenPipeline", writer: str | None, ids: list[int]) -> "list[ListedLetter]":
    """The selected letters, by ascending id."""
    from tidemark.delivery.dead_letters.listing import Fate

    if writer is not None and ids:
        opened.letters(writer)  # refuses an unknown writer
        return [opened.letter_box.letter(writer, id_) for id_ in sorted(set(ids))]
    return [one for one in opened.letters(writer) if one.fate is Fate.DEAD]
