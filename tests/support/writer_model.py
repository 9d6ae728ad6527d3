"""The journal writer and its reader, as far as the fold can be judged by them: no driver, no Spark.

Writes go out in the order that ``Effect`` asks for, one at a time, so that a test can let the process die
after any.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from tests.support.cassandra_model import Table

from tidemark.journal.codec.record import read_action
from tidemark.journal.effect import Effect, Message
from tidemark.journal.errors import Undecodable
from tidemark.journal.fold import Fold
from tidemark.journal.head import Head
from tidemark.journal.segments import head_segments, row_segment


@dataclass(frozen=True)
class Delivered:
    """One Kafka record as the commit log would hand it over."""

    id: int
    partition: int
    offset: int
    write_time: int
    bound_at: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]


class Writer:
    """Tables of one topic, and what a writer does to them."""

    def __init__(self, topic: str, segment_size: int, zone: tzinfo = UTC) -> None:
        self.topic = topic
        self.segment_size = segment_size
        self.zone = zone
        self.journal = Table()
        self.metajournal = Table()
        self.pointers: dict[int, int] = {}
        self.wall: Undecodable | None = None
        self.deleted: set[tuple[int, int | None]] = set()

    def deliver(
        self, records: Sequence[Delivered], *, die_after: int | None = None, moves_pointer: bool = True
    ) -> int:
        """Take records of one partition, oldest first; die after so many writes. Returns their number."""
        self.wall = None
        partition = records[0].partition
        pointer = self.pointers.get(partition, -1)
        folds: dict[str, Fold] = {}
        stopped: set[bytes | None] = set()
        for record in records:
            if record.offset <= pointer or record.key in stopped:
                continue
            try:
                self._apply(record, folds)
            except Undecodable as error:
                stopped.add(record.key)
                self.wall = self.wall or error.at(record.partition, record.offset, record.id)
        reached = [r.offset for r in records if self.wall is None or r.id < (self.wall.message_id or 0)]
        writes = [*self._writes([fold.effect() for fold in folds.values()])]
        if moves_pointer and reached and max(reached) > pointer:
            writes.append(lambda: self.pointers.__setitem__(partition, max(reached)))
        for write in writes[:die_after]:
            write()
        return len(writes)

    def _apply(self, record: Delivered, folds: dict[str, Fold]) -> None:
        action = read_action(record.key, record.value, record.timestamp, 0, record.headers)
        if action is None:
            return
        if action.key not in folds:
            head = self.head(action.key)
            folds[action.key] = Fold(
                self.topic, action.key, head, segment_size=self.segment_size, zone=self.zone
            )
        folds[action.key].apply(
            Message(record.id, record.partition, record.offset, record.write_time, record.bound_at, action)
        )

    def _writes(self, effects: list[Effect]) -> Iterator[Callable[[], None]]:
        for effect in effects:
            for segment, up_to, time in effect.tombstones:
                place = (effect.key, self.topic, segment)
                self.deleted.add((segment, up_to))
                if up_to is None:
                    yield lambda p=place, t=time: self.journal.delete_partition(p, t)
                else:
                    yield lambda p=place, u=up_to, t=time: self.journal.delete_up_to(p, u, t)
        for effect in effects:
            for row in effect.rows:
                yield lambda r=row: self.insert_row(r._asdict())
        for effect in effects:
            if effect.head_tombstone is not None:
                for segment in effect.head_tombstone.segments:
                    place, time = (self.topic, segment), effect.head_tombstone.write_time
                    yield lambda p=place, k=(effect.key,), t=time: self.metajournal.delete_row(p, k, t)
            if effect.write_time is not None and effect.head is not None:
                yield lambda e=effect: self.insert_head(e.key, e.head, e.write_time)

    def insert_row(self, cells: dict[str, Any]) -> None:
        cells = {**cells, "tags": frozenset(cells["tags"]), "headers": dict(cells["headers"])}
        place = cells.pop("id"), cells.pop("topic"), cells.pop("segment")
        clustering, time = (cells.pop("seq_nr"), cells.pop("timestamp")), cells.pop("write_time")
        unset = ("origin", "version", "meta_record_id", "payload_type", "payload_txt", "payload_bin")
        cells = {name: value for name, value in cells.items() if value is not None or name not in unset}
        self.journal.insert(place, clustering, cells, time)

    def insert_head(self, key: str, head: Head, write_time: int) -> None:
        cells = head._asdict()
        self.metajournal.insert((self.topic, cells.pop("segment")), (key,), cells, write_time)

    def head(self, key: str) -> Head | None:
        for segment in head_segments(key):
            row = self.metajournal.read((self.topic, segment)).get((key,))
            if row is not None:
                return Head(**{name: row.get(name) for name in Head._fields} | {"segment": segment})
        return None

    def rows(self, key: str) -> dict[tuple[int, int, int], dict[str, Any]]:
        """Every row there is, by (segment, seq_nr, timestamp)."""
        return {
            (place[2], *clustering): cells
            for place in self.journal.partitions()
            if place[:2] == (key, self.topic)
            for clustering, cells in self.journal.read(place).items()
        }

    def visible(self, key: str) -> dict[str, Any] | None:
        """What a reader can tell: the design's "Same", but for the pointers."""
        head = self.head(key)
        if head is None:
            return None
        readable = {
            place: {name: value for name, value in cells.items() if name != "meta_record_id"}
            for place, cells in self.rows(key).items()
            if place[1] > (head.delete_to or 0) and head.record_id in (None, cells.get("meta_record_id"))
        }
        told = ("seq_nr", "delete_to", "expire_after", "expire_on", "segment_size")
        return {name: getattr(head, name) for name in told} | {"rows": readable}

    def read(self, key: str, *, correlate: bool) -> list[int] | None:
        """The sequence numbers that the original's client gets, segment by segment (contract 4.7 and 6)."""
        head = self.head(key)
        if head is None:
            return None
        expected, numbers = (head.delete_to or 0) + 1, []
        segment = row_segment(expected, head.segment_size)
        while True:
            found = {
                clustering: cells
                for clustering, cells in self.journal.read((key, self.topic, segment)).items()
                if clustering[0] >= expected
            }
            numbers += [
                clustering[0]
                for clustering, cells in found.items()
                if not correlate or head.record_id in (None, cells.get("meta_record_id"))
            ]
            if not found:
                return numbers
            expected = max(found)[0] + 1
            if row_segment(expected, head.segment_size) == segment:
                return numbers
            segment = row_segment(expected, head.segment_size)
