"""``tidemark log pins``, ``pin``, ``unpin`` and ``sweep``: what stays of a log, and what its folder loses."""

import getpass
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.options import By, Execute, Json, PipelineName, Reason, print_json

if TYPE_CHECKING:
    from tidemark.log.files.parquet import LogFolder
    from tidemark.log.state.control import LogControl
    from tidemark.pipeline.model import Pipeline

Id = Annotated[int, typer.Argument(metavar="ID", help="The id of a message.")]


def open_log(name: str) -> "tuple[Pipeline, LogControl, LogFolder]":
    """The pipeline's log as it is; a name that is mistyped creates nothing."""
    from tidemark.cli.connections import look_up
    from tidemark.consensus.control_plane import look_at_control
    from tidemark.log.files.parquet import LogFolder
    from tidemark.log.state.control import LogControl
    from tidemark.pipeline.connections import collect_connections
    from tidemark.pipeline.loader import find_pipeline

    pipeline = find_pipeline(name)
    control = LogControl(look_at_control(collect_connections(pipeline, look_up)), name)
    return pipeline, control, LogFolder(name, pipeline.log.path)


def list_pins(pipeline: PipelineName, as_json: Json = False) -> None:
    """Show the ids that compaction never takes away, and who wanted that."""
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


def pin(
    pipeline: PipelineName,
    id_: Id,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Keep a message, whatever compaction would do with it. Without --execute only the plan is shown."""
    from tidemark.clock import wall_clock
    from tidemark.log.state.pins import Pin, pin_message, refuse_missing

    _, control, folder = open_log(pipeline)
    _demand_reason(reason, execute)
    refuse_missing(control, folder, id_)
    wanted = Pin(id_, by or getpass.getuser(), reason.strip(), wall_clock())
    _tell(
        {"pipeline": pipeline, **asdict(pin_message(control, folder, wanted) if execute else wanted)},
        f"{pipeline}: id {id_} is kept by every compaction from now on",
        execute,
        as_json,
    )


def unpin(
    pipeline: PipelineName,
    id_: Id,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Let compaction have a message again. Without --execute only the plan is shown."""
    from tidemark.clock import wall_clock
    from tidemark.log.state.pins import release_pin, require_pin

    _, control, _ = open_log(pipeline)
    _demand_reason(reason, execute)
    found = require_pin(control, id_)
    if execute:
        release_pin(control, id_, by or getpass.getuser(), reason.strip(), wall_clock())
    said = f"{pipeline}: id {id_}, pinned by {found.who} ({found.why}), is left to compaction again"
    _tell({"pipeline": pipeline, **asdict(found)}, said, execute, as_json)


def sweep(
    pipeline: PipelineName,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Remove files that nobody names any more, after their grace time. Without --execute only shows them."""
    from tidemark.clock import SECOND, wall_clock
    from tidemark.consensus.audit_trail import AuditEntry
    from tidemark.log.sweep import look_for_orphans, sweep_log

    declared, control, folder = open_log(pipeline)
    _demand_reason(reason, execute)
    grace = round(declared.log.compaction.grace.total_seconds() * SECOND)
    if execute:
        who = by or getpass.getuser()
        found = sweep_log(control, folder, f"sweep by {who}", grace)
        said = f"{len(found.removed)} files with {found.bytes} bytes"
        control.keep_decision(AuditEntry("sweep", who, reason.strip(), wall_clock(), said))
    else:
        found = look_for_orphans(control, folder, grace, wall_clock())
    said = "\n".join(
        [
            f"{pipeline}: {len(found.removed)} files with {found.bytes:,} bytes go, "
            f"{len(found.waiting)} wait for their grace time",
            *(f"  {orphan.path}" for orphan in found.removed),
        ]
    )
    _tell(found.to_dict(), said, execute, as_json)


def _demand_reason(reason: str, execute: bool) -> None:
    if execute and not reason.strip():
        raise typer.BadParameter("say why", param_hint="--reason")


def _tell(found: dict[str, object], said: str, executed: bool, as_json: bool) -> None:
    if as_json:
        print_json({**found, "executed": executed})
        return
    typer.echo(said)
    typer.echo("Done." if executed else 'Nothing was changed. Add --execute --reason "…" to do it.')
