"""A pipeline with one writer of kind ``files`` and any number of renditions: log and folders on disk, control
plane in memory. Every run reads the file anew, so a test changes a setting by giving other keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.pipeline_world import NO_LIMIT, PipelineWorld, files_under

from tidemark.app.consumers import DeliveredConsumer, RunConsumers
from tidemark.connections import Connections, KafkaConnection
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import Delivered, deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.consumers import WriterConsumers
from tidemark.delivery.renditions.declared import code_now
from tidemark.outputs.model.evidence import VerificationEvidence, VerificationMode
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.model.rendition import Rendition, Signature
from tidemark.outputs.settings import settings_of
from tidemark.outputs.state import handover, lifecycle
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress
from tidemark.pipeline.model import Pipeline
from tidemark.writers.renditions import build_declared, sibling_place

WRITER = "archive"
CONNECTIONS = Connections(kafka=KafkaConnection(servers="nowhere:1"), cassandra={})


@dataclass
class RenditionWorld(PipelineWorld):
    """See the module."""

    keys: dict[str, Any] = field(default_factory=dict)
    """Further keys of the writer in the file."""
    limits: dict[str, Any] = field(default_factory=lambda: {"max_records_per_run": NO_LIMIT})

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as the file declares it now."""
        writer = {"name": WRITER, "kind": "files", "format": "jsonl", "path": str(self.root / WRITER)}
        given = {
            "name": "orders",
            "source": {"kafka": {"topics": ["orders"], "format": "json"}},
            "limits": self.limits,
            "log": {"path": str(self.root / "log")},
            "writers": [writer | self.keys],
        }
        context = {"TIDEMARK_HOME": str(self.root), "TIDEMARK_TRANSFORMS": "tests"}
        return Pipeline.model_validate(given, context=context)

    @property
    def store(self) -> OutputStore:
        return OutputStore(self.consensus, "orders", WRITER)

    @property
    def found(self) -> Output:
        return self.store.require()

    @property
    def states(self) -> dict[int, str]:
        return {one.number: str(one.state) for one in self.found.renditions}

    @property
    def consumers(self) -> RunConsumers:
        return RunConsumers(self.pipeline, CONNECTIONS, self.positions, self.clock)

    @property
    def progress(self) -> Progress:
        return Progress(self.control, self.log.bindings, WriterConsumers(self.positions, WRITER))

    def run(self, holder: str = "run") -> dict[str, Delivered]:
        """One ordinary run; its results by the name that summaries show."""
        log, consumers = self.log, self.consumers
        return {one.shown: self.deliver_one(one, log, holder) for one in consumers.choose(log)}

    def build(self, number: int = 2, holder: str = "build") -> Delivered:
        """One delivery to one rendition."""
        log = self.log
        consumer = self.consumers.one(f"{WRITER}.r{number}", log)
        assert consumer is not None
        return self.deliver_one(consumer, log, holder)

    def deliver_one(self, consumer: DeliveredConsumer, log: PublishedLog, holder: str) -> Delivered:
        return deliver_to(
            consumer.writer,
            log,
            self.positions,
            holder,
            write_parts_here,
            limit=self.pipeline.limits.max_records_per_run,
            clock=self.clock,
            reload=lambda: self.positions.load(consumer.name),
            start=self.consumers.start(consumer, log),
        )

    def signature(self) -> Signature:
        return Signature("ann", f"at {self.clock()}", self.clock())

    def declare(self, since: int = 0) -> Rendition:
        """The next rendition, with the settings that the file has now."""
        built = build_declared(self.pipeline, CONNECTIONS, WRITER)
        settings = settings_of(built.declared, built.writer.shape, built.declared.unshaping)
        signed = self.signature()

        def propose(output: Output) -> RenditionProposal:
            place = sibling_place(self.pipeline, built.declared, output.next_number)
            return RenditionProposal(settings, place, since, signed, code_now(settings))

        return lifecycle.declare(self.store, propose)

    def verify(self, number: int = 2) -> None:
        consumers = WriterConsumers(self.positions, WRITER)
        sides = (consumers.state(one).side(one) for one in (number, self.found.active.number))
        evidence = VerificationEvidence(VerificationMode.EXACT, self.found.frontier, *sides)
        lifecycle.record_verification(self.store, number, evidence)

    def hand_over(self, number: int = 2) -> Handover:
        return handover.hand_over(self.store, self.progress, number, self.signature(), force=True)

    def abandon(self, number: int = 2) -> None:
        lifecycle.abandon(self.store, number, self.signature())

    def files(self, number: int = 1) -> Mapping[str, str]:
        """The files of a rendition, with the digests of their bytes."""
        return files_under(self.root / (WRITER if number == 1 else f"{WRITER}.r{number}"))

    def position_of(self, number: int) -> int:
        state = self.positions.load(WRITER if number == 1 else f"{WRITER}.r{number}")
        return state.position if state else -1
