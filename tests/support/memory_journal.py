"""A journal's tables in memory, as ``JournalTables`` offers them to a writer.

Underneath is the small Cassandra of the fold's tests: the newest write time wins, and a tombstone wins a tie.
Writes arrive one at a time, so a process may die after any of them, find its target broken, or be overtaken.
What a ``BulkWriter`` has under way between two flushes arrives in any order: a test may say in which.
"""

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from types import SimpleNamespace, TracebackType
from typing import Any, NamedTuple, Self
from uuid import UUID

from cassandra.util import Date, Duration
from tests.support.cassandra_model import NEVER, Table
from tests.support.faults import Killed
from tests.support.writer_model import Writer as Reader

from tidemark.journal.codec.expire_after import duration
from tidemark.journal.effect import Effect, HeadTombstone, Row
from tidemark.journal.head import Head
from tidemark.journal_tables import heads as journal_heads
from tidemark.journal_tables.statements import Pointer
from tidemark.log.model.binding import TopicPartition

ROWS_AT_ONCE = 100
"""As many as ``BulkWriter`` puts into a batch."""

Fate = Callable[[int], None]
"""Asked before every write, with the number of those that were done."""


class MemoryJournal:
    """The tables of one keyspace, for any number of writers."""

    def __init__(self) -> None:
        self.journal, self.metajournal, self.pointer2 = Table(), Table(), Table()

    def of(self, topic: str) -> Reader:
        """A topic, for the original's reader."""
        reader = Reader(topic, 10_000)
        reader.journal, reader.metajournal = self.journal, self.metajournal
        return reader

    @property
    def pointers(self) -> dict[TopicPartition, int]:
        read = {place: self.pointer2.read(place) for place in self.pointer2.partitions()}
        return {place: rows[()]["offset"] for place, rows in read.items() if rows}

    def point(self, topic: str, partition: int, offset: int, write_time: int = 0) -> None:
        """Let a pointer be there already."""
        self.pointer2.insert((topic, partition), (), {"offset": offset}, write_time)

    def collect_garbage(self) -> None:
        """What Cassandra does when ``gc_grace_seconds`` are over: no tombstone hides anything any more."""
        for table in (self.journal, self.metajournal, self.pointer2):
            for place in table.partitions():
                found = table._partitions[place]
                for clustering, cells in found.cells.items():
                    hidden_at = table._hidden_at(place, clustering)
                    found.cells[clustering] = {
                        name: (value, time)
                        for name, (value, time) in cells.items()
                        if value is not None and time > hidden_at
                    }
                found.deleted_at, found.ranges, found.rows_deleted_at = NEVER, [], {}

    def heads(self, topic: str, segment: int) -> Iterator["HeadRow"]:
        """A segment of ``metajournal``, in the order of its ids, with the driver's types."""
        for (key,), cells in self.metajournal.read((topic, segment)).items():
            named = {name: cells.get(name) for name in Head._fields if name != "segment"}
            yield HeadRow.of(Head(segment, **named), key)


class HeadRow(NamedTuple):
    """A row of ``metajournal`` as the driver returns it."""

    segment: int
    id: str
    partition: int
    offset: int
    segment_size: int
    seq_nr: int
    delete_to: int | None
    created: datetime
    updated: datetime
    expire_after: Duration | None
    expire_on: Date | None
    record_id: UUID | None
    origin: str | None

    @classmethod
    def of(cls, head: Head, key: str) -> Self:
        segment, *numbers, created, updated, after, on, record_id, origin = head
        expiry = None if after is None else Duration(*duration(after)), _driver_date(on)
        times = _driver_time(created), _driver_time(updated)
        return cls(segment, key, *numbers, *times, *expiry, record_id, origin)


class Write(NamedTuple):
    """One statement, on its own."""

    what: str
    """Such as ``row`` or ``head``."""
    key: str
    """The entity; of a pointer its partition."""
    write_time: int
    do: Callable[[MemoryJournal], None]


Order = Callable[[list[Write]], Iterable[Write]]
"""How what is under way arrives."""


class MemoryBulk:
    """Gathers writes as ``BulkWriter`` does, and asks before it sends any."""

    def __init__(self, tables: "MemoryTables", check: Callable[[], None] | None) -> None:
        self._tables, self._check = tables, check
        self._gathered: list[Write] = []
        self._under_way: list[Write] = []

    def add(self, write: Write) -> None:
        self._gathered.append(write)
        if len(self._gathered) >= ROWS_AT_ONCE:
            self._send()

    def flush(self) -> None:
        self._send()
        self._arrive()

    def _send(self) -> None:
        if self._gathered and self._check:
            self._check()
        self._under_way += self._gathered
        self._gathered = []

    def _arrive(self) -> None:
        under_way, self._under_way = self._under_way, []
        for write in self._tables.order(under_way):
            self._tables.do(write)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.flush()
        elif isinstance(error, Exception):  # what was sent is waited for
            self._arrive()


