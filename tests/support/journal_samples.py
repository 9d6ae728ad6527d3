"""Histories of a journal in one line each, and a pipeline whose log and tables are in memory.

A history is a line of actions, each with the next offset: ``A1,2`` appends events 1 and 2, ``D2`` deletes up
to 2, ``P`` purges, ``M`` is a mark, ``N`` no action at all, ``-`` an offset without a message. ``A1!`` has a
payload and ``?`` a header that cannot be understood. ``A1~5`` expires after 5 hours, ``A1@7`` was sent at 7.
All are of entity ``k``, or of the one they are marked with: ``j:A1``.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.support.consensus import MortalConsensus
from tests.support.faults import Killed
from tests.support.log_samples import LogInMemory, given_binding
from tests.support.memory_journal import Fate, MemoryJournal, MemoryTables, Order, Write
from tests.support.memory_letters import LetterList
from tests.support.pipeline_world import PipelineWorld

from tidemark.connections import CassandraConnection
from tidemark.consensus.lease import LEASE
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.journal.action import Action, Delete, Mark, Purge, append
from tidemark.journal.codec.expire_after import ExpireAfter
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata
from tidemark.log.files.merge import lanes
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.log.model.binding import Binding
from tidemark.log.model.loss import AcceptedLoss
from tidemark.log.model.manifest import LogFile, Manifest, Segment
from tidemark.log.state.control import BindingsHead, LogHead
from tidemark.pipeline.model import JournalDeclaration
from tidemark.writers.journal.writer import JournalWriter

TOPIC, KEY = "orders", "k"
DAY = 86_400_000_000
_ACTION = re.compile(r"(?:(\w+):)?([ADPMN?])([\d,]*)(!?)(?:~(\d+))?(?:@(\d+))?")


@dataclass(frozen=True)
class WriterInMemory(JournalWriter):
    """The journal writer, with tables that need no Cassandra."""

    tables: MemoryTables = field(compare=False)

    @property
    def _tables(self) -> Any:
        return self.tables

    @property
    def _has_tables(self) -> bool:
        return True

    @property
    def _can_be_read(self) -> bool:
        return True

    def prepare(self) -> None:
        pass


class Lease:
    """Notes how many writes were done when it was asked; refuses when it is lost."""

    def __init__(self, tables: MemoryTables, lost_after: int | None = None) -> None:
        self.tables, self.lost_after = tables, lost_after
        self.asked: list[int] = []

    def check(self) -> None:
        if len(self.asked) == self.lost_after:
            raise LeaseLost("orders", "journal", "zombie")
        self.asked.append(len(self.tables.written))


def journal_writer(tables: MemoryTables, zone: str = "UTC", **keys: Any) -> WriterInMemory:
    declared = JournalDeclaration.model_validate({"name": "journal", "kind": "journal"} | keys, context={})
    return WriterInMemory("orders", declared, CassandraConnection(hosts=("127.0.0.1",)), zone, tables)


def given_actions(
    binding: Binding, history: str, topic: str = TOPIC, partition: int = 0, first: int | None = None
) -> pa.RecordBatch:
    """The messages of a history as the log keeps them, from the beginning of their slice on."""
    (slice_,) = (s for s in binding.slices if (s.topic, s.partition) == (topic, partition))
    first = slice_.lower if first is None else first
    records = []
    for offset, text in enumerate(history.split(), start=first):
        if text != "-":
            id_ = binding.id_of(topic, partition, offset)
            place = {"topic": topic, "partition": partition, "offset": offset, "namespace": topic}
            times = {"t": binding.t, "write_time": binding.write_time(id_), "timestamp_type": 0}
            records.append({"id": id_, **place, **times, **kafka_record(text, offset)})
    return pa.RecordBatch.from_pylist(records, schema=LOG_SCHEMA)


def kafka_record(text: str, offset: int) -> dict[str, Any]:
    """One word of a history, as Kafka has it."""
    found = _ACTION.fullmatch(text)
    assert found, f"{text!r} is no action"
    key, kind, numbers, broken, hours, sent_at = found.groups()
    timestamp = int(sent_at or offset)
    record = write_action(_action(kind, key or KEY, timestamp, numbers, hours))
    headers = {"N": (), "?": (("journal.action", b"{"),)}.get(kind, record.headers)
    return {
        "key": record.key,
        "value": b"{" if broken else record.value,
        "timestamp": timestamp,
        "headers": [{"name": name, "value": value} for name, value in headers],
    }


def _action(kind: str, key: str, timestamp: int, numbers: str, hours: str | None) -> Action:
    match kind:
        case "A":
            events = tuple(EncodedEvent(int(n), (), "json", f'{{"n":{n}}}') for n in numbers.split(","))
            expires = ExpireAfter(int(hours), "hour") if hours else None
            return append(key, timestamp, Events(events, PayloadMetadata(expires)))
        case "D":
            return Delete(key, timestamp, int(numbers))
        case "P":
            return Purge(key, timestamp)
    return Mark(key, timestamp, "m")


@dataclass(eq=False)
class ActionLog(LogInMemory):
    """A published log: the control plane's part of it and its folder."""

    manifest: Manifest = field(default_factory=lambda: Manifest("orders"))
    losses: list[AcceptedLoss] = field(default_factory=list)
    begins_at: int = 0
    """The first offset that is bound of every partition."""
    times: list[int] = field(default_factory=list)
    """Those of the next bindings; a day after each other where nothing is said."""

    def publish(self, *histories: str) -> Binding:
        """What partitions 0, 1, … have next."""
        reached = {(s.topic, s.partition): s.upper for one in self.bindings for s in one.slices}
        given = {(TOPIC, number): text for number, text in enumerate(histories) if text}
        slices = [
            (*place, lower, lower + len(text.split()))
            for place, text in given.items()
            for lower in [reached.get(place, self.begins_at)]
        ]
        t = self.times.pop(0) if self.times else DAY * (len(self.bindings) + 1)
        binding = given_binding(t, self.manifest.end + 1, *slices, run_id=f"run-{t}")
        files = [file for place, text in given.items() for file in self._files(binding, place, text)]
        self.bindings.append(binding)
        self.manifest = self.manifest.with_binding(t, binding.end, files, 1_000_000)
        self.plane.replace_log(self.plane.log_head().version, self.log_head())
        return binding

    def _files(self, binding: Binding, place: tuple[str, int], text: str) -> Iterator[LogFile]:
        batch = given_actions(binding, text, *place)
        if batch.num_rows:
            ids, path = batch["id"].to_pylist(), f"{binding.t}-{place}"
            self.batches[path] = batch
            yield LogFile(path, binding.t, *place, ids[0], ids[-1], len(ids), 1, "")

    def compact(self, below: int, gone: Collection[int], policy: str = "journal") -> None:
        """Merge the files that end below an id by partition, without these messages."""
        inactive = [file for file in self.manifest.files if file.last_id < below]
        active = tuple(file for file in self.manifest.files if file.last_id >= below)
        merged = [one for lane in lanes(inactive) for one in self._merged(lane, gone)]
        closed = Segment(tuple(sorted(merged, key=lambda file: file.first_id)))
        self.manifest = self.manifest.with_segments([closed], Segment(active)).compacted(below, policy)

    def _merged(self, lane: Sequence[LogFile], gone: Collection[int]) -> Iterator[LogFile]:
        whole = pa.Table.from_batches([self.batches[file.path] for file in lane]).combine_chunks()
        kept = whole.filter(pa.array([id_ not in gone for id_ in whole["id"].to_pylist()], pa.bool_()))
        if kept.num_rows:
            ids, times = kept["id"].to_pylist(), kept["t"].to_pylist()
            path = f"{lane[0].path} and on, {len(ids)}"
            (self.batches[path],) = kept.combine_chunks().to_batches()
            yield LogFile(path, times[-1], *lane[0].place, ids[0], ids[-1], len(ids), 1, "", times[0])

    def bindings_head(self) -> BindingsHead:
        reached = {(s.topic, s.partition): s.upper for one in self.bindings for s in one.slices}
        ids = {topic: id_ for one in self.bindings for topic, id_ in one.topics}
        newest = self.bindings[-1].t if self.bindings else None
        return BindingsHead(newest=newest, reached=reached, topic_ids=ids)

    def read_chosen(self, file: LogFile, choose: Callable[[pa.ChunkedArray], pa.Array]) -> Iterator[pa.Table]:
        for batch in self.read_file(file):
            messages = pa.Table.from_batches([batch])
            yield messages.filter(choose(messages["key"]))

    def log_head(self) -> LogHead:
        return LogHead(manifest="newest", digest="")

    def read_manifest(self, path: str, digest: str) -> Manifest:
        return self.manifest

    def accepted_losses(self) -> list[AcceptedLoss]:
        return self.losses

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [one for file in self.manifest.files for one in self.batches[file.path].to_pylist()]


