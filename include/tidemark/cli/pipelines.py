"""``tidemark pipelines``: declared pipelines, those that only the control plane knows, and removing those."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tidemark.cli.options import Json, PipelineName, print_json
from tidemark.cli.plans import PlanOptions, plan_options
from tidemark.errors import TidemarkError

if TYPE_CHECKING:
    from tidemark.delivery.status import PipelineStatus
    from tidemark.pipeline.loader import LoadedPipelines

app = typer.Typer(help="Pipelines.", invoke_without_command=True)


@app.callback()
def pipelines(context: typer.Context, as_json: Json = False) -> None:
    """List the pipelines, the refused files, and pipelines that only the control plane knows."""
    if context.invoked_subcommand is not None:
        return
    from tidemark.cli.output.tables import pipelines_table
    from tidemark.pipeline.loader import load_pipelines

    loaded = load_pipelines()
    orphans, unknown = _orphans(loaded)
    if as_json:
        print_json(
            {
                "pipelines": [pipeline.model_dump(mode="json") for pipeline in loaded.pipelines],
                "refused": [str(refused) for refused in loaded.refused],
                "orphans": None if unknown else [_orphan(one) for one in orphans],
                "orphans_unknown": unknown,
            }
        )
    else:
        Console().print(pipelines_table(loaded.pipelines, orphans))
        for refused in loaded.refused:
            print(refused, file=sys.stderr)
        if unknown:
            print(f"Pipelines without a file are not listed: {unknown}", file=sys.stderr)
    raise typer.Exit(1 if loaded.refused else 0)


def _orphans(loaded: "LoadedPipelines") -> "tuple[list[PipelineStatus], str | None]":
    """The pipelines that no file declares, or why the control plane cannot be read."""
    from tidemark.cli.pipeline_state import open_control_plane
    from tidemark.delivery.state.known_pipelines import orphans
    from tidemark.delivery.status import read_orphan_status

    try:
        consensus = open_control_plane()
        found = orphans(consensus, {*loaded.names, *loaded.refused_names})
        return [read_orphan_status(name, consensus) for name in found], None
    except TidemarkError as error:
        return [], str(error)


def _orphan(status: "PipelineStatus") -> dict[str, Any]:
    writers = [writer.name for writer in status.writers]
    return {"name": status.pipeline, "end": status.log.end, "writers": writers, "log": status.log.root}


@app.command()
@plan_options
def forget(
    pipeline: PipelineName,
    log: Annotated[bool, typer.Option("--log", help="Remove the log's files too.")] = False,
    log_path: Annotated[
        str | None, typer.Option(help="The log's folder, where the control plane does not know it.")
    ] = None,
    *,
    options: PlanOptions,
) -> None:
    """Remove a pipeline that no file declares from the control plane; outputs stay."""
    from tidemark.cli.connections import look_up
    from tidemark.cli.pipeline_state import folders_of, open_control_plane
    from tidemark.delivery.operator.forget_pipeline import (
        LetterTableCleanup,
        PipelineForgetting,
        refuse_declared,
    )
    from tidemark.pipeline.loader import load_pipelines

    options.require_reason()
    if log_path and not log:
        raise typer.BadParameter("is only of use with --log", param_hint="--log-path")
    loaded = load_pipelines()
    refuse_declared(pipeline, loaded)
    letters = LetterTableCleanup(lambda: _session(look_up))
    folders = folders_of({one.name: one for one in loaded.pipelines})
    forgetting = PipelineForgetting(open_control_plane(), pipeline, letters, folders)
    plan = forgetting.plan(with_log=log, log_path=log_path)
    if options.execute:
        plan.execute(options.audit_entry("forget"))
    document = {**plan.to_dict(), "who": options.who, "executed": options.execute}
    options.print_result(document, [f"{pipeline}: forget", *(f"  {line}" for line in plan.lines)])


def _session(look_up: Any) -> Any:
    """A session with the control plane's Cassandra."""
    from tidemark.cassandra.session import connect
    from tidemark.connections import CONTROL, CassandraConnection

    return connect(CassandraConnection.from_airflow(CONTROL, look_up(CONTROL)))