class MemoryTables:
    """The tables as one process has them; the methods are those of ``JournalTables``."""

    def __init__(
        self,
        journal: MemoryJournal,
        fate: Fate = lambda done: None,
        order: Order = iter,
    ) -> None:
        self.journal, self.fate, self.order = journal, fate, order
        self.written: list[Write] = []
        self.asked: list[tuple[Any, ...]] = []
        """The queries for heads."""

    def do(self, write: Write) -> None:
        self.fate(len(self.written))
        write.do(self.journal)
        self.written.append(write)

    @property
    def steps(self) -> list[str]:
        return [write.what for write in self.written]

    def bulk(self, check: Callable[[], None] | None = None, in_flight: int = 16) -> MemoryBulk:
        return MemoryBulk(self, check)

    def add_tombstones(self, bulk: MemoryBulk, effects: Iterable[Effect]) -> bool:
        found = False
        for effect in effects:
            for segment, up_to, write_time in effect.tombstones:
                found = True
                place = (effect.key, effect.topic, segment)
                bulk.add(Write("tombstone", effect.key, write_time, _delete(place, up_to, write_time)))
        return found

    def encode_rows(self, rows: Iterable[Row]) -> list[bytes]:
        return list(map(pickle.dumps, rows))

    def add_rows(self, bulk: MemoryBulk, rows: Iterable[bytes]) -> None:
        for row in map(pickle.loads, rows):
            bulk.add(Write("row", row.id, row.write_time, _insert_row(row)))

    def remove_rows(self, rows: Iterable[Row]) -> None:
        with self.bulk() as bulk:
            for row in rows:
                bulk.add(Write("removed row", row.id, row.write_time, _delete_row(row)))

    def add_head(self, bulk: MemoryBulk, topic: str, key: str, head: Head, write_time: int) -> None:
        def do(journal: MemoryJournal) -> None:
            journal.of(topic).insert_head(key, head, write_time)

        bulk.add(Write("head", key, write_time, do))

    def add_head_tombstone(self, bulk: MemoryBulk, topic: str, key: str, tombstone: HeadTombstone) -> None:
        for segment in tombstone.segments:
            do = _delete_head((topic, segment), key, tombstone.write_time)
            bulk.add(Write("head tombstone", key, tombstone.write_time, do))

    def has_heads(self) -> bool:
        table = self.journal.metajournal
        return any(table.read(place) for place in table.partitions())

    def has_pointers(self) -> bool:
        return bool(self.journal.pointers)

    def read_segments(self, topic: str, groups: Sequence[Sequence[int]]) -> Iterable[HeadRow]:
        for group in groups:
            self.asked.append(("segments", *group))
            for segment in group:
                yield from islice(self.journal.heads(topic, segment), journal_heads.HEADS_OF_A_SEGMENT)

    def read_heads(self, topic: str, wanted: Iterable[tuple[int, Sequence[str]]]) -> Iterable[HeadRow]:
        for segment, keys in wanted:
            self.asked.append(("heads", segment, *sorted(keys)))
            yield from (row for row in self.journal.heads(topic, segment) if row.id in keys)

    def read_rows(self, topic: str, key: str, segments: Collection[int]) -> Iterator[Any]:
        for (segment, seq_nr, timestamp), cells in self.journal.of(topic).rows(key).items():
            if segment in segments:
                place = {"segment": segment, "seq_nr": seq_nr, "timestamp": _driver_time(timestamp)}
                yield SimpleNamespace(**place, **{"meta_record_id": None, **cells})

    def read_pointers(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {place: offset for place, offset in self.journal.pointers.items() if place in places}

    def try_writing(self) -> None:
        self.fate(len(self.written))

    def read_timed_pointers(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, Pointer]:
        cells = {place: self.journal.pointer2._partitions[place].cells[()] for place in self.journal.pointers}
        return {place: Pointer(*of["offset"]) for place, of in cells.items() if place in places}

    def pointers_made(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        read = {place: self.journal.pointer2.read(place) for place in places}
        return {place: rows[()]["created"] for place, rows in read.items() if rows and "created" in rows[()]}

    def write_pointers(self, pointers: Mapping[TopicPartition, tuple[int, int]], at: int) -> None:
        found = self.read_pointers(list(pointers))
        for place, (offset, write_time) in pointers.items():
            if place not in found or found[place] < offset:
                cells = {"offset": offset, "updated": at} | ({} if place in found else {"created": at})
                do = _insert_pointer(place, cells, write_time)
                self.do(Write("pointer", "{}/{}".format(*place), write_time, do))


def dies_after(writes: int) -> Fate:
    """A process that is killed."""

    def fate(done: int) -> None:
        if done >= writes:
            raise Killed

    return fate


def fails_after(writes: int) -> Fate:
    """A target that takes so many writes, and none after them."""

    def fate(done: int) -> None:
        if done >= writes:
            raise ConnectionError("no answer")

    return fate


def _delete(place: Any, up_to: int | None, write_time: int) -> Callable[[MemoryJournal], None]:
    if up_to is None:
        return lambda journal: journal.journal.delete_partition(place, write_time)
    return lambda journal: journal.journal.delete_up_to(place, up_to, write_time)


def _insert_row(row: Row) -> Callable[[MemoryJournal], None]:
    return lambda journal: journal.of(row.topic).insert_row(row._asdict())


def _delete_row(row: Row) -> Callable[[MemoryJournal], None]:
    place, clustering = (row.id, row.topic, row.segment), (row.seq_nr, row.timestamp)
    return lambda journal: journal.journal.delete_row(place, clustering, row.write_time)


def _delete_head(place: Any, key: str, write_time: int) -> Callable[[MemoryJournal], None]:
    return lambda journal: journal.metajournal.delete_row(place, (key,), write_time)


def _insert_pointer(
    place: TopicPartition, cells: dict[str, int], write_time: int
) -> Callable[[MemoryJournal], None]:
    return lambda journal: journal.pointer2.insert(place, (), cells, write_time)


def _driver_time(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)


def _driver_date(day: date | None) -> Date | None:
    return None if day is None else Date(day)
