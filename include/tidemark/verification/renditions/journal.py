"""Comparison of two renditions of a journal: what a reader gets of every entity, and the pointers.

The same comparison as ``tidemark journal diff``, with every difference matched with the declared rules.
Tables have no times, so both renditions must be at the same position. Without Spark, heads are scanned, and
everything else is read by key, a few hundred entities at a time.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from sys import maxsize
from typing import Any

from tidemark.cassandra.session import connect
from tidemark.cassandra.size import estimated_bytes, ring_tokens
from tidemark.cassandra.token_ranges import TokenRange, cut_ring
from tidemark.journal.comparison import Comparison
from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.journal.head import Head
from tidemark.journal.visible import Visible
from tidemark.journal_tables.reader import FoundTables, JournalReader, segments_to_read
from tidemark.log.model.binding import TopicPartition
from tidemark.pipeline.expect import RowChange
from tidemark.verification.basis import read_basis
from tidemark.verification.journal.scan import JournalScan
from tidemark.verification.renditions.comparison import Compared, Comparing
from tidemark.verification.renditions.difference import RowDifference
from tidemark.verification.renditions.errors import RenditionAhead
from tidemark.verification.renditions.matching import DifferenceTally, RuleMatcher
from tidemark.writers.journal.writer import JournalWriter

ENTITIES_AT_ONCE = 200
"""Entities that are read by key together."""
BYTES_A_PIECE = 64 * 2**20
"""Of heads that are scanned at once; they are read as a stream."""
POINTER = "pointer2"
_CHANGES = {
    DifferenceKind.HEAD_MISSING: RowChange.MISSING,
    DifferenceKind.ROW_MISSING: RowChange.MISSING,
    DifferenceKind.HEAD_EXTRA: RowChange.ADDED,
    DifferenceKind.ROW_EXTRA: RowChange.ADDED,
    DifferenceKind.HEAD_DIFFERS: RowChange.CHANGED,
    DifferenceKind.ROW_DIFFERS: RowChange.CHANGED,
}
Scanned = Mapping[str, AbstractSet[int]]
"""Keys of entities, with the segments in which their heads were found."""
_HEADS = frozenset({DifferenceKind.HEAD_MISSING, DifferenceKind.HEAD_EXTRA, DifferenceKind.HEAD_DIFFERS})


def compare_journals(comparing: Comparing) -> Compared:
    """See ``Compare``."""
    old, new = comparing.old.writer, comparing.new.writer
    if not isinstance(old, JournalWriter) or not isinstance(new, JournalWriter):
        raise TypeError(f"{comparing.name} is no journal")
    bases = [read_basis(writer, comparing.log, comparing.positions)[0] for writer in (old, new)]
    if bases[0].position != bases[1].position:
        place = comparing.pipeline, comparing.name, comparing.new.number, comparing.old.consumer
        raise RenditionAhead(*place, bases[1].position, bases[0].position)
    topics = frozenset().union(*(basis.topics for basis in bases))
    tally = comparing.engine.journals(old, new, topics, comparing.matcher)
    entities = tally.rows
    places = sorted({place for basis in bases for place in basis.ground.starts})
    readers = (JournalReader.open(writer.connection, writer.declared) for writer in (old, new))
    pointers = [reader.read_pointers(places) for reader in readers]
    for difference in compare_pointers(*pointers):
        comparing.matcher.judge(tally, difference)
    return Compared(tally, {"entities": entities, "pointers": len({*pointers[0], *pointers[1]})})


def row_difference(found: Difference) -> RowDifference:
    """A difference between two keyspaces, as rules are matched with it."""
    change = _CHANGES[found.kind]
    row: dict[str, Any] = {"topic": found.topic, "key": found.key}
    if found.seq_nr is not None:
        row["seq_nr"] = found.seq_nr
    row["row"] = "head" if found.kind in _HEADS else "event"
    old, new = dict(row), dict(row)
    if found.kind is DifferenceKind.HEAD_DIFFERS:
        for column in found.columns:
            old[column], new[column] = found.expected, found.found
    elif found.kind is DifferenceKind.HEAD_MISSING:
        old["seq_nr"] = found.expected
    elif found.kind is DifferenceKind.HEAD_EXTRA:
        new["seq_nr"] = found.found
    sides = {
        RowChange.MISSING: (old, None),
        RowChange.ADDED: (None, new),
        RowChange.CHANGED: (old, new),
    }
    columns = found.columns if change is RowChange.CHANGED else ()
    return RowDifference(change, found.where, columns, *sides[change])


def compare_pointers(
    old: Mapping[TopicPartition, int], new: Mapping[TopicPartition, int]
) -> Iterator[RowDifference]:
    """The pointers that differ."""
    for place in sorted({*old, *new}):
        offsets = old.get(place), new.get(place)
        if offsets[0] == offsets[1]:
            continue
        sides = [{"topic": place[0], "partition": place[1], POINTER: offset} for offset in offsets]
        yield RowDifference(RowChange.CHANGED, f"pointer of {place[0]}/{place[1]}", (POINTER,), *sides)


@dataclass(frozen=True)
class EntityComparison:
    """Compares entities that are read by key.

    Attributes:
        old: The tables of the active rendition.
        new: Those of the rendition that is verified.
        matcher: Which differences are meant.
    """

    old: FoundTables
    new: FoundTables
    matcher: RuleMatcher

    def compare(self, topic: str, scanned: Scanned, *, only_new: bool = False) -> DifferenceTally:
        """The differences of some entities whose heads were scanned.

        ``only_new``: in the new rendition; then only those that the active one does not have. An entity may
        have a head in two segments, of which a reader uses one: it is compared where that was scanned.
        """
        tally, keys = DifferenceTally(), list(scanned)
        old_heads, new_heads = self.old.read_heads(topic, keys), self.new.read_heads(topic, keys)
        if only_new:
            used = {key: head for key, head in new_heads.items() if key not in old_heads}
        else:
            used = dict(old_heads)
        chosen = [key for key, head in used.items() if head.segment in scanned[key]]
        expected = {key: Visible(old_heads.get(key)) for key in chosen}
        for key, row in self.old.read_rows(topic, _segments(chosen, old_heads)):
            expected[key].take(row)
        comparisons = {
            key: Comparison(topic, key, expected[key], new_heads.get(key), maxsize) for key in chosen
        }
        for key, row in self.new.read_rows(topic, _segments(chosen, old_heads, new_heads)):
            comparisons[key].take(row)
        for comparison in comparisons.values():
            note_entity(tally, comparison.conclude(), self.matcher)
        return tally


def note_entity(tally: DifferenceTally, differences: Iterable[Difference], matcher: RuleMatcher) -> None:
    """Count an entity and its differences."""
    tally.rows += 1
    for difference in differences:
        matcher.judge(tally, row_difference(difference))


@dataclass(frozen=True)
class KeyspaceComparison:
    """Compares the entities whose heads are in a range of the ring. Picklable.

    Attributes:
        old: The active rendition.
        new: The rendition that is verified.
        topics: The topics of both.
        matcher: Which differences are meant.
    """

    old: JournalWriter
    new: JournalWriter
    topics: frozenset[str]
    matcher: RuleMatcher

    def pieces(self) -> list[TokenRange]:
        """The ring, cut by the size of the larger one of both tables of heads."""
        session = connect(self.old.connection)
        tables = (
            (writer.declared.keyspace, writer.declared.tables.metajournal) for writer in (self.old, self.new)
        )
        size = max(estimated_bytes(session, *table) for table in tables)
        return cut_ring(ring_tokens(session), max(size // BYTES_A_PIECE, 1))

    def compare(self, piece: TokenRange) -> DifferenceTally:
        """The differences of these entities. An entity is compared where the active rendition has its head;
        one that only the other has, where that has it."""
        old, new = (JournalReader.open(one.connection, one.declared) for one in (self.old, self.new))
        entities, tally = EntityComparison(old, new, self.matcher), DifferenceTally()
        for writer, only_new in ((self.old, False), (self.new, True)):
            heads = JournalScan(writer.connection, writer.declared, self.topics).heads([piece])
            for topic, scanned in _batches(heads):
                tally.add(entities.compare(topic, scanned, only_new=only_new))
        return tally


def _batches(heads: Iterable[tuple[str, str, Head]]) -> Iterator[tuple[str, Scanned]]:
    """Scanned heads in groups of one topic."""
    waiting: dict[str, dict[str, set[int]]] = {}
    for topic, key, head in heads:
        keys = waiting.setdefault(topic, {})
        keys.setdefault(key, set()).add(head.segment)
        if len(keys) >= ENTITIES_AT_ONCE:
            yield topic, waiting.pop(topic)
    yield from waiting.items()


def _segments(keys: Iterable[str], *heads: Mapping[str, Head]) -> Iterator[tuple[str, int]]:
    """The segments in which rows of these entities can be."""
    for key in keys:
        found = {segment for one in heads for segment in segments_to_read((), one.get(key))}
        yield from ((key, segment) for segment in sorted(found))
