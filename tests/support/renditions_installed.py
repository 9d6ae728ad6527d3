"""An installation with one pipeline whose writers have renditions: a file that tests change, and a log.

The control plane is in memory and shared by all processes of a test. The log and the places of files writers
are real folders. Every call of ``opened`` is a process of its own.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.log_samples import SEGMENT_BYTES, add_binding, captured_of, given_binding, write_file

from tidemark.app.consumers import RunConsumers
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.renditions.catch_up import CatchingUp
from tidemark.app.renditions.hand_over import HandingOver
from tidemark.app.renditions.next_rendition import NextRendition
from tidemark.app.renditions.opened import WriterRenditions
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.log.bindings.door import Bindings
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding
from tidemark.log.publish import publish
from tidemark.log.state.control import LogControl
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, Signature
from tidemark.outputs.state.progress import advance_frontier
from tidemark.pipeline.connections import collect_connections
from tidemark.pipeline.loader import find_pipeline

TOPIC, WRITER = "accounts", "archive"
ARCHIVE = "{name: archive, kind: files, path: '${TIDEMARK_HOME}/archive', format: %s%s}"
FILE = """
name: bank
source: {kafka: {topics: [accounts], format: json}}
writers:
"""
ANN = Signature("ann", "the sum was wrong", 1)


class RenditionInstallation:
    """See the module."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, consensus: Consensus | None = None) -> None:
        for name in list(os.environ):
            if name.startswith(("TIDEMARK_", "AIRFLOW")):
                patch.delenv(name)
        patch.setenv("TIDEMARK_ROOT", str(root))
        patch.setenv("COLUMNS", "200")
        patch.setattr("tidemark.consensus.control_plane.look_at_cluster", lambda _: self.consensus)
        for kind, fields in CONNECTIONS.items():
            patch.setenv(f"AIRFLOW_CONN_{kind.upper()}_DEFAULT", json.dumps({"conn_type": kind, **fields}))
        self.root, self.consensus = root, consensus or MemoryConsensus()
        self.pipelines = root / "include" / "pipelines"
        self.pipelines.mkdir(parents=True)
        self.declare()

    # The file

    def declare(self, *writers: str, format: str = "parquet", further: str = "") -> None:
        """Write the pipeline's file; without writers it has a files writer."""
        lines = writers or (ARCHIVE % (format, f", {further}" if further else ""),)
        self.declare_text(FILE + "".join(f"  - {line}\n" for line in lines))

    def declare_text(self, text: str, name: str = "bank") -> None:
        (self.pipelines / f"{name}.yaml").write_text(text)

    @property
    def home(self) -> Path:
        return self.root / ".tidemark"

    # Processes

    @property
    def opened(self) -> OpenPipeline:
        pipeline = find_pipeline("bank")
        return OpenPipeline(pipeline, collect_connections(pipeline, _look_up))

    def renditions(self, writer: str = WRITER) -> WriterRenditions:
        return WriterRenditions.of(self.opened, writer)

    @property
    def control(self) -> LogControl:
        return LogControl(self.consensus, "bank")

    @property
    def output(self) -> Output:
        return self.renditions().output

    @property
    def states(self) -> dict[int, str]:
        return {one.number: one.state.value for one in self.output.renditions}

    # The log

    def publish(self, *messages: Mapping[str, Any] | None) -> Binding:
        """Bind, capture and publish messages with the keys k0, k1, …; None is a message without a value."""
        binding = self.bind(len(messages))
        self.publish_bound(binding, *messages)
        return binding

    def bind(self, count: int) -> Binding:
        """Bind so many messages."""
        head = self.control.bindings_head()
        previous = Bindings(self.control).at(head.newest) if head.newest is not None else None
        lower = head.reached.get((TOPIC, 0), 0)
        t, base = (previous.t + 1_000, previous.end + 1) if previous else (1_000, 0)
        binding = given_binding(t, base, (TOPIC, 0, lower, lower + count), run_id=f"run-{t}")
        add_binding(self.control, binding)
        return binding

    def publish_bound(self, binding: Binding, *messages: Mapping[str, Any] | None) -> None:
        """Capture and publish a binding."""
        folder = LogFolder("bank", str(self.home / "log" / "bank"))
        captured = captured_of(
            binding, write_file(folder, binding, binding.slices[0], [_batch(binding, messages)])
        )
        folder.write_captured(captured)
        folder.write_audit(AuditRecord(binding.t, captured.digest, ()))
        publish(self.control, folder, binding, SEGMENT_BYTES, 1)

    def deliver(self) -> None:
        """A run's delivery to every rendition that is delivered to."""
        opened = self.opened
        with opened.log.held("a run") as log:
            run = RunConsumers(opened.pipeline, opened.connections, opened.positions)
            for one in run.choose(log):
                deliver_to(
                    one.writer,
                    log,
                    opened.positions,
                    "a run",
                    write_parts_here,
                    limit=1_000,
                    reload=lambda name=one.name: opened.positions.load(name),
                    start=run.start(one, log),
                )

    def deliver_to(self, consumer: str) -> None:
        """A run's delivery to one rendition alone."""
        opened = self.opened
        with opened.log.held("a run") as log:
            one = RunConsumers(opened.pipeline, opened.connections, opened.positions).one(consumer, log)
            assert one is not None
            deliver_to(
                one.writer,
                log,
                opened.positions,
                "a run",
                write_parts_here,
                limit=1_000,
                reload=lambda: opened.positions.load(consumer),
            )

    # Steps

    def read_newest(self) -> int:
        """A reader lets itself read everything that the active rendition has finished; returns the
        frontier."""
        of = self.renditions()
        return advance_frontier(of.store, of.progress).frontier

    def position(self, consumer: str) -> int:
        state = self.opened.positions.load(consumer)
        assert state is not None
        return state.position

    def stop(self, consumer: str) -> None:
        """An operator closes the gate of a rendition."""
        positions = self.opened.positions
        state = positions.load(consumer)
        assert state is not None
        place = state.position + 1
        gate = WriterGate(Cause.HAND, place, place, state.position, "stopped by ann", 1)
        positions.commit(state, state.position, None, gate)

    def leases_expire(self) -> None:
        """What a killed process held is free again."""
        positions = self.opened.positions
        for name in self.control.writer_names():
            if (state := positions.load(name)) and state.lease:
                positions.lend(state, None)

    def acknowledge(self, consumer: str, *ids: int) -> None:
        """An operator lets messages pass that failed for a rendition."""
        positions = self.opened.positions
        state = positions.load(consumer)
        assert state is not None
        positions.acknowledge(state, ids, "ann", None, "they are broken", 1)

    def build(self, writer: str = WRITER, signed: Signature = ANN) -> Rendition:
        """Declare the next rendition and deliver to it."""
        rendition = NextRendition(self.renditions(writer)).register(signed)
        CatchingUp(self.renditions(writer), rendition.number).carry_out("a build")
        return rendition

    def hand_over(self, number: int, writer: str = WRITER) -> int:
        """The time of the handover."""
        return HandingOver(self.renditions(writer), number).carry_out(ANN).h


CONNECTIONS: Mapping[str, Mapping[str, Any]] = {
    "kafka": {"extra": {"bootstrap.servers": "127.0.0.1:1"}},
    "cassandra": {"host": "127.0.0.1"},
}


def _look_up(name: str) -> dict[str, Any]:
    from tidemark.cli.connections import look_up

    return look_up(name)


def _batch(binding: Binding, messages: tuple[Mapping[str, Any] | None, ...]) -> pa.RecordBatch:
    rows = []
    for place, message in enumerate(messages):
        offset = binding.slices[0].lower + place
        id_ = binding.id_of(TOPIC, 0, offset)
        rows.append(
            {
                "id": id_,
                "t": binding.t,
                "write_time": binding.write_time(id_),
                "topic": TOPIC,
                "partition": 0,
                "offset": offset,
                "timestamp": 1,
                "timestamp_type": 0,
                "key": f"k{place}".encode(),
                "value": None if message is None else json.dumps(message, separators=(",", ":")).encode(),
                "headers": None,
                "namespace": TOPIC,
            }
        )
    return pa.RecordBatch.from_pylist(rows, schema=LOG_SCHEMA)
