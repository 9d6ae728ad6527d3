"""Compares the visible states of one entity: the expected one against the one found in the tables.

The expected state is given whole, as digests. The found rows are given one by one and are not kept. The value
of ``record_id`` and a head's times, origin and offset are not compared, because readers cannot see them.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from sys import maxsize

from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.journal.digest import changed_columns, source_of
from tidemark.journal.head import Head
from tidemark.journal.visible import FoundRow, Hidden, Visible, place_of, read_place, why_hidden

MOST = 20
"""The most differences of one entity that are returned; the rest are only counted."""
_FIELDS = ("seq_nr", "delete_to", "segment_size", "expire_after")


class Comparison:
    """The comparison of one entity: ``expected`` against ``found``, its head, and the rows given to ``take``.

    Consumes ``expected.rows``. At most ``most`` differences are returned; ``total`` counts all of them.
    """

    def __init__(self, topic: str, key: str, expected: Visible, found: Head | None, most: int = MOST) -> None:
        self._topic, self._key, self._expected, self._found, self._most = topic, key, expected, found, most
        self._missing = expected.rows
        self._differences: list[Difference] = []
        self._hidden: dict[bytes, Hidden] = {}
        self._rows = 0
        self.total = 0
        """How many differences there are, returned or not. Complete after ``conclude``."""

    def take(self, row: FoundRow) -> None:
        """Compares the next stored row, hidden or not. Every row may be given only once."""
        self._rows += 1
        if self._expected.head is None or self._found is None:
            return
        place = place_of(row.seq_nr, row.timestamp)
        if reason := why_hidden(self._found, row):
            if place in self._missing:
                self._hidden[place] = reason
        else:
            self.take_readable(place, row.digest)

    def take_readable(self, place: bytes, digest: bytes) -> None:
        """Compares the next row that is known to be readable."""
        wanted = self._missing.pop(place, None)
        if wanted is None:
            offset = f"offset {source_of(digest)[1]}"
            self._add(lambda: self._row_difference(DifferenceKind.ROW_EXTRA, place, detail=offset))
        elif changed := changed_columns(wanted, digest):
            self._add(lambda: self._row_difference(DifferenceKind.ROW_DIFFERS, place, columns=changed))

    def conclude(self) -> list[Difference]:
        """Returns the differences, those of the head first. Call it once, after the last row."""
        expected, found = self._expected.head, self._found
        if expected is None or found is None:
            heads = list(self._existence(expected, found))
            self.total = len(heads)
            return heads
        heads = list(self._head_differences(expected, found))
        self.total += len(heads) + len(self._missing)
        missing = (
            self._row_difference(
                DifferenceKind.ROW_MISSING, place, detail=_hidden_as(self._hidden.get(place), found)
            )
            for place in sorted(self._missing)
        )
        return [*heads, *self._differences, *islice(missing, max(self._most - len(self._differences), 0))]

    def _existence(self, expected: Head | None, found: Head | None) -> Iterator[Difference]:
        if expected is not None:
            rows = f"{self._rows} rows of it are there, and no reader can get them" if self._rows else ""
            kind = DifferenceKind.HEAD_MISSING
            yield Difference(kind, self._topic, self._key, expected=expected.seq_nr, detail=rows)
        elif found is not None:
            rows = f"with {self._rows} rows" if self._rows else "without rows"
            kind = DifferenceKind.HEAD_EXTRA
            yield Difference(kind, self._topic, self._key, found=found.seq_nr, detail=rows)

    def _head_differences(self, expected: Head, found: Head) -> Iterator[Difference]:
        # ``expire_on`` is computed by the process that began the incarnation. With another ``record_id`` that
        # was a replicator, which used its own clock.
        fields = (*_FIELDS, "expire_on") if expected.record_id == found.record_id else _FIELDS
        is_old = found.partition == expected.partition and found.offset < expected.offset
        age = f"the head is too old: offset {found.offset}, not {expected.offset}" if is_old else ""
        for name in fields:
            wanted, actual = getattr(expected, name), getattr(found, name)
            if wanted != actual and not (name == "delete_to" and not wanted and not actual):
                yield Difference(
                    DifferenceKind.HEAD_DIFFERS,
                    self._topic,
                    self._key,
                    columns=(name,),
                    expected=_plain(wanted),
                    found=_plain(actual),
                    detail=age,
                )

    def _add(self, make: Callable[[], Difference]) -> None:
        self.total += 1
        if len(self._differences) < self._most:
            self._differences.append(make())

    def _row_difference(
        self, kind: DifferenceKind, place: bytes, columns: tuple[str, ...] = (), detail: str = ""
    ) -> Difference:
        seq_nr, timestamp = read_place(place)
        return Difference(
            kind, self._topic, self._key, seq_nr=seq_nr, timestamp=timestamp, columns=columns, detail=detail
        )


def compare(topic: str, key: str, expected: Visible, found: Visible) -> list[Difference]:
    """The differences between two complete states, neither of which is changed."""
    comparison = Comparison(topic, key, Visible(expected.head, dict(expected.rows)), found.head, most=maxsize)
    if expected.head is not None and found.head is not None:
        for place, digest in found.rows.items():
            comparison.take_readable(place, digest)
    return comparison.conclude()


def explain(hidden: Hidden, head: Head | None) -> str:
    """The reason why a row is hidden, as text for operators."""
    match hidden:
        case Hidden.NO_HEAD:
            return "the entity has no head"
        case Hidden.DELETED:
            return f"deleted up to {head.delete_to if head else 0}"
        case Hidden.OTHER_INCARNATION:
            return "of another incarnation: its meta_record_id is not the head's record_id"
        case Hidden.WRONG_SEGMENT:
            return f"in another segment than segment_size {head.segment_size if head else 0} puts it"


def _hidden_as(hidden: Hidden | None, head: Head) -> str:
    return "" if hidden is None else f"it is there, but hidden: {explain(hidden, head)}"


def _plain(value: object) -> int | str | None:
    return value if value is None or isinstance(value, int) else str(value)
