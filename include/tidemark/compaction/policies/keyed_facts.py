"""The facts for policies that keep the last message of a key, or of a namespace.

Facts are tables with one row per key, merged by grouping. Messages are not decoded. At most one message per
key is kept, so the verdict is a list of ids.
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
"""The id, time and file number of a key's last message, whether that is a tombstone, and the lowest pinned id
of the key."""


def keyed_facts_of(
    messages: pa.Table,
    file: int,
    pins: Sequence[int],
    keys: pa.Array | pa.ChunkedArray | None,
    tombstones: pa.Array | None,
) -> pa.Table:
    """The facts of messages of one file, which have the columns id, t and namespace.

    Args:
        file: The file's number.
        keys: The keys of the messages; None where a whole namespace is one key. A message with a null key is
            always kept, so it has no facts.
        tombstones: Which messages have no value; None where all have one.
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
    """One row per key, from facts of any parts of the log."""
    in_order = facts.sort_by("id")
    # ``last`` depends on the order of rows, which threads do not preserve.
    grouped = in_order.group_by(["namespace", "key"], use_threads=False).aggregate(
        [("id", "last"), ("t", "last"), ("is_tombstone", "last"), ("first_pinned", "min"), ("file", "last")]
    )
    names = {"id_last": "id", "t_last": "t", "is_tombstone_last": "is_tombstone"}
    names |= {"first_pinned_min": "first_pinned", "file_last": "file"}
    renamed = grouped.rename_columns([names.get(name, name) for name in grouped.column_names])
    return renamed.select(KEYED_FACTS.names).cast(KEYED_FACTS)


def kept_of(facts: pa.Table, tombstones_before: int) -> pa.Table:
    """The facts of the last messages that are kept.

    A tombstone bound before ``tombstones_before`` (µs) is dropped, unless an older message of its key is
    pinned, which would become the key's value again.
    """
    is_old = pc.and_(facts["is_tombstone"], pc.less(facts["t"], tombstones_before))
    is_needed = pc.less(facts["first_pinned"], facts["id"])
    return facts.filter(pc.or_(pc.invert(is_old), is_needed))
