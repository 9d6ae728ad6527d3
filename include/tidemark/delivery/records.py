"""Messages of the log as the records that ``journal.record`` reads, column by column."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa


def records_of(chunk: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Id, offset, write time, t, and what ``read_action`` takes, message by message.

    Column by column: a dictionary for every message would take longer than all the rest.
    """
    numbers = ("id", "offset", "write_time", "t")
    columns = [chunk[name].to_numpy().tolist() for name in numbers]
    columns += [chunk[name].to_pylist() for name in ("key", "value", "timestamp", "timestamp_type")]
    return zip(*columns, _headers(chunk["headers"].combine_chunks()), strict=True)


def _headers(column: pa.ListArray) -> Iterator[list[tuple[str, bytes | None]]]:
    bounds = column.offsets.to_numpy()
    first = bounds[0]
    own = column.values.slice(first, bounds[-1] - first)  # a slice of a column has the values of the whole
    pairs = list(zip(own.field("name").to_pylist(), own.field("value").to_pylist(), strict=True))
    return (pairs[start:end] for start, end in pairwise((bounds - first).tolist()))
