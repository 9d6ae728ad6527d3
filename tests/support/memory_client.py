"""One partition of a topic, a journal's tables and their replication, all in memory and one write at a time.

Kafka's records are words of a history (``journal_samples``). What a replication run writes is the fold's, in
the order the writer keeps to: tombstones and rows in any order, then heads, then the pointer; a test lets as
many of these writes land as it likes. Whatever a reader asks for ticks: a test may let something happen then.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

from tests.support.journal_samples import KEY, TOPIC, kafka_record
from tests.support.memory_journal import MemoryJournal, MemoryTables, Write

from tidemark.client.journal import Journal
from tidemark.client.tables.active_tables import FixedTables
from tidemark.client.tail.head_cache import CacheBounds
from tidemark.client.tail.journal_tail import JournalTail
from tidemark.journal.action import Action, Append, Delete, Mark, Purge
from tidemark.journal.codec.payload import decode
from tidemark.journal.codec.record import read_action, write_action
from tidemark.journal.effect import Message
from tidemark.journal.fold import Fold
from tidemark.journal.head import Head
from tidemark.kafka.errors import KafkaFailure, OffsetGone
from tidemark.kafka.producer import Placed

PARTITION = 0
NO_CACHE = CacheBounds(0, 0)


class World:
    """Kafka, Cassandra, and what replicates between them."""

    def __init__(self, history: str = "", segment_size: int = 10_000, page_size: int = 2) -> None:
        self.segment_size, self.page_size = segment_size, page_size
        self.records: list[dict[str, Any] | None] = []
        self.begin = 0
        """Kafka's first offset."""
        self.fails_at: int | None = None
        """The offset at which Kafka does not answer."""
        self.handed_out = 0
        """Records that consumers were given."""
        self.epoch = 0
        """The leader epoch of records that are sent now."""
        self.topic_id: str | None = "first"
        self.is_head_late = True
        self.journal = MemoryJournal()
        self.pending: list[Write] = []
        """What the replication run under way has not written yet."""
        self.ticks = 0
        self.asked: list[str] = []
        self.on_tick: Callable[[int], None] = lambda tick: None
        self.send_words(history)

    # Kafka

    def send_words(self, history: str) -> None:
        for word in history.split():
            record = None if word == "-" else kafka_record(word, len(self.records)) | {"epoch": self.epoch}
            self.records.append(record)

    def send(self, action: Action, further: Mapping[str, str] | None = None) -> Placed:
        """As a producer."""
        self.tick(type(action).__name__.lower())
        record = write_action(action)
        headers = [*record.headers, *((name, text.encode()) for name, text in (further or {}).items())]
        self.records.append(
            {
                "key": record.key,
                "value": record.value,
                "timestamp": record.timestamp,
                "headers": [{"name": name, "value": value} for name, value in headers],
                "epoch": self.epoch,
            }
        )
        return Placed(PARTITION, len(self.records) - 1)

    def records_of(self, partition: int, first: int, end: int) -> Iterator["MemoryRecord"]:
        self.tick("tail")
        assert partition == PARTITION
        assert first < end <= len(self.records)
        for offset in range(first, end):
            if offset < self.begin:
                raise OffsetGone("it is below the first offset")
            if offset == self.fails_at:
                raise KafkaFailure("no answer")
            if (record := self.records[offset]) is not None:
                self.handed_out += 1
                headers = tuple((header["name"], header["value"]) for header in record["headers"])
                yield MemoryRecord(
                    offset,
                    record["key"],
                    record["value"],
                    headers,
                    record["timestamp"],
                    1,
                    record["epoch"],
                )

    def action(self, offset: int) -> Action | None:
        record = self.records[offset]
        if record is None:
            return None
        headers = [(header["name"], header["value"]) for header in record["headers"]]
        return read_action(record["key"], record["value"], record["timestamp"], 0, headers)

    def cut(self, end: int) -> None:
        """Loses the records from an offset on, as an unclean election of a leader does."""
        del self.records[end:]
        self.epoch += 1

    def create_again(self) -> None:
        """Another topic of the name, with tables of its own."""
        self.records.clear()
        self.journal, self.begin = MemoryJournal(), 0
        self.topic_id = f"{self.topic_id} again"

    def offsets(self, partition: int) -> tuple[int, int]:
        self.tick("offsets")
        return self.begin, len(self.records)

    def close(self) -> None:
        self.asked.append("close")

    # Cassandra

    def pointer(self, key: str, partition: int) -> int | None:
        self.tick("pointer")
        return self.journal.pointers.get((TOPIC, partition))

    def ask_head(self, key: str) -> Callable[[], Head | None]:
        """Read at once, or when the answer is waited for: anything between is possible."""
        if self.is_head_late:
            return lambda: self._head(key)
        found = self._head(key)
        return lambda: found

    def _head(self, key: str) -> Head | None:
        self.tick("head")
        return self.journal.of(TOPIC).head(key)

    def rows(self, key: str, segment: int, first: int) -> Iterator[Sequence[Any]]:
        """Page by page, each as the table is then: what Cassandra does."""
        after: tuple[int, int] = (first, -(2**62))
        while True:
            self.tick("rows")
            table = self.journal.journal.read((key, TOPIC, segment))
            found = [(place, cells) for place, cells in table.items() if place > after]
            page = [driver_row(*place, cells) for place, cells in found[: self.page_size]]
            yield page
            if len(found) <= self.page_size:
                return
            after = found[self.page_size - 1][0]

    def tick(self, asked: str) -> None:
        self.asked.append(asked)
        self.ticks += 1
        self.on_tick(self.ticks)

    # Replication

    def begin_run(self, end: int | None = None, order: random.Random | None = None) -> None:
        """A run over everything up to an offset: its writes are pending."""
        assert not self.pending
        pointer = self.journal.pointers.get((TOPIC, PARTITION), -1)
        end = len(self.records) if end is None else end
        if end - 1 <= pointer:
            return
        folds: dict[str, Fold] = {}
        reader = self.journal.of(TOPIC)
        for offset in range(pointer + 1, end):
            action = self.action(offset)
            if action is None:
                continue
            if action.key not in folds:
                head = reader.head(action.key)
                folds[action.key] = Fold(TOPIC, action.key, head, segment_size=self.segment_size)
            folds[action.key].apply(Message(offset, PARTITION, offset, 10**6 + offset, 10**6, action))
        effects = [fold.effect() for fold in folds.values()]
        tables, rows, heads = MemoryTables(self.journal), Gathered(), Gathered()
        tables.add_tombstones(rows, effects)  # type: ignore[arg-type]
        for effect in effects:
            tables.add_rows(rows, tables.encode_rows(effect.rows))  # type: ignore[arg-type]
        for effect in effects:
            if effect.head_tombstone is not None:
                tables.add_head_tombstone(heads, TOPIC, effect.key, effect.head_tombstone)  # type: ignore[arg-type]
        for effect in effects:
            if effect.write_time is not None and effect.head is not None:
                tables.add_head(heads, TOPIC, effect.key, effect.head, effect.write_time)  # type: ignore[arg-type]
        if order is not None:
            order.shuffle(rows)

        def point(journal: MemoryJournal) -> None:
            journal.point(TOPIC, PARTITION, end - 1, 10**6 + end)

        self.pending = [*rows, *heads, Write("pointer", "", 0, point)]

    def land(self, writes: int | None = None) -> None:
        """Let so many of the pending writes arrive; all of them when left out."""
        writes = len(self.pending) if writes is None else writes
        for write in self.pending[:writes]:
            write.do(self.journal)
        del self.pending[:writes]

    def land_until(self, what: str) -> None:
        """Let everything arrive up to the first write of this kind."""
        while self.pending and self.pending[0].what != what:
            self.land(1)

    def replicate(self, end: int | None = None) -> None:
        """A whole run."""
        self.begin_run(end)
        self.land()

    # The client

    def client(self, bounds: CacheBounds = NO_CACHE, **options: Any) -> Journal:
        """A client of its own, without a cache of the tail unless bounds are given."""
        journal = Journal.__new__(Journal)
        tail = JournalTail(TOPIC, MemorySource(self), bounds, 10)
        tables = FixedTables(self, self.segment_size)
        journal._assemble(TOPIC, self, tables, tail, origin="here", **{"guard": self, **options})
        return journal

    def check(self, key: str) -> None:
        """As a guard: every topic is taken."""

    def ask(self, key: str) -> Callable[[], str | None]:
        """As a guard: the topic's id after the mark."""
        found = self.topic_id
        return lambda: found

    def read(self, first: int = 1, key: str = KEY, **options: Any) -> list[tuple[int, int]]:
        """Numbers and offsets of the events that the client gives."""
        return [(event.seq_nr, event.offset) for event in self.client(**options).read(key, first)]

    def expected(self, end: int | None = None, key: str = KEY) -> "Model":
        """What the history up to an offset amounts to."""
        model = Model()
        for offset in range(len(self.records) if end is None else end):
            action = self.action(offset)
            if action is not None and action.key == key:
                model.take(offset, action)
        return model


