"""The first pass over a file: the facts about its messages, a bounded number of keys in memory.

Looks at nothing above the watermark. What a journal's messages are is found out here once and noted in a
sidecar of the file, a number a message, so that the filter does not have to understand them again.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidemark.compaction.journal_facts import Facts, facts_of
from tidemark.compaction.keyed_facts import keyed_facts_of, merge_keyed
from tidemark.compaction.rules import Rules
from tidemark.compaction.workplace import Workplace
from tidemark.delivery.pipeline_choices import CompactionPolicy
from tidemark.delivery.records import records_of
from tidemark.journal.action import Append, Delete, Mark
from tidemark.journal.errors import Undecodable
from tidemark.journal.record import read_action, read_key
from tidemark.log.manifest import LogFile

MOST_KEYS = 100_000
"""With more in memory, the facts so far are given away and gathered anew."""
NOTHING, ACTION = -1, 0
"""In the sidecar: neither an append, a delete nor a purge; a delete, a purge or what cannot be understood.
Above these: an append, as the last sequence number its header names."""

_JOURNAL_COLUMNS = (
    *("id", "offset", "write_time", "t", "key"),
    *("value", "timestamp", "timestamp_type", "headers"),
)


def survey_journal(place: Workplace, rules: Rules, files: Sequence[LogFile]) -> Iterator[tuple[str, Facts]]:
    """The facts of the entities in some files of one partition, in id order; notes the sidecars."""
    acknowledged, pins = frozenset(rules.acknowledged), frozenset(rules.pins)
    found: dict[str, Facts] = {}
    for file in files:
        reaches = []
        for batch in place.eligible(file, rules.watermark, _JOURNAL_COLUMNS):
            reaches.append(_take(file.partition, batch, found, acknowledged, pins))
            if len(found) >= MOST_KEYS:
                yield from found.items()
                found.clear()
        place.note_reach(file, np.concatenate(reaches) if reaches else np.empty(0, np.int64))
    yield from found.items()


def _take(
    partition: int,
    batch: pa.RecordBatch,
    found: dict[str, Facts],
    acknowledged: frozenset[int],
    pins: frozenset[int],
) -> NDArray[np.int64]:
    """Add a batch's messages to the facts; what each of them is."""
    reaches = []
    for id_, offset, _, t, key, *record in records_of(pa.Table.from_batches([batch])):
        understood: Append | Delete | None = None
        is_purge, reach = False, ACTION
        try:
            action = read_action(key, *record)
        except Undecodable:
            name = read_key(key)
        else:
            if action is None or isinstance(action, Mark):
                reaches.append(NOTHING)
                continue
            name = action.key
            if isinstance(action, Append):
                understood, reach = action, action.last
            elif isinstance(action, Delete):
                understood = action
            else:
                is_purge = True
        reaches.append(reach)
        facts = facts_of(
            (id_, t, partition, offset),
            understood,
            is_purge=is_purge,
            is_acknowledged=id_ in acknowledged,
            is_pinned=id_ in pins,
        )
        earlier = found.get(name)
        found[name] = facts if earlier is None else earlier.then(facts)
    return np.array(reaches, np.int64)


def survey_keyed(
    place: Workplace, rules: Rules, numbered: Sequence[tuple[int, LogFile]]
) -> Iterator[pa.Table]:
    """The facts of the keys in some files, each given with its number: a few tables."""
    by_key = rules.policy is CompactionPolicy.LATEST
    waiting: list[pa.Table] = []
    rows = 0
    for number, file in numbered:
        has_tombstones = by_key and place.may_lack_values(file)
        names = ["id", "t", "namespace", *(["key"] if by_key else []), *(["value"] if has_tombstones else [])]
        for batch in place.eligible(file, rules.watermark, names):
            messages = pa.Table.from_batches([batch])
            tombstones = pc.is_null(messages["value"]) if has_tombstones else None
            facts = keyed_facts_of(messages, number, rules.pins, by_key=by_key, tombstones=tombstones)
            waiting.append(facts)
            rows += facts.num_rows
            if rows >= MOST_KEYS:
                waiting = [merge_keyed(pa.concat_tables(waiting))]
                if (rows := waiting[0].num_rows) >= MOST_KEYS // 2:
                    yield waiting[0]
                    waiting, rows = [], 0
    if waiting:
        yield merge_keyed(pa.concat_tables(waiting))
