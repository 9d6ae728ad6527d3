"""A cache of the heads of one Kafka partition's entities while a range of the partition is written.

Each head is read once, updated from batch to batch, and written by the caller after all rows. Segments of
``metajournal`` are read whole where that is cheap, which is nearly always: one query returns the heads of
fifty segments, and shows that all other entities of those segments have none. In dense segments the heads are
read by key.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from tidemark.journal.effect import Effect, HeadTombstone
from tidemark.journal.head import Head
from tidemark.journal.segments import head_segments, stored_segment_size
from tidemark.journal_tables.statements import HEADS_OF_A_SEGMENT

SEGMENTS_AT_ONCE = 50
KEYS_AT_ONCE = 50
FEW_SEGMENTS = 8
"""Up to this many segments, the heads are read by key: reading segments whole does not pay off."""
T = TypeVar("T")
_DAY = 86_400_000_000_000


class HeadTable(Protocol):
    """The table that heads are read from."""

    def read_segments(self, topic: str, groups: Any) -> Iterable[Any]:
        """The heads of whole segments, of each at most ``HEADS_OF_A_SEGMENT``; one query per group."""

    def read_heads(self, topic: str, wanted: Any) -> Iterable[Any]:
        """The heads of these (segment, keys) pairs that exist."""


class ChangedHead(NamedTuple):
    """The writes for an entity's head: the tombstone first, where there is one, then the head."""

    tombstone: HeadTombstone | None
    head: Head | None
    write_time: int


class PartitionHeads:
    """The heads of one partition's entities.

    ``is_ours`` tells whether this process writes an entity. Heads of other entities, read along with a whole
    segment, are not kept.
    """

    def __init__(
        self, table: HeadTable, topic: str, partition: int, is_ours: Callable[[str], bool] = lambda key: True
    ) -> None:
        self._table, self._topic, self._partition, self._is_ours = table, topic, partition, is_ours
        self._known: dict[str, Head | None] = {}
        self._changed: dict[str, ChangedHead] = {}
        self._ahead: dict[tuple[int, str], Head] = {}
        """Heads that were read with a whole segment and may be needed later, by segment and key."""
        self._elsewhere: set[str] = set()
        """Entities that were read with a whole segment and whose heads name another partition."""
        self._whole: set[int] = set()
        """The segments that were read whole."""
        self._is_dense = False

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, key: str) -> Head | None:
        return self._known[key]

    @property
    def changed(self) -> Mapping[str, ChangedHead]:
        """The heads to write, by key."""
        return self._changed

    def created_at(self, created: int) -> Iterator[str]:
        """The entities whose heads were created at that time, by this or by an earlier attempt."""
        return (key for key, head in self._known.items() if head is not None and head.created == created)

    def load(self, keys: Iterable[str]) -> None:
        """Reads the unknown heads of these entities: first in the current segment space, then in the old
        one."""
        missing = {key: head_segments(key) for key in keys if key not in self._known}
        for place in range(2):
            wanted: dict[int, list[str]] = {}
            for key, segments in missing.items():
                if len(segments) > place and (segments[place] not in self._whole or key in self._elsewhere):
                    wanted.setdefault(segments[place], []).append(key)
            self._read(wanted)
            for key, segments in list(missing.items()):
                head = self._ahead.pop((segments[place], key), None) if len(segments) > place else None
                if head is not None:
                    self._known[key] = head
                    del missing[key]
        self._known |= dict.fromkeys(missing)

    def apply(self, effect: Effect) -> None:
        """Records the head after a fold."""
        if effect.write_time is None:
            return
        key, earlier = effect.key, self._changed.get(effect.key)
        tombstone = effect.head_tombstone or (earlier.tombstone if earlier else None)
        self._known[key] = effect.head
        self._changed[key] = ChangedHead(tombstone, effect.head, effect.write_time)

    def forget(self) -> None:
        """Empties the cache, once everything is written."""
        self._known.clear()
        self._changed.clear()
        self._ahead.clear()
        self._elsewhere.clear()
        self._whole.clear()

    def _read(self, wanted: Mapping[int, Collection[str]]) -> None:
        if self._is_dense or len(wanted) <= FEW_SEGMENTS:
            self._read_by_key(wanted)
            return
        groups = list(_batches(sorted(wanted), SEGMENTS_AT_ONCE))
        # The first group shows whether the other segments are dense too.
        dense = self._read_whole(groups[:1], wanted)
        self._is_dense = 2 * len(dense) > len(groups[0])
        if self._is_dense:
            dense |= {segment: wanted[segment] for group in groups[1:] for segment in group}
        else:
            dense |= self._read_whole(groups[1:], wanted)
        self._read_by_key(dense)

    def _read_whole(
        self, groups: Collection[Sequence[int]], wanted: Mapping[int, Collection[str]]
    ) -> dict[int, Collection[str]]:
        """Reads segments whole and returns those that have too many heads for it, with their keys."""
        counts: Counter[int] = Counter()
        for row in self._table.read_segments(self._topic, groups):
            counts[row.segment] += 1
            if row.id in wanted[row.segment]:
                self._ahead[row.segment, row.id] = head_of(row)
            elif not self._is_ours(row.id):
                continue
            elif row.partition == self._partition:
                self._ahead[row.segment, row.id] = head_of(row)
            else:  # so that a later message of it in this partition is detected
                self._elsewhere.add(row.id)
        segments = {segment for group in groups for segment in group}
        dense = {segment for segment in segments if counts[segment] >= HEADS_OF_A_SEGMENT}
        self._whole |= segments - dense
        return {segment: wanted[segment] for segment in dense}

    def _read_by_key(self, wanted: Mapping[int, Collection[str]]) -> None:
        for row in self._table.read_heads(self._topic, _key_batches(wanted)):
            self._ahead[row.segment, row.id] = head_of(row)


def _key_batches(wanted: Mapping[int, Collection[str]]) -> Iterator[tuple[int, Sequence[str]]]:
    for segment, keys in wanted.items():
        for some in _batches(list(keys), KEYS_AT_ONCE):
            yield segment, some


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def head_of(row: Any) -> Head:
    """The head in a row of ``metajournal``."""
    after, expires = row.expire_after, row.expire_on
    return Head(
        row.segment,
        row.partition,
        row.offset,
        stored_segment_size(row.segment_size),
        row.seq_nr,
        row.delete_to,
        milliseconds(row.created),
        milliseconds(row.updated),
        None if after is None else after.days * _DAY + after.nanoseconds,
        expires if expires is None or isinstance(expires, date) else expires.date(),
        row.record_id,
        row.origin,
    )


def milliseconds(moment: datetime | None) -> int:
    """A ``timestamp`` column, as the driver returns it, in milliseconds since 1970; 0 for null."""
    return 0 if moment is None else round(moment.replace(tzinfo=UTC).timestamp() * 1000)
