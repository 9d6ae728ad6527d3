"""Two renditions of one writer, delivered to and verified in one line each; tables, log and control plane
need no services."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.memory_collection import CollectionWorld, MemoryCollection, given_declared
from tests.support.output_samples import signed

from tidemark.app import open_pipeline, rendition_verification
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.rendition_verification import HeldRenditions, renditions_held
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.outputs.model.consumer_name import consumer_name
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.rendition import Rendition
from tidemark.outputs.settings import settings_of
from tidemark.outputs.state import lifecycle
from tidemark.pipeline.model import Pipeline
from tidemark.verification.renditions.report import RenditionReport
from tidemark.writers.renditions import RenditionWriter

EXACT, EXPLAINED = VerificationMode


class RenditionWorld(CollectionWorld):
    """A pipeline ``orders`` with a collection ``accounts``, of which there are several renditions."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, **keys: Any) -> None:
        super().__init__(root, **keys)
        self.tables = {1: self.collection}
        self.settings: dict[int, dict[str, Any]] = {1: keys}
        self.patch = patch
        self.expect: list[dict[str, Any]] = []
        patch.setattr(open_pipeline.control_plane, "look_at_control", lambda connections: self.consensus)
        patch.setattr(rendition_verification, "build_rendition", self._build)

    def build(self, **keys: Any) -> int:
        """Declare the next rendition, and deliver everything to it."""
        number = self.found.next_number
        self.tables[number], self.settings[number] = MemoryCollection(), keys
        declared = given_declared(**keys)
        settings = settings_of(declared, self.writer_of(number).shape, declared.unshaping)
        since = self.since
        proposal = RenditionProposal(settings, f"collections.accounts_r{number}", since, signed(number))
        lifecycle.declare(self.outputs, lambda output: proposal)
        self.deliver(self.writer_of(number))
        return number

    format = "json"
    """The format of the source."""
    since = 0
    """The first time that the next rendition can answer for."""

    def writer_of(self, number: int) -> Any:
        """A rendition's writer, in a process that begins now."""
        here, self.collection = self.collection, self.tables[number]
        kept, self.keys = self.keys, self.settings[number]
        writer = self.started()
        self.collection, self.keys = here, kept
        named = writer.declared.model_copy(update={"name": consumer_name("accounts", number)})
        return replace(writer, declared=named)

    @property
    def opened(self) -> OpenPipeline:
        """The pipeline with its file as it is now."""
        declared = given_declared(**self.settings[1], expect=self.expect)
        pipeline = Pipeline.model_validate(
            {
                "name": "orders",
                "source": {"kafka": {"topics": ["accounts"], "format": self.format}},
                "writers": [declared],
                "log": {"path": str(self.root / "log")},
            },
            context={"TIDEMARK_HOME": str(self.root), "TIDEMARK_TRANSFORMS": "tests"},
        )
        cassandra = CassandraConnection(hosts=("127.0.0.1",))
        connections = Connections(
            kafka=KafkaConnection(servers="127.0.0.1:1"), cassandra={"cassandra_default": cassandra}
        )
        return OpenPipeline(pipeline, connections)

    @contextmanager
    def held(self, number: int = 2) -> Iterator[HeldRenditions]:
        with renditions_held(self.opened, "accounts", number, clock=self.clock) as held:
            yield held

    def verify(self, mode: VerificationMode = EXACT, number: int = 2) -> RenditionReport:
        with self.held(number) as held:
            return held.verify(mode)

    def expecting(self, *rules: dict[str, Any]) -> RenditionReport:
        """What an explained comparison finds with these rules in the file."""
        self.expect = [{"reason": "meant", **one} for one in rules]
        return self.verify(EXPLAINED)

    def state_of(self, number: int) -> str:
        return str(self.found.rendition(number).state)

    def _build(self, pipeline: Any, connections: Any, writer: str, rendition: Rendition) -> RenditionWriter:
        built = self.writer_of(rendition.number)
        return RenditionWriter(built.declared, rendition.number, rendition, built)
