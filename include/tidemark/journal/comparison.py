"""Two visible states of one entity, compared: by what a reader can tell, and row by row as they are found.

What is expected is given whole, as digests; what is found passes by, so that nothing of it has to be kept.
The value of ``record_id``, and a head's times, origin and offset, are not compared: no reader can tell them.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from sys import maxsize

from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.journal.digest import changed_columns, source_of
from tidemark.journal.head import Head
from tidemark.journal.visible import FoundRow, Hidden, Visible, place_of, read_place, why_hidden

MOST = 20
"""Differences of one entity that are told; more are counted."""
_FIELDS = ("seq_nr", "delete_to", "segment_size", "expire_after")


class Comparison:
    """One entity: what it should be against what is found."""

    def __init__(self, topic: str, key: str, expected: Visible, found: Head | None, most: int = MOST) -> None:
        self._topic, self._key, self._expected, self._found, self._most = topic, key, expected, found, most
        self._left = expected.rows
        self._told: list[Difference] = []
        self._hidden: dict[bytes, Hidden] = {}
        self._rows = 0
        self.total = 0
        """How many differences there are, told or not."""

    def take(self, row: FoundRow) -> None:
        """Compare the next row; none may come twice."""
        self._rows += 1
        if self._expected.head is None or self._found is None:
            return
        place = place_of(row.seq_nr, row.timestamp)
        if reason := why_hidden(self._found, row):
            if place in self._left:
                self._hidden[place] = reason
        else:
            self.take_readable(place, row.digest)

    def take_readable(self, place: bytes, digest: bytes) -> None:
        """Compare the next row of those that a reader gets."""
        wanted = self._left.pop(place, None)
        if wanted is None:
            offset = f"offset {source_of(digest)[1]}"
            self._tell(lambda: self._row(DifferenceKind.ROW_EXTRA, place, detail=offset))
        elif changed := changed_columns(wanted, digest):
            self._tell(lambda: self._row(DifferenceKind.ROW_DIFFERS, place, columns=changed))

    def conclude(self) -> list[Difference]:
        """What is different, heads first; the expected rows are used up."""
        expected, found = self._expected.head, self._found
        if expected is None or found is None:
            heads = list(self._existence(expected, found))
            self.total = len(heads)
            return heads
        heads = list(self._of_heads(expected, found))
        self.total += len(heads) + len(self._left)
        missing = (
            self._row(DifferenceKind.ROW_MISSING, place, detail=_hidden_as(self._hidden.get(place), found))
            for place in sorted(self._left)
        )
        return [*heads, *self._told, *islice(missing, max(self._most - len(self._told), 0))]

    def _existence(self, expected: Head | None, found: Head | None) -> Iterator[Difference]:
        if expected is not None:
            rows = f"{self._rows} rows of it are there, and nobody can read them" if self._rows else ""
            kind = DifferenceKind.HEAD_MISSING
            yield Difference(kind, self._topic, self._key, expected=expected.seq_nr, detail=rows)
        elif found is not None:
            rows = f"with {self._rows} rows" if self._rows else "without rows"
            kind = DifferenceKind.HEAD_EXTRA
            yield Difference(kind, self._topic, self._key, found=found.seq_nr, detail=rows)

    def _of_heads(self, expected: Head, found: Head) -> Iterator[Difference]:
        # Who began the incarnation counted its days: another replicator did so by its own clock.
        fields = (*_FIELDS, "expire_on") if expected.record_id == found.record_id else _FIELDS
        is_old = found.partition == expected.partition and found.offset < expected.offset
        age = f"the head is too old: offset {found.offset}, not {expected.offset}" if is_old else ""
        for name in fields:
            wanted, has = getattr(expected, name), getattr(found, name)
            if wanted != has and not (name == "delete_to" and not wanted and not has):
                yield Difference(
                    DifferenceKind.HEAD_DIFFERS,
                    self._topic,
                    self._key,
                    columns=(name,),
                    expected=_plain(wanted),
                    found=_plain(has),
                    detail=age,
                )

    def _tell(self, make: Callable[[], Difference]) -> None:
        self.total += 1
        if len(self._told) < self._most:
            self._told.append(make())

    def _row(
        self, kind: DifferenceKind, place: bytes, columns: tuple[str, ...] = (), detail: str = ""
    ) -> Difference:
        seq_nr, timestamp = read_place(place)
        return Difference(
            kind, self._topic, self._key, seq_nr=seq_nr, timestamp=timestamp, columns=columns, detail=detail
        )


def compare(topic: str, key: str, expected: Visible, found: Visible) -> list[Difference]:
    """What is different between two states that are known whole; both are left as they are."""
    comparison = Comparison(topic, key, Visible(expected.head, dict(expected.rows)), found.head, most=maxsize)
    if expected.head is not None and found.head is not None:
        for place, digest in found.rows.items():
            comparison.take_readable(place, digest)
    return comparison.conclude()


def explain(hidden: Hidden, head: Head | None) -> str:
    """Why a row is hidden, for people."""
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
