"""The heads of one Kafka partition's entities while a part of it is written.

Each is read once, carried along from chunk to chunk, and written when all rows are. Segments of
``metajournal`` are read whole where that is cheap, which is nearly always: one query brings the heads of
fifty segments, and tells of all other entities there that they have none. Dense segments are asked for
their entities by name.
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
"""So few are asked for by name: reading them whole would not pay."""
T = TypeVar("T")
_DAY = 86_400_000_000_000


class HeadTable(Protocol):
    """Where heads are read from."""

    def read_segments(self, topic: str, groups: Any) -> Iterable[Any]:
        """The heads of whole segments: the first of each, should there be very many."""

    def read_heads(self, topic: str, wanted: Any) -> Iterable[Any]:
        """The heads of these entities in these segments."""


class ChangedHead(NamedTuple):
    """What is to be written of an entity's head: the tombstone first, where there is one."""

    tombstone: HeadTombstone | None
    head: Head | None
    write_time: int


class PartitionHeads:
    """What is known of the entities of one partition."""

    def __init__(
        self, table: HeadTable, topic: str, partition: int, is_ours: Callable[[str], bool] = lambda key: True
    ) -> None:
        self._table, self._topic, self._partition, self._is_ours = table, topic, partition, is_ours
        self._known: dict[str, Head | None] = {}
        self._changed: dict[str, ChangedHead] = {}
        self._ahead: dict[tuple[int, str], Head] = {}
        """Heads that came with others and may be asked for later."""
        self._elsewhere: set[str] = set()
        """Entities that came with others and have their heads for another partition."""
        self._whole: set[int] = set()
        """Segments that were read whole."""
        self._is_dense = False

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, key: str) -> Head | None:
        return self._known[key]

    @property
    def changed(self) -> Mapping[str, ChangedHead]:
        """The heads to be written."""
        return self._changed

    def created_at(self, created: int) -> Iterator[str]:
        """The entities whose heads were created then, now or by an earlier attempt."""
        return (key for key, head in self._known.items() if head is not None and head.created == created)

    def load(self, keys: Iterable[str]) -> None:
        """Make sure of the heads of these entities: today's segment is looked at first, then the old one."""
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
        """Take the head that a fold has come to."""
        if effect.write_time is None:
            return
        key, earlier = effect.key, self._changed.get(effect.key)
        tombstone = effect.head_tombstone or (earlier.tombstone if earlier else None)
        self._known[key] = effect.head
        self._changed[key] = ChangedHead(tombstone, effect.head, effect.write_time)

    def forget(self) -> None:
        """Drop everything, when it has been written."""
        self._known.clear()
        self._changed.clear()
        self._ahead.clear()
        self._elsewhere.clear()
        self._whole.clear()

    def _read(self, wanted: Mapping[int, Collection[str]]) -> None:
        if self._is_dense or len(wanted) <= FEW_SEGMENTS:
            self._read_by_name(wanted)
            return
        groups = list(_cut(sorted(wanted), SEGMENTS_AT_ONCE))
        # The first group tells whether the others are worth reading whole.
        dense = self._read_whole(groups[:1], wanted)
        self._is_dense = 2 * len(dense) > len(groups[0])
        if self._is_dense:
            dense |= {segment: wanted[segment] for group in groups[1:] for segment in group}
        else:
            dense |= self._read_whole(groups[1:], wanted)
        self._read_by_name(dense)

    def _read_whole(
        self, groups: Collection[Sequence[int]], wanted: Mapping[int, Collection[str]]
    ) -> dict[int, Collection[str]]:
        """Read segments whole; those that turn out to be too large for it."""
        counts: Counter[int] = Counter()
        for row in self._table.read_segments(self._topic, groups):
            counts[row.segment] += 1
            if row.id in wanted[row.segment]:
                self._ahead[row.segment, row.id] = head_of(row)
            elif not self._is_ours(row.id):
                continue
            elif row.partition == self._partition:
                self._ahead[row.segment, row.id] = head_of(row)
            else:  # should it be wanted later, that it is elsewhere must not go unnoticed
                self._elsewhere.add(row.id)
        segments = {segment for group in groups for segment in group}
        dense = {segment for segment in segments if counts[segment] >= HEADS_OF_A_SEGMENT}
        self._whole |= segments - dense
        return {segment: wanted[segment] for segment in dense}

    def _read_by_name(self, wanted: Mapping[int, Collection[str]]) -> None:
        for row in self._table.read_heads(self._topic, _by_name(wanted)):
            self._ahead[row.segment, row.id] = head_of(row)


def _by_name(wanted: Mapping[int, Collection[str]]) -> Iterator[tuple[int, Sequence[str]]]:
    for segment, keys in wanted.items():
        for some in _cut(list(keys), KEYS_AT_ONCE):
            yield segment, some


def _cut(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (things[start : start + size] for start in range(0, len(things), size))


def head_of(row: Any) -> Head:
    """A row of ``metajournal`` as a head."""
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
    """A ``timestamp`` of the driver's as the column holds it."""
    return 0 if moment is None else round(moment.replace(tzinfo=UTC).timestamp() * 1000)
