"""A synchronisation whose topic and collection are in memory, and whose files are in a folder of its own.

The collection has what the topic's readers make of it, as of the newest call of ``replicate``. The comparison
is the library's, without an engine: pairs are made here.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.support.operation_topic import TOPIC_ID, MemoryTopic

from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.state.control import LogControl
from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.oplog.sync import synchronisation
from tidemark.oplog.sync.barrier import KnownOperations
from tidemark.oplog.sync.comparison import PAIRED, Comparison
from tidemark.oplog.sync.current_objects import CurrentRow
from tidemark.oplog.sync.decisions import CurrentObject
from tidemark.oplog.sync.errors import CollectionBehind
from tidemark.oplog.sync.file_columns import CURRENT
from tidemark.oplog.sync.guard import USUAL, DeleteLimit
from tidemark.oplog.sync.kafka_operations import TopicState
from tidemark.oplog.sync.report import corrections_of
from tidemark.oplog.sync.run_files import DiffSummary, DumpSummary
from tidemark.oplog.sync.synchronisation import Synchronisation

PIPELINE = "events"
START = "1970-01-01T00:00:12Z"
_SIDES = [("line", pa.int64()), ("dumped_at", pa.int64()), ("dumped_parents", pa.list_(pa.string()))]
_PAIRS = pa.schema([("type", pa.string()), ("id", pa.string()), *_SIDES, *list(CURRENT)[2:]])


class OpenMemoryTopic(MemoryTopic):
    """A topic that is its own client."""

    def __enter__(self) -> "OpenMemoryTopic":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@dataclass(frozen=True)
class MemorySynchronisation(Synchronisation):
    """See the module."""

    world: "SyncWorld | None" = field(default=None, compare=False)

    def read_topic(self, *, records: bool = False) -> TopicState:
        assert self.world
        ends = self.world.topic.ends()
        return TopicState("oplog", self.world.topic_id, len(ends), dict.fromkeys(ends, 0), ends)

    def reached(self, topic: TopicState, ends: Mapping[int, int] | None = None) -> KnownOperations:
        assert self.world
        known = KnownOperations(self.world.t, self.world.collected)
        if waiting := known.waiting(topic.ends if ends is None else ends):
            raise CollectionBehind(PIPELINE, "objects", waiting)
        return known


class SyncWorld:
    """See the module."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, partitions: int = 2) -> None:
        self.root, self.topic = root, OpenMemoryTopic(partitions)
        self.topic_id = TOPIC_ID
        self.t = 0
        self.collected: dict[int, int] = {}
        self.consensus = MemoryConsensus()
        self.rows: dict[bytes, CurrentRow] = {}
        self.replicate()
        patch.setattr(synchronisation, "KafkaOperations", lambda *given: self.topic)
        patch.setattr(synchronisation, "partition_of", lambda type_, id_, count: self.topic.partition_of(id_))
        patch.setattr(synchronisation, "read_current", self._read)

    @property
    def sync(self) -> MemorySynchronisation:
        """The synchronisation, as another process would open it."""
        declared: Any = SimpleNamespace(
            name=PIPELINE,
            log=SimpleNamespace(path=str(self.root)),
            source=SimpleNamespace(kafka=SimpleNamespace(isolation="read_committed")),
        )
        settings: Any = SimpleNamespace(
            declared=SimpleNamespace(name="objects"), open=lambda who: SimpleNamespace()
        )
        connections: Any = SimpleNamespace(kafka=None)
        control = LogControl(self.consensus, PIPELINE)
        return MemorySynchronisation(declared, connections, control, settings, lambda: 1_000, self)

    def replicate(self) -> None:
        """The collection has everything that the topic has."""
        self.collected = dict(self.topic.ends())
        self.t += 10
        self.rows = {}
        for place, one in self.topic.valid():
            operation = one.operation
            is_delete = operation.event is EventName.DELETE
            current = CurrentObject(is_delete, operation.timestamp, operation.parents)
            self.rows[operation.key] = CurrentRow(current, place)

    def given(self, *operations: ObjectOperation) -> None:
        """Operations that were sent and collected."""
        for one in operations:
            self.topic.append(one)
        self.replicate()

    def dump(self, *lines: tuple[str, int] | tuple[str, int, list[str]]) -> str:
        """A dump of objects of type ``video``: id, time in seconds, parents."""
        path = self.root / "dump.jsonl"
        path.write_text("".join(_line(*one) + "\n" for one in lines))
        return str(path)

    def validate(self, dump: str, start: str = START, **further: Any) -> DumpSummary:
        return self.sync.validate(dump, start, lambda said: None, **further)

    def compare(self, dump: DumpSummary) -> DiffSummary:
        """The library's comparison; the pairs are made here."""
        files = self.sync.files
        comparison = Comparison(dump.start)
        path = files.write_diff(dump.key, self.t, comparison.corrections([self._pairs(dump)]))
        found = comparison.found([path] if path else [])
        diff = DiffSummary(
            dump.key, self.t, "oplog", self.topic_id, dict(self.collected), found.outcomes, found.live
        )
        diff = DiffSummary(**{**diff.__dict__, "files": found.files, "first": found.first})
        files.keep_diff(diff)
        return diff

    def run(self, dump: str, start: str = START, *, force: bool = False) -> dict[str, Any]:
        """A whole run; returns its report."""
        diff = self.compare(self.validate(dump, start, force=force))
        self.sync.guard(diff, DeleteLimit.parse(USUAL), force=force)
        verified = None
        if corrections_of(diff):
            self.sync.send(diff)
            self.replicate()
            verified = self.sync.verify(diff)
        return self.sync.report(diff.key, diff.t, verified)

    def state(self) -> dict[str, tuple[str, int]]:
        """Every object that is there, with its event and its time in seconds."""
        return {
            id_: (one.event.value, one.timestamp // 1_000)
            for id_, one in self.topic.state().items()
            if one.event is not EventName.DELETE
        }

    def _pairs(self, dump: DumpSummary) -> pa.RecordBatch:
        dumped: dict[bytes, dict[str, Any]] = {}
        for path in dump.files:
            for batch in self.sync.files.dumped(path):
                for row in batch.to_pylist():
                    key = f"{row['type']}/{row['id']}".encode()
                    known = dumped.get(key)
                    if known is None or (row["timestamp"], row["line"]) > (known["timestamp"], known["line"]):
                        dumped[key] = row
        return pa.RecordBatch.from_pylist(
            [_pair(key, dumped.get(key), self.rows.get(key)) for key in sorted({*dumped, *self.rows})],
            _PAIRS,
        )

    def _read(
        self, opened: Any, at: int, objects: Collection[tuple[str, str]], who: str
    ) -> dict[bytes, CurrentRow]:
        keys = {f"{type_}/{id_}".encode() for type_, id_ in objects}
        return {key: row for key, row in self.rows.items() if key in keys}


def _line(id_: str, at: int, parents: Sequence[str] = ()) -> str:
    minutes, seconds = divmod(at, 60)
    timestamp = f"1970-01-01T00:{minutes:02d}:{seconds:02d}Z"
    return json.dumps({"timestamp": timestamp, "parents": list(parents), "type": "video", "id": id_})


def _pair(key: bytes, row: Mapping[str, Any] | None, current: CurrentRow | None) -> dict[str, Any]:
    type_, _, id_ = key.decode().partition("/")
    pair: dict[str, Any] = {**dict.fromkeys(PAIRED), "type": type_, "id": id_}
    if row is not None:
        pair |= {"line": row["line"], "dumped_at": row["timestamp"], "dumped_parents": row["parents"]}
    if current is not None:
        now = current.object
        pair |= {"deleted": now.deleted, "timestamp": now.timestamp, "parents": list(now.parents)}
        pair |= {"partition": current.place[0], "offset": current.place[1]}
    return pair


def events_of(outgoing: Iterable[Any]) -> list[tuple[str, str]]:
    """Events and objects that were sent, in order."""
    return [(one.operation.event.value, one.operation.id) for one in outgoing]
