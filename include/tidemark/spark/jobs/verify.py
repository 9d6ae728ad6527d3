"""Verification with Spark: one shuffle groups the log's messages and the tables' rows by entity.

A verification of everything scans the tables. One of chosen entities reads them from the tables by key, once
their messages are grouped. Counts and the first differences return to the driver, never a payload.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.journal.head import Head
from tidemark.journal.visible import choose_head
from tidemark.journal_tables.reader import FoundTables, JournalReader
from tidemark.spark.jobs.evidence import (
    Evidence,
    EvidenceKind,
    bring_together,
    by_entity,
    to_head,
    to_message,
    to_row,
)
from tidemark.spark.jobs.evidence_sources import gather, hash_entities, read_log, read_table
from tidemark.spark.session_facts import core_count
from tidemark.verification.basis import Basis
from tidemark.verification.journal.entities import Case, judge_found
from tidemark.verification.journal.judge import EntityJudge
from tidemark.verification.journal.messages import files_of
from tidemark.verification.result import Verification
from tidemark.verification.selection import EVERYTHING, Choice, Entity, EntitySelection, Everything, Listed
from tidemark.verification.tally import MOST_TOLD, VerdictTally
from tidemark.writers.journal.writer import JournalWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS_A_PARTITION = 50_000
ENTITIES_AT_ONCE = 200
"""Entities that are read by key together, at most."""
MESSAGES_AT_ONCE = 100_000
"""Messages in memory from which on their entities are read, even if there are fewer entities."""
MOST_PARTITIONS = 2_000

Judge = Callable[[Iterable[pa.RecordBatch]], VerdictTally]


def verify_with_spark(
    spark: "SparkSession",
    writer: JournalWriter,
    log: PublishedLog,
    positions: Positions,
    selection: EntitySelection = EVERYTHING,
    most: int = MOST_TOLD,
) -> Verification:
    """Verify the tables of a writer against the log up to its position. Read-only.

    ``selection``: the entities to verify. ``most``: the number of differences in the result, at most.
    """
    began = time.monotonic()
    case, basis = Case.of(writer, log, positions).begin()
    log = case.log
    topics = frozenset(basis.require_topics(selection.topics))
    files = files_of(log.manifest, basis, selection.topics)
    choice = _choose(spark, log, basis, selection)
    evidence = read_log(spark, log.folder, files, choice, basis.horizon)
    if selection.is_everything:
        for kind in (EvidenceKind.HEAD, EvidenceKind.ROW):
            evidence = evidence.union(read_table(spark, writer.connection, writer.declared, topics, kind))
        judge = judge_everything(basis, most)
    else:
        evidence = evidence.union(_named(spark, selection.entities))
        judge = judge_chosen(basis, writer, most)
    records = sum(file.count for file in files)
    return case.conclude(basis, count_verdicts(spark, evidence, judge, records, most), began)


def count_verdicts(
    spark: "SparkSession", evidence: "DataFrame", judge: Judge, records: int, most: int
) -> VerdictTally:
    """Group the evidence by entity and judge it, partition by partition. ``records``: its expected size."""
    partitions = min(max(-(-records // RECORDS_A_PARTITION), core_count(spark)), MOST_PARTITIONS)

    def judge_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = msgspec.json.encode(judge(batches))
        yield pa.RecordBatch.from_pydict({"tally": pa.array([tally], pa.binary())})

    together = bring_together(evidence, partitions)
    found = together.mapInArrow(judge_partition, "tally binary").collect()
    return VerdictTally.sum((msgspec.json.decode(bytes(row.tally), type=VerdictTally) for row in found), most)


def judge_everything(basis: Basis, most: int) -> Judge:
    """A function that judges entities from scanned heads and rows."""

    def judge(batches: Iterable[pa.RecordBatch]) -> VerdictTally:
        tally = VerdictTally(most)
        for (topic, key), records in by_entity(batches):
            one, heads = EntityJudge(basis, topic, key), dict[int, Head]()
            for kind, body in records:
                if kind == EvidenceKind.HEAD:
                    head = to_head(body)
                    heads[head.segment] = head
                    one.hear_head(choose_head(key, heads))
                elif kind == EvidenceKind.MESSAGE:
                    one.hear_message(to_message(body))
                else:
                    one.hear_row(to_row(body))
            tally.note(one.conclude())
        return tally

    return judge


def judge_chosen(basis: Basis, writer: JournalWriter, most: int) -> Judge:
    """A function that reads entities from the tables by key, several at a time, and judges them."""

    def judge(batches: Iterable[pa.RecordBatch]) -> VerdictTally:
        tally, tables = VerdictTally(most), JournalReader.open(writer.connection, writer.declared)
        waiting: dict[str, dict[str, EntityJudge]] = {}
        entities = messages = 0
        for (topic, key), records in by_entity(batches):
            one = waiting.setdefault(topic, {})[key] = EntityJudge(basis, topic, key)
            for kind, body in records:
                if kind == EvidenceKind.MESSAGE:
                    one.hear_message(to_message(body))
                    messages += 1
            entities += 1
            if entities >= ENTITIES_AT_ONCE or messages >= MESSAGES_AT_ONCE:
                _read_by_name(waiting, tables, tally)
                waiting, entities, messages = {}, 0, 0
        _read_by_name(waiting, tables, tally)
        return tally

    return judge


def _read_by_name(
    waiting: Mapping[str, Mapping[str, EntityJudge]], tables: FoundTables, tally: VerdictTally
) -> None:
    for topic, judges in waiting.items():
        for verdict in judge_found(topic, judges, tables):
            tally.note(verdict)


def _choose(spark: "SparkSession", log: PublishedLog, basis: Basis, selection: EntitySelection) -> Choice:
    if selection.entities:
        return Listed(frozenset(selection.entities))
    if selection.is_everything:
        return Everything()
    files = [file for file in files_of(log.manifest, basis, selection.topics) if selection.may_have(file)]
    found = hash_entities(spark, log.folder, files, basis.position, selection)
    return found if selection.sample is None else found.sample(selection.sample)


def _named(spark: "SparkSession", entities: Iterable[Entity]) -> "DataFrame":
    """Evidence without content, so that an entity is judged even if the log has no message of it."""
    named = [Evidence(topic, key, EvidenceKind.NAMED, 0, 0, b"") for topic, key in entities]
    return gather(spark, [named] if named else [], lambda piece: piece)
