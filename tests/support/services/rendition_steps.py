"""Steps of a rendition's life on real services, without the commands that plan them."""

import json
from typing import Any

from tests.support.services.log_runs import LogRuns

from tidemark.clock import wall_clock
from tidemark.consensus.control_plane import open_control
from tidemark.delivery.renditions.consumers import WriterConsumers
from tidemark.delivery.renditions.declared import code_now
from tidemark.delivery.state.positions import Positions
from tidemark.log.bindings.door import Bindings
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.model.rendition import Rendition, Signature
from tidemark.outputs.settings import settings_of
from tidemark.outputs.state import handover, lifecycle
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress
from tidemark.writers.renditions import build_declared, sibling_place


def store_of(runs: LogRuns, writer: str) -> OutputStore:
    return OutputStore(open_control(runs.connections), runs.name, writer)


def signature() -> Signature:
    return Signature("ann", "a test", wall_clock())


def declare_next(runs: LogRuns, writer: str) -> Rendition:
    """The next rendition, with the settings that the file has now."""
    pipeline = runs.pipeline
    built, signed = build_declared(pipeline, runs.connections, writer), signature()
    settings = settings_of(built.declared, built.writer.shape, built.declared.unshaping)

    def propose(output: Output) -> RenditionProposal:
        place = sibling_place(pipeline, built.declared, output.next_number)
        return RenditionProposal(settings, place, 0, signed, code_now(settings))

    return lifecycle.declare(store_of(runs, writer), propose)


def hand_over_now(runs: LogRuns, writer: str, number: int) -> Handover:
    """A forced handover: these tests compare the renditions themselves."""
    positions = Positions(open_control(runs.connections), runs.name)
    progress = Progress(runs.control, Bindings(runs.control, runs.folder), WriterConsumers(positions, writer))
    return handover.hand_over(store_of(runs, writer), progress, number, signature(), force=True)


def edit(runs: LogRuns, old: str, new: str) -> None:
    """Change the pipeline's file."""
    path = runs.root / "pipelines" / f"{runs.name}.yaml"
    text = path.read_text()
    assert old in text, text
    path.write_text(text.replace(old, new))


def status_of(runs: LogRuns) -> dict[str, Any]:
    """The only writer in ``tidemark status --json``."""
    (writer,) = json.loads(runs.command("status", runs.name, "--json").out)["writers"]
    found: dict[str, Any] = writer
    return found
