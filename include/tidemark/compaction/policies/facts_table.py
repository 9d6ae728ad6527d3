"""The facts about many entities as columns, merged and judged by vectorised code.

The rules are those of ``journal_facts``, repeated here for the usual row: a part of a history without a purge
and without a pin. Other rows have their facts encoded in ``body``, and ``journal_facts`` itself judges every
entity that has such a row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import msgpack, structs
from numpy.typing import NDArray

from tidemark.compaction.census import JournalCensus
from tidemark.compaction.policies.journal_facts import (
    NEVER,
    NONE,
    ActionRun,
    Facts,
    Verdict,
    judge,
    merge_facts,
)
from tidemark.compaction.policies.verdicts import VERDICTS, verdict_table

Numbers = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]

_TYPES = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
_KINDS = {"topic": str, "key": str, "first_id": int, "last_id": int, "is_sound": bool}
FACTS = pa.schema(
    [
        *(
            pa.field(name, _TYPES[kind], nullable=False)
            for name, kind in (_KINDS | ActionRun.__annotations__).items()
        ),
        pa.field("body", pa.binary()),
    ]
)
"""A row is a part of one entity's history. Without a ``body`` it is an ``ActionRun``, with its columns."""
RUN = [name for name in FACTS.names if name not in ("topic", "key", "body")]

_ELSEWHERE = ActionRun(0, 0, 0, True, True, False, 0, 0, NONE, NONE, 0, NONE)
"""Fills the columns of a row with a ``body``."""
_decode = msgpack.Decoder(Facts).decode
_encode = msgpack.Encoder().encode


@dataclass(frozen=True)
class Judged:
    """The verdicts about the entities of a table.

    Attributes:
        verdicts: The verdicts that drop something.
        of_row: The index of the verdict about each row's entity; −1 for none.
    """

    verdicts: pa.Table
    of_row: Numbers


@dataclass(frozen=True)
class _Merged:
    """The merged facts of entities without a ``body``.

    Attributes:
        rows: The indexes of their rows, sorted by entity, then by id.
        entity: The entity's index for each of these rows.
        first: The index in ``rows`` at which each entity begins.
        columns: The merged facts, one value per entity.
    """

    rows: Numbers
    entity: Numbers
    first: Numbers
    columns: Columns


def run_table(topic: str, keys: pa.Array, columns: Columns) -> pa.Table:
    """Rows without a ``body``, from the columns of ``RUN``."""
    count = len(keys)
    arrays = [pa.repeat(topic, count), keys, *(pa.array(columns[name]) for name in RUN)]
    return pa.Table.from_arrays([*arrays, pa.nulls(count, pa.binary())], schema=FACTS)


def facts_table(found: Iterable[tuple[str, str, Facts]]) -> pa.Table:
    """A table with one row for each topic, key and facts."""
    rows = [(topic, key, *_row(facts)) for topic, key, facts in found]
    columns = list(zip(*rows, strict=True)) or [()] * len(FACTS.names)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FACTS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=FACTS)


def facts_in(table: pa.Table) -> Iterator[tuple[str, str, Facts]]:
    """Topic, key and facts of every row."""
    for row in zip(*(table[name].to_pylist() for name in FACTS.names), strict=True):
        yield row[0], row[1], _facts(row)


def merge_table(table: pa.Table) -> pa.Table:
    """One row per entity, from rows in any order."""
    numbers = _entity_numbers(table)
    simple, others = _apart(table, numbers)
    merged = _merge(table, simple, numbers)
    names = table.select(["topic", "key"]).take(merged.rows[merged.first])
    arrays = [*names.columns, *(pa.array(merged.columns[name]) for name in RUN)]
    runs = pa.Table.from_arrays([*arrays, pa.nulls(names.num_rows, pa.binary())], schema=FACTS)
    one_by_one = ((topic, key, facts) for topic, key, facts, _ in _merge_one_by_one(table, others, numbers))
    return pa.concat_tables([runs, facts_table(one_by_one)])


