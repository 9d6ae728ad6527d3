"""The columns of a synchronisation's files, and rows of them as values. Reads and writes no file."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.oplog.sync.dump.lines import DumpLine
from tidemark.oplog.sync.sending import Settled

_OBJECT = [("type", pa.string()), ("id", pa.string())]
_PARENTS = ("parents", pa.list_(pa.string()))
_OPERATION = [*_OBJECT, ("event", pa.string()), ("timestamp", pa.int64()), _PARENTS]
OPERATION = [name for name, _ in _OPERATION]

DUMP = pa.schema([*_OBJECT, ("timestamp", pa.int64()), _PARENTS, ("line", pa.int64())])
"""An object of a dump, with the number of its line."""
CURRENT = pa.schema(
    [
        *_OBJECT,
        ("deleted", pa.bool_()),
        ("timestamp", pa.int64()),
        _PARENTS,
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
"""An object as its newest operation left it, with the place of that operation."""
DIFF = pa.schema(
    [*_OPERATION, ("outcome", pa.string()), ("stored_partition", pa.int32()), ("stored_offset", pa.int64())]
)
"""A correction: the operation to send, why, and the place of the object's newest operation that is known."""
SETTLED = pa.schema([*_OPERATION, ("partition", pa.int32()), ("offset", pa.int64()), ("is_sent", pa.bool_())])
"""What became of a correction."""


def dump_batch(lines: Sequence[DumpLine]) -> pa.RecordBatch:
    """Lines of a dump in the columns of ``DUMP``."""
    return pa.record_batch(list(zip(*lines, strict=True)), schema=DUMP)


def operations_of(batch: pa.RecordBatch) -> Iterator[ObjectOperation]:
    """The operations in a batch with the columns ``OPERATION``."""
    columns = [batch.column(name).to_pylist() for name in OPERATION]
    for type_, id_, event, timestamp, parents in zip(*columns, strict=True):
        yield ObjectOperation(EventName(event), timestamp, tuple(parents), type_, id_)


def settled_batch(settled: Sequence[Settled]) -> pa.RecordBatch:
    """What became of corrections, in the columns of ``SETTLED``."""
    rows = [
        (one.type, one.id, one.event.value, one.timestamp, one.parents, *each.place, each.is_sent)
        for each in settled
        for one in [each.operation]
    ]
    return pa.record_batch(list(zip(*rows, strict=True)), schema=SETTLED)


def settled_of(batch: pa.RecordBatch) -> list[Settled]:
    """The values of a batch of ``settled_batch``."""
    columns = [batch.column(name).to_pylist() for name in ("partition", "offset", "is_sent")]
    rows = zip(operations_of(batch), *columns, strict=True)
    return [Settled(one, (partition, offset), is_sent) for one, partition, offset, is_sent in rows]
