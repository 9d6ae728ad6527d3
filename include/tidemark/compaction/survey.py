"""The first pass over a file: the facts about its messages, a bounded number of them in memory.

Looks at nothing above the watermark. What a journal's messages are is found out here once and noted in a
sidecar of the file, a number a message, so that the filter does not have to understand them again.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.compaction.policies.facts_table import merge_table
from tidemark.compaction.policies.journal_batches import COLUMNS, look_at
from tidemark.compaction.policies.keyed_facts import keyed_facts_of, merge_keyed
from tidemark.compaction.policies.policy import LastOfKey
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.compaction.staging import Workplace
from tidemark.log.model.manifest import LogFile

MOST_ROWS = 50_000
"""With more in memory, facts of the same key become one, or are given away and gathered anew."""


def survey_journal(place: Workplace, rules: CompactionRules, files: Sequence[LogFile]) -> Iterator[pa.Table]:
    """The facts of the entities in some files of one partition, in id order: a few tables; notes the
    sidecars."""

    def look() -> Iterator[pa.Table]:
        for file in files:
            reaches = [np.empty(0, np.int64)]
            for batch in place.eligible(file, rules.watermark, COLUMNS):
                looked = look_at(file.topic, file.partition, batch, rules)
                reaches.append(looked.reach)
                yield looked.facts
            place.note_reach(file, np.concatenate(reaches))

    return _gathered(look(), merge_table)


def survey_keyed(
    place: Workplace, rules: CompactionRules, policy: LastOfKey, numbered: Sequence[tuple[int, LogFile]]
) -> Iterator[pa.Table]:
    """The facts of the keys in some files, each given with its number: a few tables."""

    def look() -> Iterator[pa.Table]:
        for number, file in numbered:
            has_tombstones = policy.drops_tombstones and place.may_lack_values(file)
            wanted = {"id", "t", "namespace", *policy.columns, *(["value"] if has_tombstones else [])}
            for batch in place.eligible(file, rules.watermark, sorted(wanted)):
                messages = pa.Table.from_batches([batch])
                tombstones = pc.is_null(messages["value"]) if has_tombstones else None
                yield keyed_facts_of(messages, number, rules.pins, policy.keys(messages), tombstones)

    return _gathered(look(), merge_keyed)


def _gathered(tables: Iterator[pa.Table], merge: Callable[[pa.Table], pa.Table]) -> Iterator[pa.Table]:
    """The same facts in fewer rows and tables; of a key in every one of these tables there is one row."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        if rows >= MOST_ROWS:
            waiting = [merge(pa.concat_tables(waiting))]
            if (rows := waiting[0].num_rows) >= MOST_ROWS // 2:
                yield waiting[0]
                waiting, rows = [], 0
    if waiting:
        yield merge(pa.concat_tables(waiting))
