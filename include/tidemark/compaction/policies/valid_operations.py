"""The facts for the policy ``oplog``: which operation of an object is its newest valid one.

An operation of a producer is valid. A correction is void where a valid operation of its object follows what
its sender had read, and that operation may be in another file: until the files before it are known, it is
undecided. Facts are tables with the operations of which one is the newest valid one: a single operation that
is sure to be valid, or the undecided corrections at the beginning of a part of the log. They can be gathered
from any parts of the log and merged in any order.

The rule is ``tidemark.operations.corrections.is_void``, and an operation counts only within its partition and
within one topic of its name, as in a collection.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidemark.compaction.policies.rules import CompactionRules
from tidemark.delivery.records import headers_of
from tidemark.log.model.manifest import LogFile
from tidemark.operations.corrections import is_void
from tidemark.operations.errors import BadOperation
from tidemark.operations.reading import read_record

OPERATION_FACTS = pa.schema(
    [
        pa.field("namespace", pa.string(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("topic_number", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("looked_at", pa.int64(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
    ]
)
"""An operation: the topic of the file, its key, id and place, what the sender of an undecided correction had
read, and the file's number."""
OPERATION_COLUMNS = ("id", "offset", "key", "value", "headers")
"""The columns that ``operations_of_batch`` reads."""
DECIDED = -1
"""The value of ``looked_at`` for an operation that is sure to be valid."""
STAYS, MAY_GO = 0, 1
"""Whether a message always stays: it cannot be read, or an operator has let a writer pass over it."""


class Candidate(NamedTuple):
    """An operation that may be the newest valid one of its object. The fields are those of the facts."""

    id: int
    partition: int
    topic_number: int
    offset: int
    looked_at: int
    file: int

    @property
    def is_decided(self) -> bool:
        """Whether it is sure to be valid."""
        return self.looked_at == DECIDED

    @property
    def decided(self) -> "Candidate":
        """The same operation, sure to be valid."""
        return self._replace(looked_at=DECIDED)

    def is_beside(self, other: "Candidate") -> bool:
        """Whether the offsets of both can be compared."""
        return (self.partition, self.topic_number) == (other.partition, other.topic_number)


class OperationsOfBatch(NamedTuple):
    """The facts of a batch, and for each of its messages whether it ``STAYS`` or ``MAY_GO``."""

    facts: pa.Table
    fates: NDArray[np.int64]


def operations_of_batch(
    file: LogFile, number: int, batch: pa.RecordBatch, rules: CompactionRules
) -> OperationsOfBatch:
    """The facts of a batch of messages of one file, which has ``number``."""
    acknowledged = frozenset(rules.acknowledged)
    beginnings, topic_ids = rules.beginnings(file.topic), rules.topic_ids_of(file.topic)
    found: dict[bytes, list[Candidate]] = {}
    fates: list[int] = []
    columns = (batch[name].to_pylist() for name in OPERATION_COLUMNS[:-1])
    for id_, offset, key, value, headers in zip(*columns, headers_of(batch["headers"]), strict=True):
        if id_ in acknowledged:
            fates.append(STAYS)
            continue
        try:
            correction = read_record(key, value, headers).correction
        except BadOperation:
            fates.append(STAYS)
            continue
        fates.append(MAY_GO)
        topic_number, looked_at = bisect_right(beginnings, id_), DECIDED
        if correction is not None:
            if is_void(correction, offset, topic_ids[topic_number], None):
                continue  # whatever came before
            looked_at = correction.looked_at
        later = Candidate(id_, file.partition, topic_number, offset, looked_at, number)
        found[key] = _followed_by(found.get(key, _NOTHING), later)
    rows = ((file.topic, key, own) for key, own in found.items())
    return OperationsOfBatch(_table(rows), np.array(fates, np.int64))


def merge_operations(facts: pa.Table) -> pa.Table:
    """The facts of several parts of the log as those of one."""
    in_order = facts.sort_by([("namespace", "ascending"), ("key", "ascending"), ("id", "ascending")])
    undecided = in_order.filter(pc.not_equal(in_order["looked_at"], DECIDED))
    if not undecided.num_rows:
        return _newest(in_order)
    is_open = pc.is_in(in_order["key"], value_set=undecided["key"].combine_chunks().unique())
    merged = ((*name, _merged(own)) for name, own in _by_key(in_order.filter(is_open)))
    return pa.concat_tables([_newest(in_order.filter(pc.invert(is_open))), _table(merged)])


def newest_valid(facts: pa.Table) -> pa.Table:
    """The newest valid operation of each object, from all facts of the log below the watermark: there is one
    of each object."""
    merged = merge_operations(facts)
    if not pc.any(pc.not_equal(merged["looked_at"], DECIDED)).as_py():
        return merged
    # Nothing precedes the first one, so it is valid. It decides about those that follow it.
    decided = ((*name, _merged([own[0].decided, *own[1:]])) for name, own in _by_key(merged))
    return _table(decided)


def _merged(candidates: Iterable[Candidate]) -> list[Candidate]:
    found: list[Candidate] = []
    for one in candidates:
        found = _followed_by(found, one)
    return found


_NOTHING: list[Candidate] = []


def _followed_by(candidates: list[Candidate], later: Candidate) -> list[Candidate]:
    """The candidates of a part of the log that ends with ``later``: one decided, or several undecided."""
    if later.is_decided:
        return [later]
    if not candidates:
        return [later]
    last = candidates[-1]
    # Whether `last` is valid or void, no valid operation is between it and `later`.
    if not later.is_beside(last) or last.offset < later.looked_at:
        return [later.decided]
    if not last.is_decided:
        return [*candidates, later]
    return candidates if last.offset < later.offset else [later.decided]


def _newest(in_order: pa.Table) -> pa.Table:
    """The last row of each key; the rows are sorted."""
    if not in_order.num_rows:
        return in_order.cast(OPERATION_FACTS)
    keys, names = (in_order[name].combine_chunks() for name in ("key", "namespace"))
    differs = pc.or_(pc.not_equal(keys[1:], keys[:-1]), pc.not_equal(names[1:], names[:-1]))
    return in_order.filter(pa.concat_arrays([differs, pa.array([True])])).cast(OPERATION_FACTS)


def _by_key(in_order: pa.Table) -> Iterator[tuple[tuple[str, bytes], list[Candidate]]]:
    rows = zip(*(in_order[name].to_pylist() for name in OPERATION_FACTS.names), strict=True)
    for name, own in groupby(rows, key=lambda row: row[:2]):
        yield (name[0], name[1]), [Candidate(*row[2:]) for row in own]


def _table(found: Iterable[tuple[str, bytes, Sequence[Candidate]]]) -> pa.Table:
    rows = [(namespace, key, *one) for namespace, key, own in found for one in own]
    columns = list(zip(*rows, strict=True)) or [()] * len(OPERATION_FACTS.names)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, OPERATION_FACTS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=OPERATION_FACTS)
