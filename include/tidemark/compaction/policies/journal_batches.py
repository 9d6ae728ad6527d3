"""Decodes the messages of a journal, a batch at a time, into facts.

``journal.codec.record`` decodes actions. It is called once for every distinct header of a batch, of which
there are few, and once for every unusual message: a purge, a pinned one, or one with other headers that are
not text. Of payloads only the sequence numbers are read, to check them against the header.
"""

from bisect import bisect_right
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidemark.compaction.policies.facts_table import Numbers, facts_table, run_table
from tidemark.compaction.policies.journal_facts import (
    NONE,
    Facts,
    are_consecutive,
    facts_of,
    payload_matches_header,
)
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.delivery.records import records_of
from tidemark.journal.action import Append, Delete, Mark
from tidemark.journal.codec.json_payload import NOTABLE_NUMBER, outlined_sequence_numbers
from tidemark.journal.codec.payload import Form
from tidemark.journal.codec.record import ACTION_HEADER, NO_TIMESTAMP, read_action, read_key
from tidemark.journal.errors import Undecodable

NOTHING, ACTION = -1, 0
"""Values of a message's reach. NOTHING: no append, delete or purge. ACTION: a delete, a purge, or a message
that cannot be decoded. Higher: an append, by the last sequence number in its header."""
COLUMNS = (
    *("id", "offset", "write_time", "t", "key"),
    *("value", "timestamp", "timestamp_type", "headers"),
)
HEADERS_KNOWN = 10_000

_Mask = NDArray[np.bool_]


class BatchFacts(NamedTuple):
    """The facts of a batch, one row per action; and the reach of every message."""

    facts: pa.Table
    reach: Numbers


class _Kind(IntEnum):
    NOTHING = 0
    APPEND = 1
    DELETE = 2
    PURGE = 3
    UNREADABLE = 4


class _Header(NamedTuple):
    """A decoded action header; ``last`` of a delete is the last sequence number that it deletes."""

    kind: _Kind
    first: int = 0
    last: int = 0
    form: Form = "json"


class _Actions(NamedTuple):
    """The decoded headers of a batch's messages; a doubtful one has other headers that may be unreadable."""

    kind: Numbers
    first: Numbers
    last: Numbers
    is_json: _Mask
    is_doubtful: _Mask


def batch_facts(topic: str, partition: int, batch: pa.RecordBatch, rules: CompactionRules) -> BatchFacts:
    """The facts about a batch of one partition's messages, in id order."""
    ids, actions = batch["id"].to_numpy(), _actions(batch)
    kind = actions.kind
    is_pinned, is_acknowledged = np.isin(ids, rules.pins), np.isin(ids, rules.acknowledged)
    is_action = kind != _Kind.NOTHING
    needs_care = is_action & ((kind == _Kind.PURGE) | is_pinned | actions.is_doubtful)
    reach = np.where(is_action, ACTION, NOTHING)
    reach = np.where(kind == _Kind.APPEND, actions.last, reach)

    own = is_action & ~needs_care
    is_append = (kind == _Kind.APPEND) & ~is_acknowledged
    is_delete = (kind == _Kind.DELETE) & ~is_acknowledged
    is_regular = is_delete.copy()
    appends = own & is_append
    is_regular[appends] = _payloads_match_headers(batch["value"].filter(pa.array(appends)), actions, appends)
    nothing = np.zeros(len(ids), np.int64)
    columns = {
        "first_id": ids,
        "last_id": ids,
        "is_sound": np.ones(len(ids), np.bool_),
        "partition": nothing + partition,
        "first_offset": batch["offset"].to_numpy(),
        "last_offset": batch["offset"].to_numpy(),
        "is_steady": np.ones(len(ids), np.bool_),
        "is_regular": is_regular,
        "begins_with_append": is_append,
        "first_seq": np.where(is_append, actions.first, 0),
        "last_seq": np.where(is_append, actions.last, 0),
        "last_append": np.where(is_append, ids, NONE),
        "delete_id": np.where(is_delete, ids, NONE),
        "delete_to": np.where(is_delete, actions.last, 0),
        "before_delete": nothing + NONE,
    }
    keys = entity_names(batch["key"].filter(pa.array(own)), ids[own], rules.beginnings(topic))
    facts = run_table(topic, keys, {name: column[own] for name, column in columns.items()})
    if needs_care.any():
        decoded = decoded_batch_facts(topic, partition, batch.filter(pa.array(needs_care)), rules)
        reach[needs_care] = decoded.reach
        facts = pa.concat_tables([facts, decoded.facts])
    return BatchFacts(facts, reach)


def decoded_batch_facts(
    topic: str, partition: int, batch: pa.RecordBatch, rules: CompactionRules
) -> BatchFacts:
    """``batch_facts`` by decoding every message: slower, and right for all of them."""
    found: list[tuple[str, str, Facts]] = []
    reaches, pins, acknowledged = [], frozenset(rules.pins), frozenset(rules.acknowledged)
    beginnings = rules.beginnings(topic)
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
        found.append((topic, entity_name(name, id_, beginnings), facts))
    return BatchFacts(facts_table(found), np.array(reaches, np.int64))


