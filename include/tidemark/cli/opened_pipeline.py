"""What the commands about writers share: a pipeline opened, and a plan shown or carried out."""

import getpass
from typing import TYPE_CHECKING

import typer

from tidemark.cli.options import print_json

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.delivery.operator.action_plan import ActionPlan


def open_pipeline(name: str) -> "OpenPipeline":
    """A pipeline with the connections that the environment has for it."""
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.cli.connections import look_up
    from tidemark.pipeline.connections import collect_connections
    from tidemark.pipeline.loader import find_pipeline

    declared = find_pipeline(name)
    return OpenPipeline(declared, collect_connections(declared, look_up))


def carry_out(plan: "ActionPlan", reason: str, execute: bool, by: str | None, as_json: bool) -> None:
    """Show a plan; do it where that was asked for, with who and why."""
    from tidemark.consensus.lease import wall_clock
    from tidemark.delivery.state.writer_state import Deed

    demand_reason(reason, execute)
    who, execute = by or getpass.getuser(), execute and plan.changes
    if execute:
        plan.execute(Deed(plan.action, who, reason.strip(), wall_clock()))
    if as_json:
        print_json({**plan.to_dict(), "who": who, "executed": execute})
        return
    typer.echo(f"{plan.pipeline}/{plan.writer}: {plan.action}")
    for line in plan.lines:
        typer.echo(f"  {line}")
    if not plan.changes:
        typer.echo("Nothing was changed.")
        return
    typer.echo(f"Done by {who}." if execute else 'Nothing was changed. Add --execute --reason "…" to do it.')


def demand_reason(reason: str, execute: bool) -> None:
    """Nothing is done without one."""
    if execute and not reason.strip():
        raise typer.BadParameter("say why", param_hint="--reason")
