"""The two passes of a compaction with Spark. The rules are in ``compaction/``; this module distributes them.

The first pass reads every file once and collects facts per key. One shuffle groups the facts by key, where
they are judged; another sends the verdicts to the files they concern. A few numbers per key are shuffled,
never a payload. The second pass writes each new file in one task, without a shuffle.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import msgpack

from tidemark.compaction.census import Census, JournalCensus
from tidemark.compaction.drops import Dropped, drop_journal
from tidemark.compaction.engine import ChoosingSteps, Surveyed, outputs_by_group
from tidemark.compaction.plan import CompactionPlan, FileGroup
from tidemark.compaction.policies.facts_table import FACTS, judge_table
from tidemark.compaction.policies.policy import JournalActions, policy_named
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.compaction.policies.verdicts import VERDICTS, Verdicts
from tidemark.compaction.rewrite import differing_ids, rewrite_group
from tidemark.compaction.staging import Workplace
from tidemark.compaction.survey import survey_journal
from tidemark.log.model.manifest import LogFile
from tidemark.spark.jobs.tasks import call_in_tasks, interrupt, run_tasks, tagged, task_count
from tidemark.spark.session_facts import core_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_A_CORE = 3
"""More than one, because groups of files differ in size."""
MESSAGES_A_PARTITION = 250_000
"""Messages whose facts one task judges; fewer where keys repeat."""
MOST_PARTITIONS = 2_000
MESSAGES_A_GROUP = 250_000
"""Messages that one task reads, unless a single file has more: it holds the verdicts about their keys."""
ROWS_A_BATCH = 10_000
ROWS_AT_ONCE = 50_000
"""Rows of facts that are judged together, approximately."""
CENSUS = -1
"""The group number of rows that hold a census."""

_GATHERED = pa.schema([pa.field("group", pa.int32(), nullable=False), *FACTS])
_JUDGED = pa.schema([pa.field("group", pa.int32(), nullable=False), *VERDICTS, pa.field("body", pa.binary())])
_CHOSEN = pa.schema(
    [pa.field("group", pa.int32(), nullable=False), pa.field("id", pa.int64()), pa.field("body", pa.binary())]
)
_FOUND = pa.schema([pa.field("is_census", pa.bool_()), pa.field("body", pa.binary())])

_Batches = Iterable[pa.RecordBatch]


class SparkEngine:
    """An ``Engine`` on Spark. The session is started when it is first needed."""

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session

    def survey(self, place: Workplace, rules: CompactionRules, files: Sequence[LogFile]) -> Surveyed:
        """See ``Engine``."""
        if not files:
            return Surveyed(Census(), ())
        policy = policy_named(rules.policy)
        with self._tagged(place) as spark:
            if isinstance(policy, JournalActions):
                found = _survey_journal(spark, place, rules, files).collect()
            else:
                found = _survey_choosing(spark, ChoosingSteps(place, rules, policy), files).collect()
        census, drops = [], []
        for row in found:
            if row.is_census:
                census.append(msgpack.decode(bytes(row.body), type=Census))
            else:
                drops.append(msgpack.decode(bytes(row.body), type=Dropped))
        return Surveyed(Census.sum(census), tuple(sorted(drops, key=lambda one: one.path)))

    def rewrite(self, place: Workplace, plan: CompactionPlan) -> list[LogFile]:
        """See ``Engine``."""
        with self._tagged(place) as spark:
            written = call_in_tasks(spark, _Rewriting(place, plan.rules), plan.groups)
        return sorted((file for file in written if file), key=lambda one: (one.place, one.first_id))

    def count_differences(self, place: Workplace, plan: CompactionPlan, outputs: Sequence[LogFile]) -> int:
        """See ``Engine``."""
        by_group = outputs_by_group(plan, outputs)
        pairs = [(group, by_group.get(number)) for number, group in enumerate(plan.groups)]
        if not pairs:
            return 0
        with self._tagged(place) as spark:
            return sum(call_in_tasks(spark, _Comparing(place, plan.rules), pairs))

    @contextmanager
    def _tagged(self, place: Workplace) -> "Iterator[SparkSession]":
        """The session, without what an earlier attempt at a compaction of the log left running in it.

        Only the holder of the log's lease gets here. What is left over does no harm: the files of a plan
        have the same names and bytes whichever attempt writes them.
        """
        spark, tag = self._session(), f"tidemark/{place.pipeline}/compaction{place.look}"
        interrupt(spark, tag)
        with tagged(spark, tag):
            yield spark


@dataclass(frozen=True)
class _Rewriting:
    place: Workplace
    rules: CompactionRules

    def __call__(self, group: FileGroup) -> LogFile | None:
        return rewrite_group(self.place, self.rules, group)


@dataclass(frozen=True)
class _Comparing:
    place: Workplace
    rules: CompactionRules

    def __call__(self, pair: tuple[FileGroup, LogFile | None]) -> int:
        return differing_ids(self.place, self.rules, *pair)


def _survey_journal(
    spark: "SparkSession", place: Workplace, rules: CompactionRules, files: Sequence[LogFile]
) -> "DataFrame":
    groups = _groups(files, task_count(spark, TASKS_A_CORE))

    def read(number: int) -> Iterator[pa.RecordBatch]:
        for facts in survey_journal(place, rules, groups[number]):
            group = pa.repeat(pa.scalar(number, pa.int32()), facts.num_rows)
            table = pa.Table.from_arrays([group, *facts.columns], schema=_GATHERED)
            yield from table.to_batches(max_chunksize=ROWS_A_BATCH)

    def judge(batches: _Batches) -> Iterator[pa.RecordBatch]:
        census = JournalCensus()
        for table in _whole_entities(batches):
            yield from _judged(table, census)
        yield _census(census.conclude(), _JUDGED)

    def drop(number: int, judged: pa.Table) -> Iterator[Dropped]:
        verdicts = Verdicts.of_table(judged.select(VERDICTS.names))
        return (drop_journal(place, rules, file, verdicts) for file in groups[number])

    facts = run_tasks(spark, len(groups), read, _GATHERED)
    together = facts.repartition(_partitions(spark, files), "topic", "key")
    judged = together.sortWithinPartitions("topic", "key").mapInArrow(judge, _spark(_JUDGED))
    return _drop(spark, judged, len(groups), drop, _JUDGED)


def _whole_entities(batches: _Batches) -> Iterator[pa.Table]:
    """The same rows as tables, no entity in two of them. The rows must be sorted by entity."""
    waiting = _GATHERED.empty_table()
    for batch in batches:
        own = batch.select(_GATHERED.names).cast(_GATHERED)
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([own])])
        if waiting.num_rows >= ROWS_AT_ONCE:
            is_last = pc.and_(*(pc.equal(waiting[name], waiting[name][-1]) for name in ("topic", "key")))
            complete = waiting.num_rows - is_last.true_count
            yield waiting.slice(0, complete)
            waiting = waiting.slice(complete)
    yield waiting


def _judged(table: pa.Table, census: JournalCensus) -> Iterator[pa.RecordBatch]:
    """The verdicts about the entities of a table, repeated for each group with messages of the entity."""
    judged = judge_table(table, census)
    has_verdict = judged.of_row >= 0
    groups, count = table["group"].to_numpy().astype(np.int64), max(judged.verdicts.num_rows, 1)
    group, verdict = np.divmod(np.unique(groups[has_verdict] * count + judged.of_row[has_verdict]), count)
    verdicts = judged.verdicts.take(verdict)
    columns = [pa.array(group, pa.int32()), *verdicts.columns, pa.nulls(len(group), pa.binary())]
    yield from pa.Table.from_arrays(columns, schema=_JUDGED).to_batches(max_chunksize=ROWS_A_BATCH)


def _survey_choosing(spark: "SparkSession", steps: ChoosingSteps, files: Sequence[LogFile]) -> "DataFrame":
    numbered, schema = list(enumerate(files)), steps.schema

    def read(number: int) -> Iterator[pa.RecordBatch]:
        for facts in steps.survey([numbered[number]]):
            yield from facts.to_batches(max_chunksize=ROWS_A_BATCH)

    def judge(batches: _Batches) -> Iterator[pa.RecordBatch]:
        facts = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema)
        census, kept = steps.choose(facts)
        columns = [kept["file"], kept["id"], pa.nulls(kept.num_rows, pa.binary())]
        yield from pa.Table.from_arrays(columns, schema=_CHOSEN).to_batches(max_chunksize=ROWS_A_BATCH)
        yield _census(census, _CHOSEN)

    def drop(number: int, kept: pa.Table) -> Iterator[Dropped]:
        yield steps.drop(files[number], kept["id"].to_numpy())

    facts = run_tasks(spark, len(files), read, schema)
    together = facts.repartition(_partitions(spark, files), "namespace", "key")
    judged = together.mapInArrow(judge, _spark(_CHOSEN))
    return _drop(spark, judged, len(files), drop, _CHOSEN)


def _drop(
    spark: "SparkSession",
    judged: "DataFrame",
    groups: int,
    drop: Callable[[int, pa.Table], Iterator[Dropped]],
    schema: pa.Schema,
) -> "DataFrame":
    """Send the verdicts to the groups of files they concern, and filter the files.

    Every group gets an empty row, so that files without a verdict are filtered too.
    """
    verdict = schema.names[1]

    def empty_row(number: int) -> Iterator[pa.RecordBatch]:
        row = {name: pa.array([None], schema.field(name).type) for name in schema.names}
        row["group"] = pa.array([number], pa.int32())
        yield pa.RecordBatch.from_pydict(row, schema=schema)

    def filter_files(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for number, table in _by_group(batches, schema):
            if number == CENSUS:
                bodies = table["body"].to_pylist()
                yield _found([True] * len(bodies), bodies)
            else:
                verdicts = table.filter(pc.is_valid(table[verdict]))
                bodies = [msgpack.encode(one) for one in drop(number, verdicts)]
                yield _found([False] * len(bodies), bodies)

    all_groups = run_tasks(spark, groups, empty_row, schema)
    dealt = judged.union(all_groups).repartition(min(groups + 1, MOST_PARTITIONS), "group")
    return dealt.sortWithinPartitions("group").mapInArrow(filter_files, _spark(_FOUND))


def _by_group(batches: _Batches, schema: pa.Schema) -> Iterator[tuple[int, pa.Table]]:
    """All rows of each group as one table. The rows must be sorted by group."""
    waiting: list[pa.RecordBatch] = []
    current: int | None = None
    for batch in batches:
        for number in batch["group"].unique().to_pylist():
            if waiting and number != current:
                yield current or 0, pa.Table.from_batches(waiting, schema)
                waiting = []
            current = number
            own = batch.filter(pc.equal(batch["group"], number))
            waiting.append(own.select(schema.names).cast(schema))
    if waiting:
        yield current or 0, pa.Table.from_batches(waiting, schema)


def _groups(files: Sequence[LogFile], wanted: int) -> list[list[LogFile]]:
    """Groups of neighbouring files of one partition: about ``wanted`` groups of similar size, or more."""
    share = min(max(sum(file.count for file in files) // wanted, 1), MESSAGES_A_GROUP)
    in_order = sorted(files, key=lambda file: (file.place, file.first_id))
    groups: list[list[LogFile]] = []
    for _, own in groupby(in_order, key=lambda file: file.place):
        size = share
        for file in own:
            if size + file.count > share:
                groups.append([])
                size = 0
            groups[-1].append(file)
            size += file.count
    return groups


def _partitions(spark: "SparkSession", files: Sequence[LogFile]) -> int:
    messages = sum(file.count for file in files)
    return min(max(-(-messages // MESSAGES_A_PARTITION), core_count(spark)), MOST_PARTITIONS)


def _census(census: Census, schema: pa.Schema) -> pa.RecordBatch:
    row = {name: pa.array([None], schema.field(name).type) for name in schema.names}
    row["group"] = pa.array([CENSUS], pa.int32())
    row["body"] = pa.array([msgspec.msgpack.encode(census)], pa.binary())
    return pa.RecordBatch.from_pydict(row, schema=schema)


def _found(is_census: list[bool], bodies: list[bytes]) -> pa.RecordBatch:
    columns = [pa.array(is_census, pa.bool_()), pa.array(bodies, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_FOUND)


def _spark(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
