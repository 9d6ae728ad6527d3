"""Comparison of two renditions in Spark's tasks: pieces of any kind, and whole journals with one shuffle."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from sys import maxsize
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from tidemark.cassandra.session import connect
from tidemark.cassandra.size import estimated_bytes
from tidemark.spark.jobs.diff import compare_both, read_both
from tidemark.spark.jobs.evidence import bring_together
from tidemark.spark.jobs.tasks import call_in_tasks, task_count
from tidemark.verification.renditions.comparison import Show, chunks_of, progress
from tidemark.verification.renditions.here import silent
from tidemark.verification.renditions.journal import note_entity
from tidemark.verification.renditions.matching import DifferenceTally, RuleMatcher
from tidemark.writers.journal.writer import JournalWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")

ROUNDS = 4
"""How many times the tasks of all cores are waited for between two lines of progress."""
BYTES_A_PARTITION = 32 * 2**20
"""Of rows that are grouped by entity in one task."""


@dataclass(frozen=True)
class SparkEngine:
    """``Engine`` on Spark's tasks.

    Attributes:
        spark: The session.
        show: Shows the progress.
    """

    spark: "SparkSession"
    show: Show = silent

    def run(self, what: str, work: Callable[[Piece], Answer], pieces: Sequence[Piece]) -> Iterator[Answer]:
        """See ``Engine``."""
        tell, done = progress(what, len(pieces), self.show), 0
        for group in chunks_of(pieces, ROUNDS * task_count(self.spark)):
            yield from call_in_tasks(self.spark, work, group)
            done += len(group)
            tell(done)

    def journals(
        self, old: JournalWriter, new: JournalWriter, topics: frozenset[str], matcher: RuleMatcher
    ) -> DifferenceTally:
        """See ``Engine``: both keyspaces are scanned, and one shuffle groups them by entity."""
        evidence = read_both(self.spark, old, new, topics)
        return count_differences(evidence, self._partitions(old, new), matcher)

    def _partitions(self, *writers: JournalWriter) -> int:
        session = connect(writers[0].connection)
        size = sum(
            estimated_bytes(session, one.declared.keyspace, one.declared.tables.journal) for one in writers
        )
        return max(size // BYTES_A_PARTITION, task_count(self.spark))


def count_differences(evidence: "DataFrame", partitions: int, matcher: RuleMatcher) -> DifferenceTally:
    """Group the heads and rows of both keyspaces by entity, and match what differs with the rules."""

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = DifferenceTally()
        for verdict in compare_both(batches, maxsize):
            note_entity(tally, verdict.differences, matcher)
        yield pa.RecordBatch.from_pydict({"tally": pa.array([pickle.dumps(tally)], pa.binary())})

    found = bring_together(evidence, partitions).mapInArrow(judge, "tally binary").collect()
    return DifferenceTally.sum(pickle.loads(bytes(row.tally)) for row in found)