class MemoryRecord(NamedTuple):
    """A record as a consumer gives it."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int | None
    timestamp_type: int
    leader_epoch: int | None


class MemorySource:
    """The world's partition as a source of the tail."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.offsets, self.records, self.close = world.offsets, world.records_of, world.close

    @contextmanager
    def begun(self, partition: int, first: int) -> Iterator[Any]:
        world = self.world
        yield SimpleNamespace(
            offsets=lambda: world.offsets(partition),
            until=lambda end: world.records_of(partition, first, end),
        )


class Gathered(list[Write]):
    """Takes writes as a ``BulkWriter`` does, and sends none."""

    add = list.append


class Model:
    """What an entity is, said as plainly as possible."""

    def __init__(self) -> None:
        self.events: dict[int, int] = {}
        self.seq_nr: int | None = None
        self.delete_to = 0

    def take(self, offset: int, action: Action) -> None:
        if isinstance(action, Mark):
            return
        if isinstance(action, Purge):
            self.__init__()  # type: ignore[misc]
        elif isinstance(action, Delete):
            if self.seq_nr is None:
                self.seq_nr = self.delete_to = action.to
            self.seq_nr = max(self.seq_nr, self.delete_to)
            self.delete_to = max(self.delete_to, min(action.to, self.seq_nr))
            self.events = {number: at for number, at in self.events.items() if number > self.delete_to}
        elif isinstance(action, Append):
            if self.seq_nr is None:
                self.delete_to = action.first - 1
            self.seq_nr = action.last
            for event in decode(action.form, action.payload).events:
                if event.seq_nr > self.delete_to:
                    self.events.setdefault(event.seq_nr, offset)

    def read(self, first: int = 1) -> list[tuple[int, int]]:
        return sorted(item for item in self.events.items() if item[0] >= first)


def driver_row(seq_nr: int, timestamp: int, cells: Mapping[str, Any]) -> Any:
    """A row of ``journal`` as the driver returns it."""
    names = ("origin", "version", "meta_record_id", "tags", "metadata", "payload_type", "payload_txt")
    absent = dict.fromkeys((*names, "payload_bin", "headers"))
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=timestamp)
    return SimpleNamespace(**{**absent, **cells}, seq_nr=seq_nr, timestamp=moment)
