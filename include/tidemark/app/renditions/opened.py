"""The renditions of one writer with everything that plans about them read. Read-only by itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.clock import Clock, wall_clock
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.renditions.consumers import WriterConsumers
from tidemark.delivery.renditions.declared import changed_in_file, code_now
from tidemark.delivery.writer import Writer
from tidemark.errors import TidemarkError, with_fields
from tidemark.log.state.control import LogControl
from tidemark.outputs.model.consumer_name import consumer_name
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, RenditionState, Signature
from tidemark.outputs.settings import SettingChange, changed_settings, settings_of
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress
from tidemark.outputs.state.reader_store import ReaderStore
from tidemark.pipeline.writers import WriterDeclaration
from tidemark.writers.renditions import build_declared, declared_writer

UNFINISHED = (RenditionState.BUILDING, RenditionState.VERIFIED)
"""The states of renditions that may become the active one."""


@dataclass(frozen=True)
class WriterRenditions:
    """The renditions of one writer.

    Attributes:
        opened: The pipeline.
        writer: The writer's name.
        clock: The time of signatures and leases.
    """

    opened: OpenPipeline
    writer: str
    clock: Clock = wall_clock

    @classmethod
    def of(cls, opened: OpenPipeline, writer: str, clock: Clock = wall_clock) -> "WriterRenditions":
        """The renditions of a writer that the file declares; refuses other names, also of consumers."""
        names = [one.name for one in opened.pipeline.writers]
        if writer not in names:
            problem = f"there is no such writer; there is: {', '.join(names)}."
            raise NotPossible(opened.pipeline.name, writer, problem)
        return cls(opened, writer, clock)

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return self.opened.pipeline.name

    @property
    def declared(self) -> WriterDeclaration:
        """The writer in the pipeline's file."""
        return declared_writer(self.opened.pipeline, self.writer)

    @property
    def of_the_file(self) -> Writer:
        """The writer as the file declares it now, not as the active rendition was declared."""
        return build_declared(self.opened.pipeline, self.opened.connections, self.writer).writer

    @property
    def store(self) -> OutputStore:
        """The output in the control plane."""
        return OutputStore(self.opened.consensus, self.pipeline, self.writer)

    @property
    def output(self) -> Output:
        """The output as it is now; raises ``OutputMissing`` before the first delivery."""
        return self.store.require()

    @property
    def readers(self) -> ReaderStore:
        """The readers of the output."""
        return ReaderStore(self.store, self.clock)

    @property
    def consumers(self) -> WriterConsumers:
        """The consumers of the renditions."""
        return WriterConsumers(self.opened.positions, self.writer)

    @cached_property
    def control(self) -> LogControl:
        """The log in the control plane."""
        return LogControl(self.opened.consensus, self.pipeline)

    @property
    def progress(self) -> Progress:
        """How far the renditions have come."""
        return Progress(self.control, self.opened.log.bindings, self.consumers)

    def consumer(self, number: int) -> str:
        """The name under which a rendition's position, gate and lease are stored."""
        return consumer_name(self.writer, number)

    def signature(self, who: str, why: str) -> Signature:
        """A signature of now."""
        return Signature(who, why, self.clock())

    def settings_now(self) -> Mapping[str, Any]:
        """The settings of a rendition that is declared now."""
        declared = self.declared
        shape = self.of_the_file.declared_shape
        return settings_of(declared, shape, declared.unshaping)

    def changes(self, rendition: Rendition) -> list[SettingChange]:
        """What would be different if the rendition were declared now: settings of the file, code on disk."""
        changed = changed_in_file(self.opened.pipeline, self.declared, rendition)
        before, now = {"code": dict(rendition.code)}, {"code": dict(code_now(self.settings_now()))}
        return [*changed, *changed_settings(before, now)]


@with_fields
class NothingUnfinished(TidemarkError):
    """No rendition is being built or was verified."""

    pipeline: str
    writer: str

    text = (
        "{pipeline}/{writer}: no rendition is being built, and none waits for a handover. Nothing was "
        "changed. Build one: tidemark renditions build {pipeline} {writer}"
    )


def newest_unfinished(of: WriterRenditions) -> Rendition:
    """The newest rendition that may become the active one; raises ``NothingUnfinished``."""
    waiting = (one for one in reversed(of.output.renditions) if one.state in UNFINISHED)
    if (found := next(waiting, None)) is None:
        raise NothingUnfinished(of.pipeline, of.writer)
    return found
