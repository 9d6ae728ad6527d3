"""``tidemark status``: the state of every pipeline. An error of one is one line, and hides no other."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tidemark.cli.options import Json, print_json
from tidemark.errors import TidemarkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemark.consensus.objects import Consensus
    from tidemark.delivery.status import PipelineStatus, PipelineTrouble
    from tidemark.pipeline.model import Pipeline


def status(
    pipeline: Annotated[str | None, typer.Argument(help="Name of a pipeline; by default all.")] = None,
    as_json: Json = False,
) -> None:
    """Show the log's end, and every writer's position, lag and gate. Exit code 1 if one has an error."""
    from tidemark.cli.output.tables import status_table
    from tidemark.delivery.status import PipelineStatus

    found = [_one(pipeline)] if pipeline else _all()
    if as_json:
        whole = [each.to_dict() for each in found]
        print_json(whole[0] if pipeline else whole)
    else:
        for each in found:
            if isinstance(each, PipelineStatus):
                Console().print(status_table(each))
                for line in each.warnings:
                    typer.echo(f"warning: {line}")
            if each.error:
                print(f"{each.pipeline}: {' '.join(each.error.splitlines())}", file=sys.stderr)
    raise typer.Exit(1 if any(each.error for each in found) else 0)


def _one(name: str) -> "PipelineStatus | PipelineTrouble":
    """The state of one pipeline; raises where the control plane cannot be read at all."""
    from tidemark.cli.pipeline_state import open_control_plane, open_pipeline_state
    from tidemark.pipeline.loader import PipelineRefused, UnknownPipeline, find_pipeline

    try:
        declared = find_pipeline(name)
    except UnknownPipeline:
        return open_pipeline_state(name).status()
    except PipelineRefused as refused:
        state = _of_orphan(name, open_control_plane())
        if state is None:
            raise
        return replace(state, declared=True, error=str(refused))
    trouble = _connection_trouble(declared)
    try:
        consensus = open_control_plane()
    except TidemarkError:
        if trouble is not None:
            raise trouble from None
        raise
    return _of_declared(declared, consensus)


def _all() -> "list[PipelineStatus | PipelineTrouble]":
    from tidemark.cli.pipeline_state import open_control_plane
    from tidemark.delivery.state.known_pipelines import names_in_control_plane
    from tidemark.delivery.status import PipelineTrouble
    from tidemark.pipeline.loader import load_pipelines

    loaded, consensus = load_pipelines(), open_control_plane()
    found = [_of_declared(one, consensus) for one in loaded.pipelines]
    orphans = sorted(names_in_control_plane(consensus) - loaded.names)
    states = {name: state for name in orphans if (state := _of_orphan(name, consensus))}
    for refusal in loaded.refused:
        name = refusal.name or refusal.file.stem
        state = states.pop(name, None) or PipelineTrouble(name, str(refusal))
        found.append(replace(state, declared=True, error=str(refusal)))
    return [*found, *states.values()]


def _of_declared(pipeline: "Pipeline", consensus: "Consensus") -> "PipelineStatus | PipelineTrouble":
    from tidemark.delivery.status import PipelineStatus, PipelineTrouble, read_status

    trouble = _connection_trouble(pipeline)
    found = _read(pipeline.name, lambda: _with_warnings(pipeline, read_status(pipeline, consensus), trouble))
    if trouble is None:
        return found
    if isinstance(found, PipelineStatus):
        return replace(found, error=str(trouble))
    return PipelineTrouble(pipeline.name, f"{trouble} {found.error}")


def _with_warnings(
    pipeline: "Pipeline", found: "PipelineStatus", trouble: TidemarkError | None
) -> "PipelineStatus":
    """The same state with warnings; without usable connections there are none."""
    from tidemark.app.copies import copies_warnings
    from tidemark.cli.connections import look_up
    from tidemark.pipeline.connections import collect_connections

    if trouble is not None:
        return found
    return replace(found, warnings=tuple(copies_warnings(pipeline, collect_connections(pipeline, look_up))))


def _of_orphan(name: str, consensus: "Consensus") -> "PipelineStatus | PipelineTrouble | None":
    """A pipeline that no file declares; None where only its name is left."""
    from tidemark.delivery.state.known_pipelines import is_known
    from tidemark.delivery.status import PipelineStatus, read_orphan_status

    found = _read(name, lambda: read_orphan_status(name, consensus))
    if isinstance(found, PipelineStatus) and not is_known(consensus, name):
        return None
    return replace(found, declared=False)


def _connection_trouble(pipeline: "Pipeline") -> TidemarkError | None:
    """The problem of the connections that a pipeline names; None if there is none."""
    from tidemark.cli.connections import look_up
    from tidemark.connections import BadConnection
    from tidemark.pipeline.connections import collect_connections

    try:
        collect_connections(pipeline, look_up)
    except BadConnection as error:
        return error
    return None


def _read(name: str, read: "Callable[[], PipelineStatus]") -> "PipelineStatus | PipelineTrouble":
    """Read a pipeline's state; any exception becomes this pipeline's error."""
    from tidemark.delivery.status import PipelineTrouble

    try:
        return read()
    except TidemarkError as error:
        return PipelineTrouble(name, str(error))
    except Exception as error:
        return PipelineTrouble(
            name,
            f"its state cannot be read ({type(error).__name__}: {error}). Look at the rows of its objects in "
            "the keyspace tidemark, or upgrade this command if a newer version wrote them.",
        )
