"""Comparison of two renditions of a collection: what a reader gets of each key at each time.

Exact: the rows at the oldest time and at the newest one by digests of ranges of the token ring, and every
time in between by the digests that were committed with it, summed over shards: renditions may have different
numbers of shards. Only where any of these differ are rows compared with each other.

Explained: the rows of all keys at all times. Both tables have a key in the same range of the ring, so a range
is compared at once, and memory holds the versions of its keys.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from tidemark.cassandra.token_ranges import TokenRange
from tidemark.collection.model.envelopes.registry import ENVELOPES
from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.tables.codec.python_rows import PythonRows, VisibleRow
from tidemark.collection.tables.layout import MESSAGE_ID, CollectionPlace, T
from tidemark.delivery.state.positions import Positions
from tidemark.outputs.model.digest import ShardDigest, TimeDigests
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.pipeline.expect import RowChange
from tidemark.verification.renditions.comparison import Compared, Comparing
from tidemark.verification.renditions.difference import Fields, RowDifference, differing, plain
from tidemark.verification.renditions.matching import MOST_SAMPLES, DifferenceTally, RuleMatcher
from tidemark.writers.collection.writer import CollectionWriter

NO_DIGESTS = "bindings without committed digests in one of the renditions: their rows are compared instead"
DIGEST = "digest"
NEVER = 2**63
"""A time after all others."""
Version = tuple[int, CollectionRow]
"""A row, and from when on readers get it."""
_python_rows = lru_cache(maxsize=8)(PythonRows)
_OWN = frozenset({T, MESSAGE_ID})
"""Fields of a row that conditions may ask for, and that are no part of what readers see."""


class Times(NamedTuple):
    """The times of a comparison.

    Attributes:
        first: The oldest time: of everything before it, only the rows at this time count.
        last: The newest time.
    """

    first: int
    last: int


@dataclass(frozen=True)
class RangeComparison:
    """Compares the rows of ranges of the ring. Picklable: it is sent to tasks.

    Attributes:
        old: The active rendition.
        new: The rendition that is verified.
        times: The times that are compared.
        matcher: Which differences are meant.
    """

    old: CollectionWriter
    new: CollectionWriter
    times: Times
    matcher: RuleMatcher

    def compare(self, piece: TokenRange) -> DifferenceTally:
        """The differences of all keys of a range."""
        tally = DifferenceTally()
        old, new = (self._versions(writer, piece) for writer in (self.old, self.new))
        for key in sorted({*old, *new}):
            for t, *rows in _side_by_side(old.get(key, ()), new.get(key, ())):
                before, after = map(self._seen, rows)
                tally.rows += 1
                if (difference := self._difference(key, t, before, after)) is not None:
                    written = (one.message_id for one in (before, after) if one and one.t == t)
                    self.matcher.judge(tally, difference, written)
        return tally

    def _difference(
        self, key: Key, t: int, before: CollectionRow | None, after: CollectionRow | None
    ) -> RowDifference | None:
        if before is None and after is None:
            return None
        if before and after and self.is_same_schema and before.values == after.values:
            return None
        old, new = _fields(self.old.place, before), _fields(self.new.place, after)
        where = f"{_shown_key(self.old.place, key)} at {t}"
        if old is None or new is None:
            change = RowChange.ADDED if old is None else RowChange.MISSING
            return RowDifference(change, where, (), old, new)
        columns = differing(old, new, _OWN)
        return RowDifference(RowChange.CHANGED, where, columns, old, new) if columns else None

    def digests(self, at: int, piece: TokenRange) -> tuple[ShardDigest, ShardDigest]:
        """The digests of the rows at a time, of both renditions."""
        old, new = (
            ShardDigest.of(map(_visible_bytes(writer.place), self._states(writer, at, piece)))
            for writer in (self.old, self.new)
        )
        return old, new

    def _versions(self, writer: CollectionWriter, piece: TokenRange) -> dict[Key, list[Version]]:
        """The versions of the keys of a range, oldest first and one at a time; the first of a key may be
        older than its time."""
        found: dict[Key, list[Version]] = {}
        if self.times.first > 0:
            for row in self._states(writer, self.times.first, piece):
                found.setdefault(row.key, []).append((self.times.first, row))
        for row in writer.target.versions(*self.times, piece):
            found.setdefault(row.key, []).append((row.t, row))
        for key, versions in found.items():
            versions.sort(key=lambda one: (one[0], one[1].message_id))
            found[key] = [list(same)[-1] for _, same in groupby(versions, key=itemgetter(0))]
        return found

    def _states(self, writer: CollectionWriter, at: int, piece: TokenRange) -> Iterator[CollectionRow]:
        return writer.target.states(at, piece, with_gone=self._sees_deletes)

    def _seen(self, row: CollectionRow | None) -> CollectionRow | None:
        """What readers get of a row."""
        return None if row is None or (row.gone and not self._sees_deletes) else row

    @property
    def _sees_deletes(self) -> bool:
        """Whether readers get the rows of keys that are gone."""
        return all(ENVELOPES[one.declared.envelope].keeps_deleted for one in (self.old, self.new))

    @property
    def is_same_schema(self) -> bool:
        """Whether both have the same columns in the same order."""
        return self.old.place.schema.columns == self.new.place.schema.columns


def _side_by_side(
    old: Sequence[Version], new: Sequence[Version]
) -> Iterator[tuple[int, CollectionRow | None, CollectionRow | None]]:
    """What readers get of a key from both, at each time at which one of them has a version."""
    before, after = dict(old), dict(new)
    row: CollectionRow | None = None
    other: CollectionRow | None = None
    for t in sorted({*before, *after}):
        row, other = before.get(t, row), after.get(t, other)
        yield t, row, other


def compare_collections(comparing: Comparing) -> Compared:
    """See ``Compare``."""
    old, new = comparing.old.writer, comparing.new.writer
    if not isinstance(old, CollectionWriter) or not isinstance(new, CollectionWriter):
        raise TypeError(f"{comparing.name} is no collection")
    if old.place.schema.key != new.place.schema.key:
        raise comparing.incomparable(
            f"the key is {_columns(new, is_key=True)} instead of {_columns(old, is_key=True)}"
        )
    times = Times(min(comparing.since, comparing.t), comparing.t)
    ranges = RangeComparison(old, new, times, comparing.matcher)
    return _Collections(comparing, ranges).compare()


class _Collections:
    """One comparison of whole collections."""

    def __init__(self, comparing: Comparing, ranges: RangeComparison) -> None:
        self._comparing, self._ranges = comparing, ranges
        self._pieces = ranges.old.target.pieces(ranges.new.place)

    def compare(self) -> Compared:
        """The result in the mode of the comparison."""
        tally = DifferenceTally()
        for difference in self._other_columns():
            self._comparing.matcher.judge(tally, difference)
        if self._comparing.mode is VerificationMode.EXPLAINED:
            tally.add(self._rows(self._pieces))
            return Compared(tally, {"rows": tally.rows})
        return self._exact(tally)

    def _exact(self, tally: DifferenceTally) -> Compared:
        times = self._compare_times()
        rows, doubtful = 0, set[int]()
        first, last = self._ranges.times
        for at in sorted({first, last} if first > 0 else {last}):
            work = partial(self._ranges.digests, at)
            found = self._comparing.engine.run(f"ranges at {at}", work, self._pieces)
            for number, (old, new) in enumerate(found):
                rows += old.count
                if old != new:
                    doubtful.add(number)
        if times.different or times.unproven:  # it is not known in which ranges
            doubtful = set(range(len(self._pieces)))
        tally.add(self._rows([self._pieces[number] for number in sorted(doubtful)]))
        if not tally.total and self._ranges.is_same_schema:
            # Rows that no reader gets differ too, such as the earlier one of two at one time.
            for difference in times.samples:
                self._comparing.matcher.judge(tally, difference)
        looked_at = {"rows": max(rows, tally.rows), "bindings": times.count}
        return Compared(tally, looked_at, {NO_DIGESTS: times.unproven} if times.unproven else {})

    def _rows(self, pieces: Sequence[TokenRange]) -> DifferenceTally:
        found = self._comparing.engine.run("ranges", self._ranges.compare, pieces)
        return DifferenceTally.sum(found)

    def _compare_times(self) -> "_ComparedTimes":
        """Compare the committed digests of all times after the first one. As many bindings as there are, they
        are read as streams, newest first."""
        comparing, found = self._comparing, _ComparedTimes()
        first, last = self._ranges.times
        below = comparing.log.manifest.compacted_below
        old, new = (_Digests(comparing.positions, one.consumer) for one in (comparing.old, comparing.new))
        for binding in comparing.log.bindings.before(last + 1):
            if binding.t <= first or binding.base < below:
                break
            found.note(binding.t, old.at(binding.t), new.at(binding.t))
        return found

    def _other_columns(self) -> Iterator[RowDifference]:
        """The data columns that only one of the renditions has, or that have another type."""
        old, new = (
            {one.name: str(one.type) for one in writer.place.schema.columns}
            for writer in (self._ranges.old, self._ranges.new)
        )
        for name in differing(old, new):
            types = [{name: types[name]} if name in types else {} for types in (old, new)]
            yield RowDifference(RowChange.CHANGED, f"type of column {name}", (name,), *types)


@dataclass
class _ComparedTimes:
    """The comparison of committed digests.

    Attributes:
        count: The bindings that were compared.
        different: How many of them differ.
        unproven: How many have no digests in one of the renditions.
        samples: Some that differ.
    """

    count: int = 0
    different: int = 0
    unproven: int = 0
    samples: list[RowDifference] = field(default_factory=list)

    def note(self, t: int, old: ShardDigest | None, new: ShardDigest | None) -> None:
        if old is None or new is None:
            self.unproven += 1
            return
        self.count += 1
        if old == new:
            return
        self.different += 1
        if len(self.samples) < MOST_SAMPLES:
            sides: list[Fields] = [{DIGEST: str(old)}, {DIGEST: str(new)}]
            self.samples.append(RowDifference(RowChange.CHANGED, f"all rows at {t}", (DIGEST,), *sides))


class _Digests:
    """The committed digests of a rendition, newest first, summed over shards."""

    def __init__(self, positions: Positions, consumer: str) -> None:
        self._bodies, self._next = positions.all_digests(consumer), TimeDigests(NEVER, ())

    def at(self, t: int) -> ShardDigest | None:
        """The digest of a time. Times are asked for newest first."""
        while self._next.t > t:
            body = next(self._bodies, None)
            self._next = TimeDigests(-1, ()) if body is None else TimeDigests.from_json(body)
        return self._next.total if self._next.t == t else None


def _visible_bytes(place: CollectionPlace) -> Callable[[CollectionRow], bytes]:
    """A function that gives what readers see of a row as bytes, whatever the order of the columns."""
    names = place.data_columns
    order = sorted(range(len(names)), key=names.__getitem__)

    def encode(row: CollectionRow) -> bytes:
        values = (row.values[number] for number in order)
        return b"".join(
            (key_bytes(row.key), *(b"-" if cell is None else key_bytes((cell,)) for cell in values))
        )

    return encode


def _fields(place: CollectionPlace, row: CollectionRow | None) -> Fields | None:
    if row is None:
        return None
    decoded = _python_rows(place).decode(VisibleRow(row.key, row.values))
    found: dict[str, Any] = {name: plain(value) for name, value in decoded.items()}
    return found | {T: row.t, MESSAGE_ID: row.message_id}


def _shown_key(place: CollectionPlace, key: Key) -> str:
    decoded = _python_rows(place).decode_key(key)
    return ", ".join(f"{name} {plain(value)}" for name, value in decoded.items())


def _columns(writer: CollectionWriter, *, is_key: bool) -> str:
    schema = writer.place.schema
    columns = schema.key if is_key else schema.columns
    return ", ".join(f"{one.name} {one.type}" for one in columns)
