"""``tidemark log pins``, ``pin`` and ``unpin``: messages that compaction keeps."""

from dataclasses import asdict
from typing import Annotated

import typer

from tidemark.cli.open_pipeline import open_log
from tidemark.cli.options import Json, PipelineName, print_json
from tidemark.cli.plans import PlanOptions, plan_options

MessageId = Annotated[int, typer.Argument(metavar="ID", help="The id of a message.")]
DONE = "Done."


def list_pins(pipeline: PipelineName, as_json: Json = False) -> None:
    """Show the ids that compaction never removes, with operator and reason."""
    from tidemark.cli.output.tables import moment
    from tidemark.log.state.pins import pins

    _, control, _ = open_log(pipeline)
    found = pins(control)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        typer.echo(f"id {one.id}  {one.who}, {moment(one.at)}: {one.why}")
    if not found:
        typer.echo(f"{pipeline}: no id is pinned.")


@plan_options
def pin(pipeline: PipelineName, id_: MessageId, *, options: PlanOptions) -> None:
    """Keep a message in spite of compaction. Without --execute only the plan is shown."""
    from tidemark.clock import wall_clock
    from tidemark.log.state.pins import Pin, pin_message, refuse_missing

    _, control, folder = open_log(pipeline)
    options.require_reason()
    refuse_missing(control, folder, id_)
    wanted = Pin(id_, options.who, options.reason, wall_clock())
    kept = pin_message(control, folder, wanted) if options.execute else wanted
    options.print_result(
        {"pipeline": pipeline, **asdict(kept), "executed": options.execute},
        [f"{pipeline}: id {id_} is kept by every compaction from now on"],
        done=DONE,
    )


@plan_options
def unpin(pipeline: PipelineName, id_: MessageId, *, options: PlanOptions) -> None:
    """Let compaction remove a message again. Without --execute only the plan is shown."""
    from tidemark.clock import wall_clock
    from tidemark.log.state.pins import release_pin, require_pin

    _, control, _ = open_log(pipeline)
    options.require_reason()
    found = require_pin(control, id_)
    if options.execute:
        release_pin(control, id_, options.who, options.reason, wall_clock())
    options.print_result(
        {"pipeline": pipeline, **asdict(found), "executed": options.execute},
        [f"{pipeline}: id {id_}, pinned by {found.who} ({found.why}), is left to compaction again"],
        done=DONE,
    )