class JournalWorld(PipelineWorld):
    """``PipelineWorld`` with a journal writer: every delivery is a process of its own."""

    def __init__(self, log: ActionLog, **settings: Any) -> None:
        super().__init__(Path("nowhere"), MortalConsensus(MemoryConsensus()))
        self.actions, self.settings, self.journal, self.kept = log, settings, MemoryJournal(), LetterList()
        self.process = self.started()

    @property
    def log(self) -> PublishedLog:
        return PublishedLog(self.actions, self.actions, self.actions.manifest)

    @property
    def letters(self) -> LetterList:
        return self.kept

    def started(self, fate: Fate = lambda done: None, order: Order = iter) -> WriterInMemory:
        """The writer in a process that begins now."""
        self.process = journal_writer(MemoryTables(self.journal, fate, order), **self.settings)
        return self.process

    def stop_at_position(self) -> None:
        """Close the gate, so that what is left comes one at a time."""
        if self.positions.load("journal") is None:
            self.register(self.process)
        first, end = self.position(self.process) + 1, self.actions.manifest.end
        if first <= end and self.gate(self.process) is None:
            gate = WriterGate(Cause.TARGET, first, end, end, "as it was given", self.clock())
            self.close_gate(self.process, gate)

    def open_gate(self) -> None:
        """So that what is left comes in bulk."""
        if self.positions.load("journal") and self.gate(self.process):
            self.operator.open("journal").execute(self.deed("open"))

    def go(self, way: str, fate: Fate = lambda done: None, order: Order = iter) -> None:
        """Start a process, and let it deliver this way."""
        self.proceed(self.started(fate, order), way)

    def proceed(self, writer: WriterInMemory, way: str) -> None:
        """Everything in bulk, singly, or singly at first, whatever the gate says."""
        if way == "in bulk":
            self.open_gate()
            self.deliver(writer)
        else:
            self.stop_at_position()
            self.resume(writer, singly={"singly": 0, "mixed": 2}[way])

    def killed(self, way: str, writes: int, order: Order = iter) -> bool:
        """Deliver, and die after so many writes; whether it came to that."""

        def fate(done: int) -> None:
            if done >= writes:
                self.die()

        try:
            self.go(way, fate, order)
        except Killed:
            self.live_again()
            return True
        return False

    def overtaken(self, way: str, writes: int, order: Order = iter) -> list[Write]:
        """Deliver, and be overtaken after so many writes: what it still writes is kept for later.

        It goes on as if it were alone, until the control plane refuses it.
        """

        def fate(done: int) -> None:
            if done == writes:
                self.process.tables.journal = deepcopy(self.journal)
                self.consensus.is_dead = True

        with suppress(Killed):
            self.go(way, fate, order)
        self.live_again()
        return self.process.tables.written[writes:]

    def land(self, writes: Iterable[Write]) -> None:
        """What was on its way for long."""
        for write in writes:
            write.do(self.journal)

    def die(self) -> None:
        """Nothing of this process arrives any more."""
        self.consensus.die()

    def live_again(self) -> None:
        self.consensus = self.consensus.of_next_process()
        self.clock.now += LEASE

    def told(self, *keys: str) -> dict[str, Any]:
        """What a reader can tell of these entities."""
        reader = self.journal.of(TOPIC)
        return {"pointers": self.journal.pointers, **{key: reader.visible(key) for key in keys or (KEY,)}}
