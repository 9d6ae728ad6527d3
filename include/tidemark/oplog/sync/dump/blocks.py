"""Many lines of a dump at once, where all of them are good and usual; a third of the time of line by line.

Decides nothing: whatever is not certain here is left to ``lines``, which gives the same objects.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.operations.reading import LONGEST_NAME, MOST_PARENTS
from tidemark.operations.times import EARLIEST, LATEST
from tidemark.oplog.sync.file_columns import DUMP

_USUAL_TIME = len("2014-11-06T03:04:39.041628Z")
"""Longer texts may have digits that the parser would round."""

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Names = Annotated[tuple[_Name, ...], msgspec.Meta(max_length=MOST_PARENTS)]


class _Usual(msgspec.Struct, gc=False):
    """The fields of a line. Of two with one name the last one counts, as everywhere."""

    type: _Name
    id: _Name
    timestamp: str
    parents: _Names | None = None


_decode_lines = msgspec.json.Decoder(_Usual).decode_lines
_Times = list[Annotated[datetime, msgspec.Meta(tz=True)]]


def read_block(lines: Sequence[bytes], first: int) -> pa.RecordBatch | None:
    """The objects of lines without their ends, in the columns of ``DUMP``; None where any is unusual or bad.

    ``first`` is the number of the first line.
    """
    # So no line is empty, and none has two objects: between two lines there is no comma.
    if not all([line[:1] == b"{" and line[-1:] == b"}" for line in lines]):  # noqa: C419  (twice as fast)
        return None
    try:
        found = _decode_lines(b"\n".join(lines))
        if len(found) != len(lines):
            return None
        times = _milliseconds([one.timestamp for one in found])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError, pa.ArrowException):
        return None
    types = pa.array([one.type for one in found], pa.string())
    ids = pa.array([one.id for one in found], pa.string())
    parents = pa.array([one.parents or () for one in found], pa.list_(pa.string()))
    if times is None or not (_are_types(types) and _are_short(ids) and _are_short(parents.flatten())):
        return None
    numbers = pa.array(np.arange(first, first + len(found), dtype=np.int64))
    return pa.record_batch([pc.ascii_lower(types), ids, times, parents, numbers], schema=DUMP)


def _milliseconds(texts: list[str]) -> pa.Array | None:
    """The times, cut to milliseconds; None where one may have more digits than are kept."""
    if max(map(len, texts)) > _USUAL_TIME:
        return None
    moments = pa.array(msgspec.convert(texts, _Times), pa.timestamp("us", "UTC"))
    ms = np.floor_divide(moments.cast(pa.int64()).to_numpy(), 1_000)
    return pa.array(ms) if ms.min() >= EARLIEST and ms.max() <= LATEST else None


def _are_types(names: pa.Array) -> bool:
    """Whether these are types whose lower case is certain."""
    has_slash = pc.any(pc.match_substring(names, "/")).as_py()
    return _are_short(names) and pc.all(pc.string_is_ascii(names)).as_py() and not has_slash


def _are_short(names: pa.Array) -> bool:
    """Whether no name has too many bytes."""
    return len(names) == 0 or pc.max(pc.binary_length(names)).as_py() <= LONGEST_NAME
