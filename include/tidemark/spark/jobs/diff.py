"""Comparison of two keyspaces with Spark: both are scanned whole, and one shuffle groups them by entity."""

import time
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.journal.comparison import MOST, Comparison
from tidemark.journal.head import Head
from tidemark.journal.visible import Visible, choose_head
from tidemark.journal_tables.reader import JournalReader
from tidemark.spark.jobs.evidence import EvidenceKind, by_entity, to_head, to_row
from tidemark.spark.jobs.evidence_sources import read_table
from tidemark.spark.jobs.verify import count_verdicts
from tidemark.verification.basis import Basis, read_basis
from tidemark.verification.diff import Diff, Side
from tidemark.verification.journal.judge import EntityVerdict
from tidemark.verification.tally import MOST_TOLD, VerdictTally
from tidemark.writers.journal.writer import JournalWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def diff_with_spark(
    spark: "SparkSession",
    old: JournalWriter,
    new: JournalWriter,
    log: PublishedLog,
    positions: Positions,
    most: int = MOST_TOLD,
) -> Diff:
    """The differences that a reader would see between the keyspaces of two writers. Read-only."""
    began = time.monotonic()
    bases = {writer.name: read_basis(writer, log, positions)[0] for writer in (old, new)}
    topics = frozenset().union(*(basis.topics for basis in bases.values()))
    together = read_both(spark, old, new, topics)
    tally = count_verdicts(
        spark, together, lambda batches: judge_both(batches, most), log.manifest.count, most
    )
    moved = [name for name, basis in bases.items() if _has_moved(positions, basis)]
    places = sorted({place for basis in bases.values() for place in basis.ground.starts})
    return Diff(
        old.pipeline,
        _side(old, bases[old.name], positions, places),
        _side(new, bases[new.name], positions, places),
        tally.topics,
        tuple(tally.differences),
        tally.total,
        tuple(moved),
        time.monotonic() - began,
    )


def judge_both(batches: Iterable[pa.RecordBatch], most: int) -> VerdictTally:
    """Compare entities, given the heads and rows of both keyspaces."""
    tally = VerdictTally(most)
    for verdict in compare_both(batches):
        tally.note(verdict)
    return tally


def compare_both(batches: Iterable[pa.RecordBatch], most: int = MOST) -> Iterator[EntityVerdict]:
    """What differs between the keyspaces of each entity that has a head in one of them.

    ``most`` limits how many differences of an entity are given; all are counted.
    """
    for (topic, key), records in by_entity(batches):
        heads: dict[int, dict[int, Head]] = {EvidenceKind.HEAD: {}, EvidenceKind.OTHER_HEAD: {}}
        expected, comparison = Visible(), None
        for kind, body in records:
            if kind in heads:
                head = to_head(body)
                heads[kind][head.segment] = head
                expected.head = choose_head(key, heads[EvidenceKind.HEAD])
            elif kind == EvidenceKind.ROW:
                expected.take(to_row(body))
            else:
                comparison = comparison or _comparison(topic, key, expected, heads, most)
                comparison.take(to_row(body))
        comparison = comparison or _comparison(topic, key, expected, heads, most)
        differences = tuple(comparison.conclude())
        if any(heads.values()):
            yield EntityVerdict(topic, key, differences, comparison.total)


def read_both(
    spark: "SparkSession", old: JournalWriter, new: JournalWriter, topics: frozenset[str]
) -> "DataFrame":
    """The heads and rows of both keyspaces, as evidence about their entities."""
    wanted = (
        (old, EvidenceKind.HEAD),
        (new, EvidenceKind.OTHER_HEAD),
        (old, EvidenceKind.ROW),
        (new, EvidenceKind.OTHER_ROW),
    )
    tables = (read_table(spark, writer.connection, writer.declared, topics, kind) for writer, kind in wanted)
    return reduce(lambda one, other: one.union(other), tables)


def _comparison(
    topic: str, key: str, expected: Visible, heads: dict[int, dict[int, Head]], most: int
) -> Comparison:
    return Comparison(topic, key, expected, choose_head(key, heads[EvidenceKind.OTHER_HEAD]), most)


def _has_moved(positions: Positions, basis: Basis) -> bool:
    state = positions.load(basis.writer)
    return state is None or state.version != basis.version


def _side(writer: JournalWriter, basis: Basis, positions: Positions, places: list[tuple[str, int]]) -> Side:
    state = positions.load(writer.name)
    gate = state.gate.reason if state and state.gate else None
    tables = JournalReader.open(writer.connection, writer.declared)
    return Side(basis.keyspace, writer.name, basis.position, gate, tables.read_pointers(places))
