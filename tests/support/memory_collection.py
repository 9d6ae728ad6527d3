"""A collection's tables in memory, as ``CollectionTarget`` offers them to a writer, and a pipeline for them.

The newest write time wins and a tombstone wins a tie, as in Cassandra. Writes arrive one at a time, so a
process may die after any of them, find its target broken, or be overtaken.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.support.clocks import TickingClock
from tests.support.collection_rows import newest, obsolete_of, python_row
from tests.support.consensus import MortalConsensus
from tests.support.log_samples import (
    SEGMENT_BYTES,
    add_binding,
    captured_of,
    given_binding,
    given_topic_id,
    write_file,
)
from tests.support.pipeline_world import PipelineWorld

from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.model.row_digests import digests_of
from tidemark.collection.tables.errors import CollectionMissing
from tidemark.collection.tables.key_origins import KeyOrigin, KeyVersion, Origins
from tidemark.collection.tables.versions import OlderVersions
from tidemark.connections import CassandraConnection
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.writer import TargetIdentity
from tidemark.log.bindings.door import Bindings
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.publish import publish
from tidemark.outputs.model.digest import TimeDigests, shard_of
from tidemark.outputs.model.output import Output
from tidemark.outputs.state.output_store import OutputStore
from tidemark.writers.collection.kind import CollectionDeclaration
from tidemark.writers.collection.writer import CollectionWriter

TOPIC = "accounts"
Fate = Callable[[int], None]
"""Asked before every write, with the number of those that were done."""
Place = tuple[Key, int, int]
"""Key, t and message id."""
PIECES = 3


def piece_of(row: CollectionRow) -> int:
    """The range of the ring that a key is in."""
    return shard_of(key_bytes(row.key), PIECES)


def version_of(row: CollectionRow) -> KeyVersion:
    """The message of a row."""
    return KeyVersion(row.t, row.message_id, row.topic, row.partition, row.offset)


class MemoryCollection:
    """The tables of one collection, for any number of processes."""

    def __init__(self) -> None:
        self.id: int | None = None
        self.made = 0
        self.changes: set[int] = set()
        """The times that have changes."""
        self._cells: dict[Place, tuple[int, bool, CollectionRow | None]] = {}
        """By place: the write time, whether it is a tombstone, and the row."""

    def create(self) -> None:
        if self.id is None:
            self.made += 1
            self.id = self.made

    def drop(self) -> None:
        """What an operator does with DROP TABLE."""
        self.id, self._cells, self.changes = None, {}, set()

    def put(self, place: Place, write_time: int, row: CollectionRow | None) -> None:
        found = self._cells.get(place)
        if found is None or (write_time, row is None) >= found[:2]:
            self._cells[place] = (write_time, row is None, row)
        if row is not None:
            self.changes.add(row.t)

    def obsolete(self, since: int) -> list[OlderVersions]:
        """What is found of the keys that have versions which no time from a time on sees."""
        return obsolete_of(self.rows, since)

    def drop_older(self, found: OlderVersions) -> None:
        """One range delete: it hides what was written at its own write time or before."""
        for place, (write_time, _, row) in list(self._cells.items()):
            key, *version = place
            is_hidden = write_time <= found.write_time and row is not None
            if key == found.key and tuple(version) < (found.t, found.message_id) and is_hidden:
                self._cells[place] = (found.write_time, True, None)

    @property
    def rows(self) -> list[CollectionRow]:
        """Everything that is there, by id."""
        found = (row for _, _, row in self._cells.values() if row is not None)
        return sorted(found, key=lambda row: row.message_id)

    @property
    def ids(self) -> list[int]:
        return [row.message_id for row in self.rows]

    def digests(self, t: int, shards: int = 4) -> TimeDigests:
        """The digests of what is there for a time."""
        return TimeDigests(t, digests_of((row for row in self.rows if row.t == t), shards))

    def state(self, at: int = 10**18) -> dict[str, int | None]:
        """The balance of each account that there is at a time."""
        there = (python_row(row) for row in newest(self.rows, at).values() if not row.gone)
        return {one["id"]: one["balance"] for one in there}


@dataclass
class MemoryTarget:
    """The tables as one process has them; the methods are those of ``CollectionTarget``."""

    collection: MemoryCollection
    fate: Fate = lambda done: None
    written: int = 0
    looked_up: list[set[Key]] = field(default_factory=list)

    def create(self) -> None:
        self.collection.create()

    def identify(self) -> TargetIdentity:
        if self.collection.id is None:
            raise CollectionMissing("orders", "accounts", "collections.accounts")
        return TargetIdentity(f"table-{self.collection.id}", "table collections.accounts")

    def is_empty(self) -> bool:
        return not self.collection.rows

    def origins(self, t: int, keys: Iterable[Key]) -> Origins:
        wanted, found = set(keys), Origins()
        self.looked_up.append(wanted)
        older = newest(self.collection.rows, t - 1)
        for key in wanted & older.keys():
            found[key, older[key].topic] = KeyOrigin(older[key].message_id, older[key].partition)
        for row in self.collection.rows:
            if row.t == t and row.key in wanted - older.keys():
                found.setdefault((row.key, row.topic), KeyOrigin(row.message_id, row.partition))
        return found

    def newest_before(self, t: int, first_id: int, keys: Iterable[Key]) -> dict[Key, KeyVersion]:
        wanted = set(keys)
        self.looked_up.append(wanted)
        earlier = (row for row in self.collection.rows if row.message_id < first_id)
        return {row.key: version_of(row) for row in earlier if row.key in wanted}

    def replaced_since(self, t: int, ids: Mapping[Key, int]) -> frozenset[Key]:
        rows = [row for row in self.collection.rows if row.key in ids]
        later = {row.key for row in rows if row.message_id > ids[row.key]}
        return frozenset(later - {row.key for row in rows if row.message_id == ids[row.key]})

    @contextmanager
    def writing(self, check: Callable[[], None], in_flight: int) -> Iterator["MemoryWriting"]:
        yield MemoryWriting(self, check)

    def discard(self, rows: Iterable[CollectionRow]) -> None:
        for row in rows:
            self.put(row, None)

    def digests(self, t: int) -> TimeDigests:
        return self.collection.digests(t)

    def pieces(self, other: Any) -> list[int]:
        """Ranges of a ring, as numbers."""
        return list(range(PIECES))

    def states(self, at: int, piece: int, *, with_gone: bool = False) -> Iterator[CollectionRow]:
        there = newest(self.collection.rows, at).values()
        return (row for row in there if (with_gone or not row.gone) and piece_of(row) == piece)

    def versions(self, after: int, until: int, piece: int) -> Iterator[CollectionRow]:
        rows = reversed(self.collection.rows)  # the newest first, as in the table
        return (row for row in rows if after < row.t <= until and piece_of(row) == piece)

    def count_obsolete(self, since: int) -> int:
        return len(self.collection.obsolete(since))

    def drop_versions(self, since: int) -> int:
        found = self.collection.obsolete(since)
        for one in found:
            self.fate(self.written)
            self.collection.drop_older(one)
            self.written += 1
        return len(found)

    def drop_changes(self, times: Iterable[int]) -> int:
        gone = list(times)
        self.collection.changes.difference_update(gone)
        return len(gone)

    def size(self) -> int:
        return 100 * len(self.collection.rows)

    def try_using(self) -> None:
        self.fate(self.written)

    def put(self, row: CollectionRow, content: CollectionRow | None) -> None:
        self.fate(self.written)
        self.collection.put((row.key, row.t, row.message_id), row.write_time, content)
        self.written += 1


@dataclass
class MemoryWriting:
    """Writes every row on its own, and checks the lease before each."""

    target: MemoryTarget
    check: Callable[[], None]

    def add(self, rows: Iterable[CollectionRow]) -> None:
        for row in rows:
            self.check()
            self.target.put(row, row)


@dataclass(frozen=True)
class CollectionInMemory(CollectionWriter):
    """The collection writer, with tables that need no Cassandra."""

    memory: MemoryTarget = field(compare=False, kw_only=True)

    @property
    def target(self) -> Any:
        return self.memory


def given_declared(**keys: Any) -> CollectionDeclaration:
    declared: dict[str, Any] = {
        "name": "accounts",
        "kind": "collection",
        "envelope": "upsert",
        "key": {"id": "text"},
        "columns": {"owner": "text", "balance": "int"},
        "shards": 4,
    }
    return CollectionDeclaration.model_validate(declared | keys, context={"TIDEMARK_TRANSFORMS": "tests"})


def collection_writer(
    collection: MemoryCollection, fate: Fate = lambda done: None, **keys: Any
) -> CollectionInMemory:
    connection = CassandraConnection(hosts=("127.0.0.1",))
    return CollectionInMemory(
        "orders", given_declared(**keys), connection, memory=MemoryTarget(collection, fate)
    )


def given_records(
    binding: Binding, partition: int, words: str, lower: int, topic: str = TOPIC
) -> pa.RecordBatch:
    """Messages of a partition, a word each.

    ``a=1`` is an account with a balance, ``a=1/bob`` one of another owner than ann, ``a`` deletes it, ``=1``
    has no key, ``a=x`` a balance that does not fit, ``a?`` no JSON, ``a:u`` an event of Debezium, and ``-``
    is an offset without a message.
    """
    messages = []
    for offset, word in enumerate(words.split(), start=lower):
        if word == "-":
            continue
        key, is_there, balance = word.partition("=")
        value: bytes | None = None
        if ":" in word:
            key, _, op = word.partition(":")
            value = f'{{"op": "{op}", "after": {{"owner": "ann", "balance": 1}}}}'.encode()
        elif word.endswith("?"):
            key, value = word[:-1], b"no json"
        elif is_there:
            balance, _, owner = balance.partition("/")
            number = balance if balance.isdigit() else f'"{balance}"'
            value = f'{{"owner": "{owner or "ann"}", "balance": {number}}}'.encode()
        id_ = binding.id_of(topic, partition, offset)
        place = {"topic": topic, "partition": partition, "offset": offset, "namespace": topic}
        times = {"t": binding.t, "write_time": binding.write_time(id_), "timestamp": 1, "timestamp_type": 0}
        body = {"key": key.encode() if key else None, "value": value, "headers": None}
        messages.append({"id": id_, **place, **times, **body})
    return pa.RecordBatch.from_pylist(messages, schema=LOG_SCHEMA)


class CollectionWorld(PipelineWorld):
    """A pipeline with a collection writer: every delivery is a process of its own."""

    def __init__(self, root: Path, **keys: Any) -> None:
        super().__init__(root, MortalConsensus(MemoryConsensus()), TickingClock())
        self.collection, self.keys = MemoryCollection(), keys
        self.topic_id = given_topic_id(TOPIC)

    def publish_records(self, *partitions: str) -> Binding:
        """Bind, capture and publish what partitions 0, 1, … of the topic have next."""
        head = self.control.bindings_head()
        previous = Bindings(self.control).at(head.newest) if head.newest is not None else None
        slices = []
        for number, words in enumerate(partitions):
            lower = head.reached.get((TOPIC, number), 0)
            slices.append((TOPIC, number, lower, lower + len(words.split())))
        base, t = (previous.end + 1, previous.t + 1_000) if previous else (0, 1_000)
        binding = given_binding(
            t,
            base,
            *[one for one in slices if one[2] < one[3]],
            run_id=f"run-{t}",
            topic_ids={TOPIC: self.topic_id},
        )
        folder = LogFolder("orders", str(self.root / "log"))
        add_binding(self.control, binding)
        files = [
            write_file(
                folder, binding, s, [self.records(binding, s.partition, partitions[s.partition], s.lower)]
            )
            for s in binding.slices
            if set(partitions[s.partition].split()) != {"-"}
        ]
        captured = captured_of(binding, *files)
        folder.write_captured(captured)
        folder.write_audit(AuditRecord(binding.t, captured.digest, ()))
        publish(self.control, folder, binding, SEGMENT_BYTES, 1)
        return binding

    def records(self, binding: Binding, partition: int, words: str, lower: int) -> pa.RecordBatch:
        """The messages of a partition, a word each."""
        return given_records(binding, partition, words, lower)

    def recreate_topic(self, topic_id: str) -> None:
        """Delete the topic and make it again, which an operator accepts; its offsets begin at 0."""
        head = self.control.bindings_head()
        assert head.newest is not None
        end = Bindings(self.control).at(head.newest).end
        self.topic_id = topic_id
        losses = [
            AcceptedLoss(Loss(LossKind.RECREATED, *place, at, at, topic_id), None, end, "ann", "known", 1, 1)
            for place, at in sorted(head.reached.items())
        ]
        self.control.record_losses(head, losses)

    def started(self, fate: Fate = lambda done: None, **keys: Any) -> CollectionInMemory:
        """The writer in a process that begins now."""
        return collection_writer(self.collection, fate, **(self.keys | keys))

    def live_again(self) -> None:
        """Start the next process after a crash."""
        assert isinstance(self.consensus, MortalConsensus)
        self.consensus = self.consensus.of_next_process()

    def die(self) -> None:
        assert isinstance(self.consensus, MortalConsensus)
        self.consensus.die()

    @property
    def outputs(self) -> OutputStore:
        return OutputStore(self.consensus, "orders", "accounts")

    @property
    def found(self) -> Output:
        return self.outputs.require()

    @property
    def digests(self) -> dict[int, TimeDigests]:
        """The committed digests by time."""
        rows = self.rows(self.started())
        found = (TimeDigests.from_json(body) for row, body in rows.items() if row.startswith("digest/"))
        return {one.t: one for one in found}
