"""Renditions of a declared writer on real services: declared from the file, delivered to and verified."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.output_samples import signed
from tests.support.services.log_runs import LogRuns
from tests.support.services.rendition_steps import declare_next

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.rendition_verification import consumers_of, verify_rendition
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.state import handover
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress
from tidemark.verification.renditions.comparison import Engine
from tidemark.verification.renditions.report import RenditionReport
from tidemark.writers.renditions import (
    RenditionWriter,
    build_declared,
    build_rendition,
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
        """Deliver to the first rendition."""
        opened = self.opened
        self._deliver(opened, build_declared(opened.pipeline, opened.connections, self.writer))

    def build(self) -> int:
        """Declare the next rendition with the settings of the file, and deliver everything to it."""
        number = declare_next(self.runs, self.writer).number
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