def entity_names(keys: pa.Array, ids: Numbers, beginnings: Sequence[int]) -> pa.Array:
    """The names that identify entities: their keys, with the number of the incarnation of the topic.

    ``beginnings`` are the first ids of the topic's later incarnations; without any, names are the keys.
    """
    names = read_keys(keys)
    if not beginnings:
        return names
    numbers = np.searchsorted(np.array(beginnings, np.int64), ids, side="right")
    prefixes = pc.cast(pa.array(numbers, pa.int64()), pa.string())
    return pc.binary_join_element_wise(prefixes, names, ":")


def entity_name(key: str, id_: int, beginnings: Sequence[int]) -> str:
    """``entity_names`` for one message."""
    return f"{bisect_right(beginnings, id_)}:{key}" if beginnings else key


def read_keys(keys: pa.Array) -> pa.Array:
    """Keys decoded like ``read_key`` does."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8: keys with different bytes may name the same entity
        return pa.array([None if key is None else read_key(key) for key in keys.to_pylist()], pa.string())


def _actions(batch: pa.RecordBatch) -> _Actions:
    """The decoded action headers, by the rules of ``read_action``."""
    bounds, headers = batch["headers"].offsets.to_numpy(), batch["headers"].values
    names, values = headers.field("name"), headers.field("value")
    is_named = pc.fill_null(pc.equal(names, ACTION_HEADER), False).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(is_named)
    places = places[(places >= bounds[0]) & (places < bounds[-1])]  # a slice shares the whole array's values
    messages, firsts = np.unique(np.searchsorted(bounds, places, side="right") - 1, return_index=True)
    encoded = values.take(pa.array(places[firsts])).dictionary_encode()
    read = [*map(_read_header, encoded.dictionary.to_pylist()), _Header(_Kind.UNREADABLE)]
    of_message = np.full(batch.num_rows, len(read))
    of_message[messages] = pc.fill_null(encoded.indices, len(read) - 1).to_numpy()  # null is unreadable
    kinds, first, last, forms = zip(*read, _Header(_Kind.NOTHING), strict=True)
    kind = np.array(kinds, np.int64)[of_message]
    kind[~_may_be_action(batch)] = _Kind.NOTHING
    is_append = kind == _Kind.APPEND
    kind[is_append & pc.is_null(batch["value"]).to_numpy(zero_copy_only=False)] = _Kind.NOTHING
    has_others = np.diff(bounds) > 1
    are_texts = not has_others.any() or _are_texts(values.filter(pa.array(~is_named)))
    return _Actions(
        kind,
        np.array(first, np.int64)[of_message],
        np.array(last, np.int64)[of_message],
        np.array([form == "json" for form in forms])[of_message],
        is_append & has_others & (not are_texts),
    )


@lru_cache(HEADERS_KNOWN)
def _read_header(header: bytes) -> _Header:
    try:
        action = read_action(b"", b"", 0, 0, ((ACTION_HEADER, header),))
    except Undecodable:
        return _Header(_Kind.UNREADABLE)
    if isinstance(action, Append):
        return _Header(_Kind.APPEND, action.first, action.last, action.form)
    if isinstance(action, Delete):
        return _Header(_Kind.DELETE, 0, action.to)
    return _Header(_Kind.NOTHING if action is None or isinstance(action, Mark) else _Kind.PURGE)


def _may_be_action(batch: pa.RecordBatch) -> _Mask:
    """Which messages have a key and a timestamp, without which they are no actions."""
    has_time = pc.and_(pc.is_valid(batch["timestamp"]), pc.not_equal(batch["timestamp_type"], NO_TIMESTAMP))
    may_be: _Mask = pc.and_(pc.is_valid(batch["key"]), has_time).to_numpy(zero_copy_only=False)
    return may_be


def _are_texts(values: pa.Array) -> bool:
    try:
        return bool(values.cast(pa.string()).null_count == 0)
    except pa.ArrowInvalid:
        return False


def _payloads_match_headers(values: pa.Array, actions: _Actions, appends: _Mask) -> list[bool]:
    """``payload_matches_header`` for each append of a batch."""
    is_notable = pc.match_substring_regex(values, NOTABLE_NUMBER).to_numpy(zero_copy_only=False)
    quickly = actions.is_json[appends] & ~is_notable & _are_texts(values)
    promises = zip(actions.first[appends].tolist(), actions.last[appends].tolist(), strict=True)
    found = []
    for value, (first, last), is_json, is_quick in zip(
        values.to_pylist(), promises, actions.is_json[appends].tolist(), quickly.tolist(), strict=True
    ):
        numbers = outlined_sequence_numbers(value) if is_quick else None
        if numbers is None:
            form: Form = "json" if is_json else "binary"
            found.append(payload_matches_header(form, value, first, last))
        else:
            found.append(are_consecutive(numbers, first, last))
    return found
