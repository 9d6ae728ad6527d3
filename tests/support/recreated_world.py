"""A pipeline between whose runs people delete and make again what it reads from and writes to.

Kafka and the journal's tables are in memory, the log and the archive are folders of their own; everything
that decides is the real thing: bind with its gate, capture, publish, deliver, resume, verification, accept.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.found_in_memory import FoundInMemory
from tests.support.journal_samples import WriterInMemory, journal_writer, kafka_record
from tests.support.log_samples import PUBLISHED_AT, SEGMENT_BYTES, RowsEngine
from tests.support.memory_journal import MemoryJournal, MemoryTables
from tests.support.pipeline_world import NO_LIMIT, PipelineWorld

from tidemark.connections import KafkaConnection
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.writer import Check, Writer
from tidemark.errors import TidemarkError
from tidemark.log.accept import accept, require_closed_gate
from tidemark.log.bind import bind
from tidemark.log.bindings.door import Bindings
from tidemark.log.capture import capture
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.binding import Available, Binding, Offsets, Slice
from tidemark.log.model.recreated_topics import Recreations
from tidemark.log.publish import publish
from tidemark.verification.journal.entities import Case, judge_entities
from tidemark.verification.outputs import topics as verified_topics
from tidemark.verification.outputs.reconcile import reconcile_output, usual_extent, verify_output
from tidemark.verification.outputs.repair import mend_output
from tidemark.verification.reconcile import close_gate
from tidemark.verification.reconciliation import Reconciliation
from tidemark.verification.selection import Entity
from tidemark.verification.tally import VerdictTally
from tidemark.writers.files.writer import FilesWriter
from tidemark.writers.kafka import output as kafka_output
from tidemark.writers.kafka import writer as kafka
from tidemark.writers.kafka.kind import KafkaDeclaration
from tidemark.writers.kafka.last_id import PartitionEnd
from tidemark.writers.kafka.target import DescribedTopic, NoTargetTopic, TargetTopic
from tidemark.writers.kafka.writer import KafkaWriter

SOURCES = ("orders", "refunds")
TARGET, ARCHIVE = "copy", "archive"
KEYS = ("a", "b", "c")
LIMIT = 1_000
NOT_NOW = TidemarkError
"""What a run or a command may say instead of doing its work: it is seen, and nothing was done in silence."""


@dataclass
class Topic:
    """One topic, until it is deleted: another one of its name has another id."""

    id: str
    partitions: list[list[dict[str, Any]]]

    def place_of(self, key: str) -> int:
        return KEYS.index(key) % len(self.partitions)


@dataclass
class Broker:
    """Kafka, as source and as target."""

    topics: dict[str, Topic] = field(default_factory=dict)
    serial: Iterator[int] = field(default_factory=count)

    def make(self, name: str, partitions: int) -> None:
        self.topics[name] = Topic(f"{name}-{next(self.serial)}", [[] for _ in range(partitions)])

    def delete(self, name: str) -> None:
        self.topics.pop(name, None)

    def available(self, names: Sequence[str]) -> Available:
        there = {name: self.topics[name] for name in names if name in self.topics}
        offsets = {
            (name, number): Offsets(0, len(records))
            for name, topic in there.items()
            for number, records in enumerate(topic.partitions)
        }
        return Available(offsets, {name: topic.id for name, topic in there.items()})

    # As a kafka writer asks it

    def describe(self, target: TargetTopic) -> DescribedTopic:
        topic = self._of(target)
        return DescribedTopic(topic.id, len(topic.partitions))

    def count(self, target: TargetTopic) -> int:
        return len(self._of(target).partitions)

    def last_id(self, target: TargetTopic, partition: int, others_end_within: float = 0) -> int:
        return max((one["id"] for one in self._of(target).partitions[partition]), default=-1)

    def tail(self, target: TargetTopic, partition: int, most: int | None) -> PartitionEnd:
        ids = tuple(one["id"] for one in self._of(target).partitions[partition])
        chosen = ids if most is None else ids[-most:]
        return PartitionEnd(chosen, 0, len(chosen) == len(ids))

    def send(self, target: TargetTopic, partition: int, messages: Sequence[Mapping[str, Any]]) -> None:
        self._of(target).partitions[partition] += [dict(message) for message in messages]

    def _of(self, target: TargetTopic) -> Topic:
        if target.topic not in self.topics:
            raise NoTargetTopic(target)
        return self.topics[target.topic]


class MemoryOutput:
    """``OutputPartition`` over a broker in memory."""

    def __init__(self, broker: Broker, target: TargetTopic, partition: int) -> None:
        self._broker, self._target, self._partition = broker, target, partition
        self._waiting: list[Mapping[str, Any]] = []
        self.last_id = broker.last_id(target, partition)

    def add(self, message: Mapping[str, Any], lease: Check) -> None:
        self._waiting.append(message)

    def commit(self, lease: Check) -> None:
        self._broker.send(self._target, self._partition, self._waiting)
        self.last_id = self._waiting[-1]["id"] if self._waiting else self.last_id
        self._waiting = []

    def close(self) -> None:
        self._waiting = []


def patch_broker(patch: pytest.MonkeyPatch, broker: Broker) -> None:
    """Let kafka writers, and what verifies their topics, ask a broker in memory."""
    patch.setattr(kafka, "describe_topic", broker.describe)
    patch.setattr(kafka, "count_partitions", broker.count)
    patch.setattr(kafka, "find_last_id", broker.last_id)
    patch.setattr(kafka, "read_tail", broker.tail)
    patch.setattr(kafka_output, "OutputPartition", lambda *place: MemoryOutput(broker, *place))
    patch.setattr(verified_topics, "read_tail", broker.tail)
    patch.setattr(verified_topics, "keeps_the_middle", lambda target: True)


class World(PipelineWorld):
    """The pipeline ``orders``: two topics, a journal, an archive and a copy in another topic."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(root)
        self.broker, self.journal, self.runs = Broker(), MemoryJournal(), count(1)
        self.events: dict[tuple[str, str, str], int] = {}
        """How many events an entity has, by topic id, topic and key."""
        self.failed: list[str] = []
        """What the last run said instead of doing its work."""
        patch_broker(patch, self.broker)
        for name in SOURCES:
            self.broker.make(name, 2)
        self.broker.make(TARGET, 2)

    # Writers

    @property
    def writers(self) -> list[Writer]:
        copy = KafkaDeclaration.model_validate({"name": TARGET, "kind": "kafka", "topic": TARGET}, context={})
        archive = self.files_writer(ARCHIVE, format="jsonl")
        return [
            KafkaWriter("orders", copy, KafkaConnection(servers="memory")),
            FilesWriter(archive.pipeline, archive.declared, str(self.root / "log")),
            self.journal_writer,
        ]

    @property
    def journal_writer(self) -> WriterInMemory:
        return journal_writer(MemoryTables(self.journal))

    def writer(self, name: str) -> Writer:
        return next(one for one in self.writers if one.name == name)

    # What producers and runs do

    def produce(self, name: str, keys: str) -> None:
        topic = self.broker.topics.get(name)
        for key in keys if topic else "":
            entity = (topic.id, name, key)
            number = self.events[entity] = self.events.get(entity, 0) + 1
            partition = topic.partitions[topic.place_of(key)]
            partition.append(kafka_record(f"{key}:A{number}", len(partition)))

    def run(self, dies_after: str = "") -> None:
        """One run of ``replicate``; its end is the end of what is looked at, wherever it dies."""
        self.failed = []
        self.clock.pass_seconds(100)
        try:
            self._take_in(f"run-{next(self.runs)}", dies_after)
        except NOT_NOW as error:
            self.failed.append(str(error))
        if dies_after in ("bind", "publish"):
            self.failed.append("killed")
            return
        for writer in self.writers:
            state = self.positions.load(writer.name)
            try:
                deliver_to(
                    writer,
                    self.log,
                    self.positions,
                    "run",
                    write_parts_here,
                    limit=NO_LIMIT,
                    reload=self.reload(writer),
                    clock=self.clock,
                )
                if dies_after != "deliver":
                    self.reconcile(writer, state.position if state else -1)
            except NOT_NOW as error:
                self.failed.append(str(error))
        if dies_after:
            self.failed.append("killed")

    def _take_in(self, run_id: str, dies_after: str) -> None:
        folder = LogFolder("orders", str(self.root / "log"))
        available = self.broker.available(SOURCES)
        binding = bind(self.control, available, LIMIT, self.clock(), run_id)
        if binding is None or dies_after == "bind":
            return
        if binding.run_id != run_id:
            self.failed.append("finished what an earlier run had bound; what is new is for the next one")
        capture(
            self.control,
            folder,
            binding,
            RowsEngine(self._rows),
            lambda _: self.broker.available(SOURCES),
            self.clock(),
        )
        publish(self.control, folder, binding, SEGMENT_BYTES, PUBLISHED_AT)

    def _rows(self, binding: Binding, s: Slice) -> list[pa.RecordBatch]:
        records = self.broker.topics[s.topic].partitions[s.partition]
        rows = [
            {
                "id": (id_ := binding.id_of(s.topic, s.partition, offset)),
                "t": binding.t,
                "write_time": binding.write_time(id_),
                **{"topic": s.topic, "partition": s.partition, "offset": offset},
                **{"timestamp_type": 0, "namespace": s.topic},
                **records[offset],
            }
            for offset in range(s.lower, s.upper)
        ]
        return [pa.RecordBatch.from_pylist(rows, schema=LOG_SCHEMA)]

    def reconcile(self, writer: Writer, before: int) -> None:
        """Compare what a writer has with the log, as every run does; it was at a position before."""
        extent = usual_extent(writer)
        if extent is None:
            return self._reconcile_journal(before)
        found = verify_output(writer, self.log, self.positions, extent)
        if found:
            reconcile_output(found, self.positions, str(self.root / "log"), "run", self.clock)
        return None

    def _reconcile_journal(self, before: int) -> None:
        """What a run does: the entities that it has touched, and all pointers."""
        state = self.positions.load("journal")
        if state is None or state.gate is not None or state.position < 0:
            return
        tables, tally = FoundInMemory(self.journal), VerdictTally()
        case, basis = Case(self.journal_writer, self.log, self.positions, tables).begin()
        touched = [one for one in self._messages().values() if one["id"] > before]
        entities = {Entity(one["topic"], one["key"].decode()) for one in touched}
        for verdict in judge_entities(basis, case.log, tables, sorted(entities)):
            tally.note(verdict)
        found = case.conclude(basis, tally, 0.0)
        if not found.is_clean:
            record = Reconciliation("orders", "journal", state.position, found.summary, found.to_dict())
            close_gate(self.positions, record, "run", self.clock)

    # What people do

    def recreate(self, name: str, partitions: int) -> None:
        self.broker.make(name, partitions)

    def delete(self, name: str) -> None:
        self.broker.delete(name)

    def remove_file(self, number: int) -> None:
        if files := self._archived():
            files[number % len(files)].unlink()

    def damage_file(self, number: int) -> None:
        if files := self._archived():
            files[number % len(files)].write_bytes(b"damaged")

    def move_damaged(self) -> None:
        for path in self._archived():
            if path.read_bytes() == b"damaged":
                path.unlink()

    def remove_folder(self) -> None:
        shutil.rmtree(self.root / ARCHIVE, ignore_errors=True)

    def drop_tables(self) -> None:
        self.journal = MemoryJournal()

    def accept(self) -> None:
        with suppress(NOT_NOW):
            acceptance = AuditEntry("accept", "ann", "known", self.clock())
            accept(self.control, require_closed_gate(self.control), acceptance)

    def resume_stopped(self, name: str) -> None:
        """``tidemark resume``: verify again, mend and redeliver, as the cause asks for."""
        state, writer = self.positions.load(name), self.writer(name)
        if state is None or state.gate is None:
            return
        with suppress(NOT_NOW):
            if state.gate.cause is Cause.VERIFICATION and usual_extent(writer):
                mend_output(
                    writer, self.log, self.positions, state.gate, "resume", self.shown.append, self.clock
                )
            elif state.gate.cause is not Cause.VERIFICATION:
                self.resume(writer)

    def rewind_to_the_beginning(self, name: str) -> None:
        with suppress(NOT_NOW):
            self.operator.rewind(name, -1, self.writer(name)).execute(self.deed("rewind"))

    def open(self, name: str) -> None:
        with suppress(NOT_NOW):
            self.operator.open(name).execute(self.deed("open"))

    # What must hold

    def seems_well(self) -> bool:
        """Whether the last run was green and left nothing to do: every gate open, every lag 0."""
        states = [self.positions.load(writer.name) for writer in self.writers]
        end = self.log.end if self.control.log_head().t else -1
        return (
            not self.failed
            and self.control.log_gate() is None
            and all(state and state.gate is None and state.position == end for state in states)
        )

    def differences(self) -> Iterator[str]:
        """Everything that is not where it should be, told from Kafka, the folder and the tables alone."""
        head = self.control.bindings_head()
        for name in SOURCES:
            topic = self.broker.topics.get(name)
            for number, records in enumerate(topic.partitions if topic else ()):
                if records and (head.topic_ids.get(name), head.reached.get((name, number))) != (
                    topic.id,
                    len(records),
                ):
                    yield f"{name}/{number} of Kafka is not in the log"
        messages = self._messages()
        ids = sorted(messages)
        copied = [one["id"] for part in self._copied() for one in part]
        if sorted(copied) != ids:
            yield f"{TARGET} has ids {sorted(copied)} instead of {ids}"
        archived = [i for path in self._archived() for i in _ids(path)]
        if archived != ids:
            yield f"{ARCHIVE} has ids {archived} instead of {ids}"
        yield from self._differing_entities(messages.values())

    def _differing_entities(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Entities of the first topic of every name, and of no other: the journal goes on without those."""
        recreations = Recreations.of(self.control.accepted_losses())
        bindings = {one.t: one for one in list(Bindings(self.control).after(-1))}
        events: dict[tuple[str, str], int] = {}
        newer: set[str] = set()
        for one in messages:
            if recreations.number_in(one["topic"], bindings[one["t"]]):
                newer.add(one["topic"])
            else:
                entity = one["topic"], one["key"].decode()
                events[entity] = events.get(entity, 0) + 1
        for (topic, key), number in events.items():
            found = self.journal.of(topic).read(key, correlate=True)
            if found != list(range(1, number + 1)):
                yield f"{topic}: {key} has events {found} instead of 1 to {number}"
        for topic in newer - set(self.positions.left_out("journal")):
            yield f"{topic} was made again, and its writer does not say that it goes on without it"

    def _messages(self) -> dict[int, dict[str, Any]]:
        if not self.control.log_head().t:
            return {}
        log = self.log
        batches = (batch for file in log.manifest.files for batch in log.folder.read_file(file))
        return {one["id"]: one for batch in batches for one in batch.to_pylist()}

    def _copied(self) -> list[list[dict[str, Any]]]:
        topic = self.broker.topics.get(TARGET)
        return topic.partitions if topic else []

    def _archived(self) -> list[Path]:
        return sorted((self.root / ARCHIVE).glob("*.jsonl"))


def _ids(path: Path) -> list[int]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]
