"""Messages of the log as the tuples that the journal's codec reads."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa


def records_of(chunk: pa.Table) -> Iterator[tuple[Any, ...]]:
    """For every message its id, offset, write time, t, and the arguments of ``read_action``.

    Converted column by column: building a dictionary for every message takes longer than decoding it.
    """
    numbers = ("id", "offset", "write_time", "t")
    columns = [chunk[name].to_numpy().tolist() for name in numbers]
    columns += [chunk[name].to_pylist() for name in ("key", "value", "timestamp", "timestamp_type")]
    return zip(*columns, _headers(chunk["headers"].combine_chunks()), strict=True)


def _headers(column: pa.ListArray) -> Iterator[list[tuple[str, bytes | None]]]:
    bounds = column.offsets.to_numpy()
    first = bounds[0]
    own = column.values.slice(first, bounds[-1] - first)  # a sliced list column still holds all values
    pairs = list(zip(own.field("name").to_pylist(), own.field("value").to_pylist(), strict=True))
    return (pairs[start:end] for start, end in pairwise((bounds - first).tolist()))
