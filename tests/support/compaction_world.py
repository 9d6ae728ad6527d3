"""A pipeline with a control plane in memory and a log on disk, for tests of compaction's steps."""

from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import pyarrow as pa
from tests.support.compaction_samples import (
    JOURNAL,
    LATEST,
    Sent,
    added,
    deleted,
    marked,
    of_keys,
    purged,
    rows_of,
)
from tests.support.log_samples import add_binding, captured_of, write_file
from tests.support.log_world import LogWorld

from tidemark.compaction.compact import Compacted, Compaction
from tidemark.compaction.engine import Engine, InProcess
from tidemark.compaction.inputs import CompactionSettings, Questions
from tidemark.compaction.plan import CompactionPlan
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.log.publish import publish, read_log
from tidemark.log.sweep import Swept, sweep_log

HOUR = 3_600_000_000
START = 1_000_000 * HOUR


@dataclass
class World(LogWorld):
    """One pipeline."""

    root: Path
    policy: str
    segment_bytes: int = 1
    """One: every binding's files close a segment."""
    consensus: MemoryConsensus = field(default_factory=MemoryConsensus)
    engine: Engine = field(default_factory=InProcess)
    bound: int = 0
    now: int = START
    min_lag: int = HOUR
    topic_ids: tuple[tuple[str, str], ...] = ()
    """Kafka's ids of the topics, for bindings."""

    @property
    def log(self) -> Manifest:
        return read_log(self.control, self.folder)

    def questions(self) -> Questions:
        # Compaction's own files may be large although the log closes its segments early.
        settings = CompactionSettings(self.policy, self.min_lag, HOUR, 10**6, ("w",))
        return Questions(self.control, self.positions, str(self.root), settings)

    def compaction(self) -> Compaction:
        return Compaction(self.questions(), self.engine, lambda: self.now)

    def compact(self, holder: str = "run") -> Compacted | CompactionPlan:
        return self.compaction().run(holder)

    def publish(self, *messages: Sent) -> Binding:
        """One more binding with these messages, an hour after the last."""
        in_order = sorted(messages, key=lambda one: (one.topic, one.partition))
        places = [
            (place, list(group)) for place, group in groupby(in_order, lambda one: (one.topic, one.partition))
        ]
        base = self.control.log_head().end + 1
        reached = self.control.bindings_head().reached
        slices = tuple(
            Slice(
                topic,
                partition,
                reached.get((topic, partition), 0),
                reached.get((topic, partition), 0) + len(own),
            )
            for (topic, partition), own in places
        )
        self.bound += 1
        binding = Binding(START + self.bound * HOUR, base, slices, f"run-{self.bound}", self.topic_ids)
        add_binding(self.control, binding)
        files, first = [], base
        for (_, own), slice_ in zip(places, slices, strict=True):
            placed = [
                (first + number, replace(one, offset=slice_.lower + number)) for number, one in enumerate(own)
            ]
            batch = rows_of(placed, {id_: binding.t for id_, _ in placed})
            column = batch.schema.get_field_index("write_time")
            times = [binding.write_time(id_) for id_, _ in placed]
            batch = batch.set_column(column, batch.schema.field(column), pa.array(times, pa.int64()))
            files.append(write_file(self.folder, binding, slice_, [batch]))
            first += len(own)
        captured = captured_of(binding, *files)
        self.folder.write_captured(captured)
        self.folder.write_audit(AuditRecord(binding.t, captured.digest, ()))
        publish(self.control, self.folder, binding, self.segment_bytes, self.now)
        return binding

    def move(self, position: int, writer: str = "w") -> None:
        """Bring a writer to a position, registering it first."""
        state = self.positions.register(writer, {})
        self.positions.commit(
            state, position, OffsetEntry(OffsetEntryKind.COMMIT, position, self.now, "test")
        )

    def sweep(self) -> Swept:
        """Remove what nothing names, without waiting."""
        return sweep_log(self.control, self.folder, "sweep", 0, lambda: self.now)

    def ids(self) -> list[int]:
        """All ids of the log."""
        return sorted(
            id_
            for file in self.log.files
            for batch in self.folder.read_file(file, ["id"])
            for id_ in batch["id"].to_pylist()
        )

    def stored_messages(self) -> tuple[dict[str, str], list[LogFile]]:
        """The files with messages, by name, with their digests, and those of them that are the log.

        Lists and manifests are left out: their names contain an attempt's id.
        """
        files = {name: digest for name, digest in self.stored().items() if name.startswith("files/")}
        return files, list(self.log.files)

    def stored(self) -> dict[str, str]:
        """The files of the folder that are not evidence, by name, with their digests."""
        kept = ("files/", "manifests/", "lists/", "staging/")
        paths = ((str(path.relative_to(self.root)), path) for path in sorted(self.root.rglob("*")))
        return {
            name: sha256(path.read_bytes()).hexdigest()
            for name, path in paths
            if path.is_file() and name.startswith(kept)
        }


def given_latest(root, *bindings: str) -> World:
    """A log with a binding a text and one more in the active segment; its writer is at the end."""
    world = World(root, LATEST)
    for text in (*bindings, "z"):
        world.publish(*of_keys(text))
    world.move(world.control.log_head().end)
    world.control.advance_upper(world.control.bindings_head(), world.control.bindings_head().upper + 2 * HOUR)
    return world


def given_journal(root) -> World:
    world = World(root, JOURNAL)
    world.publish(added(1), added(1, key="b"), added(2), marked())
    world.publish(added(3), deleted(3), purged("b"), added(4))
    world.publish(added(1, key="z"))
    world.move(8)
    world.control.advance_upper(world.control.bindings_head(), world.control.bindings_head().upper + 2 * HOUR)
    return world
