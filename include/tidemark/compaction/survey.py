"""The first pass over a file: gathers the facts about its messages, with bounded memory.

Reads nothing above the watermark. A journal's messages are decoded here once; their reach is stored, one
number per message, so that the filter does not decode them again.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.compaction.policies.facts_table import merge_table
from tidemark.compaction.policies.journal_batches import COLUMNS, batch_facts
from tidemark.compaction.policies.keyed_facts import keyed_facts_of, merge_keyed
from tidemark.compaction.policies.policy import LastOfKey
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.compaction.policies.valid_operations import (
    OPERATION_COLUMNS,
    merge_operations,
    operations_of_batch,
)
from tidemark.compaction.staging import Workplace
from tidemark.log.model.manifest import LogFile

MOST_ROWS = 50_000
"""How many rows of facts are kept in memory before those of the same key are merged, or handed on."""


def survey_journal(place: Workplace, rules: CompactionRules, files: Sequence[LogFile]) -> Iterator[pa.Table]:
    """The facts of the entities in files of one partition, in id order, as a few tables.

    Stores the reach of the messages of every file.
    """

    def read() -> Iterator[pa.Table]:
        for file in files:
            reaches = [np.empty(0, np.int64)]
            for batch in place.eligible(file, rules.watermark, COLUMNS):
                found = batch_facts(file.topic, file.partition, batch, rules)
                reaches.append(found.reach)
                yield found.facts
            place.note_reach(file, np.concatenate(reaches))

    return _merged(read(), merge_table)


def survey_keyed(
    place: Workplace, rules: CompactionRules, policy: LastOfKey, numbered: Sequence[tuple[int, LogFile]]
) -> Iterator[pa.Table]:
    """The facts of the keys in files, each given with its number, as a few tables."""

    def read() -> Iterator[pa.Table]:
        for number, file in numbered:
            has_tombstones = policy.drops_tombstones and place.may_lack_values(file)
            wanted = {"id", "t", "namespace", *policy.columns, *(["value"] if has_tombstones else [])}
            for batch in place.eligible(file, rules.watermark, sorted(wanted)):
                messages = pa.Table.from_batches([batch])
                tombstones = pc.is_null(messages["value"]) if has_tombstones else None
                yield keyed_facts_of(messages, number, rules.pins, policy.keys(messages), tombstones)

    return _merged(read(), merge_keyed)


def survey_operations(
    place: Workplace, rules: CompactionRules, numbered: Sequence[tuple[int, LogFile]]
) -> Iterator[pa.Table]:
    """The facts of the objects in files, each given with its number, as a few tables.

    Stores which messages of every file may be dropped at all.
    """

    def read() -> Iterator[pa.Table]:
        for number, file in numbered:
            fates = [np.empty(0, np.int64)]
            for batch in place.eligible(file, rules.watermark, OPERATION_COLUMNS):
                found = operations_of_batch(file, number, batch, rules)
                fates.append(found.fates)
                yield found.facts
            place.note_reach(file, np.concatenate(fates))

    return _merged(read(), merge_operations)


def _merged(tables: Iterator[pa.Table], merge: Callable[[pa.Table], pa.Table]) -> Iterator[pa.Table]:
    """The same facts in fewer rows and tables; each returned table has one row per key."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(one.num_rows for one in waiting) >= MOST_ROWS:
            waiting = [merge(pa.concat_tables(waiting))]
            if waiting[0].num_rows >= MOST_ROWS // 2:
                yield waiting.pop()
    if waiting:
        yield merge(pa.concat_tables(waiting))
