"""Renditions of a declared writer on real services: declared from the file, delivered to and verified."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.output_samples import signed
from tests.support.services.log_runs import LogRuns

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.rendition_verification import consumers_of, verify_rendition
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.settings import settings_of
from tidemark.outputs.state import handover, lifecycle
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress
from tidemark.verification.renditions.comparison import Engine
from tidemark.verification.renditions.report import RenditionReport
from tidemark.writers.renditions import (
    RenditionWriter,
    build_declared,
    build_rendition,
    sibling_place,
)


@dataclass(frozen=True)
class RenditionRuns:
    """The renditions of one writer.

    Attributes:
        runs: The pipeline; its file may be written anew at any time.
        writer: The writer's name.
    """

    runs: LogRuns
    writer: str

    @property
    def opened(self) -> OpenPipeline:
        return OpenPipeline(self.runs.pipeline, self.runs.connections)

    @property
    def store(self) -> OutputStore:
        return OutputStore(self.opened.consensus, self.runs.name, self.writer)

    @property
    def output(self) -> Output:
        return self.store.require()

    def begin(self) -> None:
        """Deliver to the first rendition, and declare it where the kind's deliveries do not."""
        opened = self.opened
        declared = build_declared(opened.pipeline, opened.connections, self.writer)
        self._deliver(opened, declared)
        if self.store.load() is None:
            self.store.create(self._proposal(declared, declared.declared.place, 1))

    def build(self) -> int:
        """Declare the next rendition with the settings of the file, and deliver everything to it."""
        opened = self.opened
        declared = build_declared(opened.pipeline, opened.connections, self.writer)

        def propose(output: Output) -> RenditionProposal:
            place = sibling_place(opened.pipeline, declared.declared, output.next_number)
            return self._proposal(declared, place, output.next_number)

        number = lifecycle.declare(self.store, propose).number
        self.deliver(number)
        return number

    def deliver(self, number: int) -> None:
        """Deliver everything to a rendition."""
        opened = self.opened
        built = build_rendition(
            opened.pipeline, opened.connections, self.writer, self.output.rendition(number)
        )
        self._deliver(opened, built)

    def verify(self, mode: VerificationMode, session: Engine | None = None) -> RenditionReport:
        return verify_rendition(self.opened, self.writer, 2, mode, session=session)

    def hand_over(self) -> Handover:
        opened = self.opened
        progress = Progress(self.runs.control, opened.log.bindings, consumers_of(opened, self.writer))
        return handover.hand_over(self.store, progress, 2, signed(7))

    def _deliver(self, opened: OpenPipeline, built: RenditionWriter) -> None:
        reload: Callable[[], Any] = lambda: opened.positions.load(built.consumer)  # noqa: E731
        place = built.writer, opened.log, opened.positions, "test", write_parts_here
        done = deliver_to(*place, limit=10**9, reload=reload)
        assert (done.gate, done.position) == (None, opened.log.end)

    def _proposal(self, built: RenditionWriter, place: str, number: int) -> RenditionProposal:
        declared = built.declared
        settings = settings_of(declared, built.writer.shape, declared.unshaping)
        return RenditionProposal(settings, place, 0, signed(number))
