"""Messages of the log as tuples: what codecs that read whole records get."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any

import pyarrow as pa

_NO_HEADERS: Sequence[tuple[str, bytes | None]] = ()


def records_of(chunk: pa.Table) -> Iterator[tuple[Any, ...]]:
    """For every message its id, offset, write time, t, and the arguments of ``read_action``.

    Converted column by column: building a dictionary for every message takes longer than decoding it.
    """
    numbers = ("id", "offset", "write_time", "t")
    columns = [chunk[name].to_numpy().tolist() for name in numbers]
    columns += [chunk[name].to_pylist() for name in ("key", "value", "timestamp", "timestamp_type")]
    return zip(*columns, headers_of(chunk["headers"].combine_chunks()), strict=True)


def headers_of(column: pa.ListArray) -> Iterable[Sequence[tuple[str, bytes | None]]]:
    """The headers of each message of the log's column. In most logs no message has any."""
    if not len(column.flatten()):
        return repeat(_NO_HEADERS, len(column))
    bounds = column.offsets.to_numpy()
    first = bounds[0]
    own = column.values.slice(first, bounds[-1] - first)  # a sliced list column still holds all values
    pairs = list(zip(own.field("name").to_pylist(), own.field("value").to_pylist(), strict=True))
    return (pairs[start:end] for start, end in pairwise((bounds - first).tolist()))