def judge_table(table: pa.Table, census: JournalCensus) -> Judged:
    """Judge all entities of a table, which must hold all facts about them; counts each in the census."""
    numbers = _entity_numbers(table)
    simple, others = _apart(table, numbers)
    merged = _merge(table, simple, numbers)
    runs, of_row = merged.columns, np.full(table.num_rows, -1)
    deleted = runs["delete_id"] != NONE
    goes = deleted & runs["is_sound"] & runs["is_regular"] & runs["is_steady"] & runs["begins_with_append"]
    census.note_runs(len(goes), int(goes.sum()), int(deleted.sum()))
    verdict_of = np.where(goes, np.cumsum(goes) - 1, -1)
    of_row[merged.rows] = verdict_of[merged.entity]
    count = int(goes.sum())
    keys = table["key"].take(merged.rows[merged.first[goes]])
    columns = [runs[name][goes] for name in ("delete_id", "delete_to", "before_delete")]
    arrays = [keys, np.zeros(count, np.int64), *columns, np.zeros(count, np.bool_)]
    found: list[tuple[str, Verdict]] = []
    for topic, key, facts, rows in _merge_one_by_one(table, others, numbers):
        verdict = judge(facts)
        census.note(topic, key, facts, verdict)
        if not verdict.keeps_everything:
            of_row[rows] = count + len(found)
            found.append((key, verdict))
    quickly = pa.table(dict(zip(VERDICTS.names, arrays, strict=True)), schema=VERDICTS)
    return Judged(pa.concat_tables([quickly, verdict_table(found)]), of_row)


def _entity_numbers(table: pa.Table) -> Numbers:
    """A number per row, equal for rows of the same entity."""
    keys, topics = (table[name].combine_chunks().dictionary_encode() for name in ("key", "topic"))
    of_topic: Numbers = topics.indices.to_numpy().astype(np.int64)
    numbers: Numbers = of_topic * len(keys.dictionary) + keys.indices.to_numpy()
    return numbers


