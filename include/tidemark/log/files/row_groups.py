"""Row groups of a log file and their id ranges, so that a reader can skip row groups.

The ranges come from the statistics in the footer. A row group without statistics is always read.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ID_COLUMN = 0
ROWS_AT_ONCE = 8_192


class RowGroup(NamedTuple):
    """One row group; its ids are None where the footer has no statistics."""

    number: int
    rows: int
    first_id: int | None
    last_id: int | None

    def may_have(self, first_id: int, last_id: int) -> bool:
        """Whether it may have messages with ids from ``first_id`` to ``last_id``."""
        if self.first_id is None or self.last_id is None:
            return True
        return self.first_id <= last_id and self.last_id >= first_id

    def is_within(self, first_id: int, last_id: int) -> bool:
        """Whether all its messages certainly have ids from ``first_id`` to ``last_id``."""
        if self.first_id is None or self.last_id is None:
            return False
        return first_id <= self.first_id and self.last_id <= last_id


def groups_of(metadata: pq.FileMetaData) -> Iterator[RowGroup]:
    """All row groups of a file."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        found = group.column(ID_COLUMN).statistics
        known = found is not None and found.has_min_max
        yield RowGroup(number, group.num_rows, *((found.min, found.max) if known else (None, None)))


def read_groups(
    parquet: pq.ParquetFile,
    schema: pa.Schema,
    numbers: Sequence[int] | None,
    columns: Sequence[str] | None,
    ids: tuple[int, int] | None,
) -> Iterator[pa.RecordBatch]:
    """The messages of some row groups (None: all), restricted to the first and last id in ``ids``, if
    given.
    """
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    read = columns if columns is None or ids is None else sorted({*columns, "id"})
    for batch in parquet.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=numbers, columns=read):
        if ids is not None and batch.num_rows and batch.column("id")[0].as_py() > ids[1]:
            return
        kept = batch if ids is None else between(batch, *ids)
        if kept.num_rows or ids is None:
            # Spark declares every column as nullable.
            yield kept.select(wanted.names).cast(wanted)


def between(messages: pa.RecordBatch, first_id: int, last_id: int) -> pa.RecordBatch:
    """The messages with ids from ``first_id`` to ``last_id``."""
    ids = messages.column("id")
    return messages.filter(pc.and_(pc.greater_equal(ids, first_id), pc.less_equal(ids, last_id)))
