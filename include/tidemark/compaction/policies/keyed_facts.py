"""The facts that decide for policies that keep the last message of a key, or of a namespace.

Column by column, because there is nothing to understand in a message: tables of facts, one row a key, put
together by grouping. What stays is at most one message a key, so the verdict is a list of ids.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.compaction.policies.journal_facts import NEVER

KEYED_FACTS = pa.schema(
    [
        pa.field("namespace", pa.string(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("t", pa.int64(), nullable=False),
        pa.field("is_tombstone", pa.bool_(), nullable=False),
        pa.field("first_pinned", pa.int64(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
    ]
)
"""Of the last message of a key: its id, t, whether it deletes the key, and the number of the file it is in;
and the lowest pinned id of the key."""


def keyed_facts_of(
    messages: pa.Table,
    file: int,
    pins: Sequence[int],
    keys: pa.Array | pa.ChunkedArray | None,
    tombstones: pa.Array | None,
) -> pa.Table:
    """The facts of some messages of one file: its columns id, t and namespace.

    ``keys`` are their keys; None where a namespace is one. ``tombstones`` says which have no value; None
    where all have one. A message without a key replaces nothing and is replaced by nothing, so it has no
    facts.
    """
    rows = messages.num_rows
    is_pinned = pc.is_in(messages["id"], value_set=pa.array(pins, pa.int64()))
    columns = {
        "namespace": messages["namespace"],
        "key": pa.nulls(rows, pa.binary()) if keys is None else keys,
        "id": messages["id"],
        "t": messages["t"],
        "is_tombstone": tombstones if tombstones is not None else pa.repeat(False, rows),
        "first_pinned": pc.if_else(is_pinned, messages["id"], pa.scalar(NEVER, pa.int64())),
        "file": pa.repeat(pa.scalar(file, pa.int32()), rows),
    }
    facts = pa.table(columns, schema=KEYED_FACTS)
    return merge_keyed(facts if keys is None else facts.filter(pc.is_valid(facts["key"])))


def merge_keyed(facts: pa.Table) -> pa.Table:
    """Facts of the same key as one, whatever stretches of the log they come from."""
    in_order = facts.sort_by("id")
    # ``last`` goes by the order of rows, which threads do not keep.
    grouped = in_order.group_by(["namespace", "key"], use_threads=False).aggregate(
        [("id", "last"), ("t", "last"), ("is_tombstone", "last"), ("first_pinned", "min"), ("file", "last")]
    )
    names = {"id_last": "id", "t_last": "t", "is_tombstone_last": "is_tombstone"}
    names |= {"first_pinned_min": "first_pinned", "file_last": "file"}
    renamed = grouped.rename_columns([names.get(name, name) for name in grouped.column_names])
    return renamed.select(KEYED_FACTS.names).cast(KEYED_FACTS)


def kept_of(facts: pa.Table, tombstones_before: int) -> pa.Table:
    """The facts whose message stays.

    A tombstone bound before ``tombstones_before`` (µs) goes, unless something older of its key is pinned:
    without it that would count again.
    """
    is_old = pc.and_(facts["is_tombstone"], pc.less(facts["t"], tombstones_before))
    is_needed = pc.less(facts["first_pinned"], facts["id"])
    return facts.filter(pc.or_(pc.invert(is_old), is_needed))