def _apart(table: pa.Table, numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The rows of entities without a ``body``, and those of all others."""
    has_body = pc.is_valid(table["body"]).to_numpy()
    if not has_body.any():
        return np.arange(table.num_rows), np.empty(0, np.int64)
    is_other = np.isin(numbers, numbers[has_body])
    return np.flatnonzero(~is_other), np.flatnonzero(is_other)


def _merge(table: pa.Table, rows: Numbers, numbers: Numbers) -> _Merged:
    """``Facts.then``, vectorised over all entities."""
    first_ids = table["first_id"].to_numpy()
    order = rows[np.lexsort((first_ids[rows], numbers[rows]))]
    begins = np.diff(numbers[order], prepend=-1) != 0
    first, entity = np.flatnonzero(begins), np.cumsum(begins) - 1
    if not len(first):
        return _Merged(order, entity, first, {name: table[name].to_numpy()[order] for name in RUN})
    last = np.append(first[1:], len(order)) - 1
    given = {name: table[name].to_numpy()[order] for name in RUN}
    goes_on = ~begins[1:]

    def all_of(each: NDArray[np.bool_], pairs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether all rows of an entity fulfil ``each``, and all its adjacent rows ``pairs``."""
        fits = each.copy()
        fits[1:] &= pairs | ~goes_on
        found: NDArray[np.bool_] = np.logical_and.reduceat(fits, first)
        return found

    ids_grow = given["last_id"][:-1] < given["first_id"][1:]
    offsets_grow = given["last_offset"][:-1] < given["first_offset"][1:]
    same_partition = given["partition"][:-1] == given["partition"][1:]
    everything = np.ones(max(len(order) - 1, 0), np.bool_)
    merged: Columns = {name: given[name][first] for name in ("first_id", "partition", "first_offset")}
    merged |= {name: given[name][last] for name in ("last_id", "last_offset")}
    merged["begins_with_append"] = given["begins_with_append"][first]
    merged["is_sound"] = all_of(given["is_sound"], ids_grow)
    merged["is_steady"] = all_of(given["is_steady"], offsets_grow & same_partition)
    merged["is_regular"] = all_of(given["is_regular"], everything)
    _merge_appends(given, entity, merged)
    _merge_deletes(given, entity, first, merged)
    return _Merged(order, entity, first, merged)


def _merge_appends(given: Columns, entity: Numbers, merged: Columns) -> None:
    """Merge the columns about appends, over the rows that have one."""
    count = len(merged["is_regular"])
    there = np.flatnonzero(given["last_append"] != NONE)
    whose, firsts, lasts = entity[there], given["first_seq"][there], given["last_seq"][there]
    is_broken = (whose[:-1] == whose[1:]) & (lasts[:-1] + 1 != firsts[1:])
    merged["is_regular"][whose[1:][is_broken]] = False
    for name, default in (("first_seq", 0), ("last_seq", 0), ("last_append", NONE)):
        merged[name] = np.full(count, default)
    # Where an index repeats, the last assignment counts; reversed, the first.
    merged["first_seq"][whose[::-1]] = firsts[::-1]
    merged["last_seq"][whose] = lasts
    merged["last_append"][whose] = given["last_append"][there]


def _merge_deletes(given: Columns, entity: Numbers, first: Numbers, merged: Columns) -> None:
    """Merge the columns about deletes: the delete with the highest ``delete_to``, of several the last."""
    count = len(first)
    there = np.flatnonzero(given["delete_id"] != NONE)
    in_order = there[np.lexsort((there, given["delete_to"][there], entity[there]))]
    furthest = np.full(count, -1)
    furthest[entity[in_order]] = in_order
    has_delete = furthest >= 0
    chosen = furthest[has_delete]
    for name, default in (("delete_id", NONE), ("delete_to", 0), ("before_delete", NONE)):
        merged[name] = np.full(count, default)
        merged[name][has_delete] = given[name][chosen]
    # Where the delete's own row has no append before it, the last append of earlier rows counts.
    numbers = np.arange(len(entity))
    appended = np.maximum.accumulate(np.where(given["last_append"] != NONE, numbers, -1))
    earlier = np.where(chosen > 0, appended[chosen - 1], -1)
    is_own = earlier >= first[has_delete]
    before = np.where(is_own, given["last_append"][earlier], NONE)
    own = merged["before_delete"][has_delete]
    merged["before_delete"][has_delete] = np.where(own != NONE, own, before)


def _merge_one_by_one(
    table: pa.Table, rows: Numbers, numbers: Numbers
) -> Iterator[tuple[str, str, Facts, Numbers]]:
    """Topic, key, merged facts and row indexes of every entity with a ``body``."""
    order = rows[np.argsort(numbers[rows], kind="stable")]
    found = zip(numbers[order].tolist(), order.tolist(), facts_in(table.take(order)), strict=True)
    for _, own in groupby(found, key=lambda one: one[0]):
        parts = list(own)
        topic, key, _ = parts[0][2]
        of_entity = np.array([row for _, row, _ in parts])
        yield topic, key, merge_facts(facts for _, _, (_, _, facts) in parts), of_entity


def _row(facts: Facts) -> tuple[Any, ...]:
    run = facts.lead
    if run is None or facts.first_purge is not None or facts.last_pinned != NONE:
        row = structs.astuple(_ELSEWHERE)
        return facts.first_id, facts.last_id, True, *row, _encode(facts)
    return facts.first_id, facts.last_id, facts.is_sound, *structs.astuple(run), None


def _facts(row: tuple[Any, ...]) -> Facts:
    _, _, first_id, last_id, is_sound, *fields, body = row
    if body is not None:
        return _decode(body)
    run = ActionRun(*fields)
    places = (run.partition, run.first_offset), (run.partition, run.last_offset)
    return Facts(first_id, last_id, run, None, NONE, 0, None, is_sound, run.is_steady, *places, NEVER, NONE)
