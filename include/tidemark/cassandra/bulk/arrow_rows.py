"""Arrow columns → rows of cells for ``BulkWriter``, a column at a time.

Adjacent columns of fixed width are encoded together, so put them side by side. Timestamps are truncated to
milliseconds, Cassandra's resolution. Any other value that its column cannot hold raises ``CannotEncode``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_address
from itertools import pairwise
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cassandra.cqltypes import DecimalType, IntegerType
from cassandra.marshal import uvint_pack

from tidemark.cassandra import cells
from tidemark.cassandra.cql_types import NUMBER_FORMATS, CqlKind, CqlType, arrow_type, vector_width

_PROTOCOL = 5
_length = Struct(">i").pack
_lengths = Struct(">ii").pack
_NO_DIGIT = 16
_DIGITS = np.full(256, _NO_DIGIT, np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = range(16)
_DIGITS[np.frombuffer(b"ABCDEF", np.uint8)] = range(10, 16)
_UUID_DASHES = [8, 13, 18, 23]
_UUID_DIGITS = np.delete(np.arange(36), _UUID_DASHES)

Fixed = npt.NDArray[np.uint8]
"""Cells of one width, with their length prefixes: each row of the array is a cell."""


class CannotEncode(ValueError):
    """A value that the column's type cannot hold."""


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """A column of a DataFrame and the type of the bind marker that takes it."""

    name: str
    cql_type: CqlType
    absent: bytes | None = cells.UNSET
    """The cell for null; None where null is refused."""


def encode_rows(targets: Sequence[BoundColumn], arrays: Iterable[pa.Array]) -> list[bytes]:
    """The cells of each row, concatenated."""
    pieces: list[list[bytes]] = []
    block: list[Fixed] = []
    for target, array in zip(targets, arrays, strict=True):
        column = _encode_column(target, array)
        if isinstance(column, list):
            pieces += [*_as_cells(block), column]
            block = []
        else:
            block.append(column)
    pieces += _as_cells(block)
    return list(map(b"".join, zip(*pieces, strict=True))) if len(pieces) > 1 else pieces[0]


def _encode_column(target: BoundColumn, array: pa.Array) -> Fixed | list[bytes]:
    if len(array) == 0:
        return []
    if not array.null_count:
        return _encode(target.cql_type, array)
    absent = target.absent
    if absent is None:
        raise CannotEncode("null")
    if array.null_count == len(array):
        return [absent] * len(array)
    column = _encode(target.cql_type, array)
    found = column if isinstance(column, list) else _as_cells([column])[0]
    missing = array.is_null().to_numpy(zero_copy_only=False).tolist()
    return [absent if no else cell for no, cell in zip(missing, found, strict=True)]


def _encode(cql_type: CqlType, array: pa.Array) -> Fixed | list[bytes]:
    """The cells of a column; the cells of nulls are arbitrary."""
    match cql_type.kind:
        case CqlKind.LIST | CqlKind.SET:
            return _collections(array, _elements(cql_type.elements[0], array.values))
        case CqlKind.MAP:
            parts = map(_elements, cql_type.elements, (array.keys, array.items))
            return _collections(array, list(map(bytes.__add__, *parts)))
        case CqlKind.TUPLE | CqlKind.USER_TYPE:
            return _structs(cql_type, array)
        case CqlKind.VECTOR:
            return _vectors(cql_type, array)
        case kind if kind in _BY_VALUE:
            write = _BY_VALUE[kind]
            return [b"" if value is None else write(value) for value in array.to_pylist()]
        case kind:
            usual = arrow_type(cql_type)
            return _BY_COLUMN[kind](array if array.type == usual else array.cast(usual))


def _elements(cql_type: CqlType, array: pa.Array, absent: bytes | None = None) -> list[bytes]:
    column = _encode_column(BoundColumn("", cql_type, absent), array)
    return column if isinstance(column, list) else _as_cells([column])[0]


def _structs(cql_type: CqlType, array: pa.Array) -> list[bytes]:
    # flatten() keeps the nulls of the struct; fields of a user-defined type may come in another order.
    columns = array.flatten()
    if cql_type.kind is CqlKind.USER_TYPE:
        columns = [columns[array.type.get_field_index(name)] for name in cql_type.fields]
    parts = [_elements(each, part, cells.NULL) for each, part in zip(cql_type.elements, columns, strict=True)]
    return [cells.blob(b"".join(row)) for row in zip(*parts, strict=True)]


def _vectors(cql_type: CqlType, array: pa.Array) -> list[bytes]:
    entries = [cell[4:] for cell in _elements(cql_type.elements[0], array.values)]
    if vector_width(cql_type.elements[0]) is None:
        entries = [uvint_pack(len(entry)) + entry for entry in entries]
    found = []
    for missing, (start, end) in zip(
        array.is_null().to_pylist(), pairwise(array.offsets.to_pylist()), strict=True
    ):
        if not missing and end - start != cql_type.size:
            raise CannotEncode(f"{end - start} elements, where there are {cql_type.size}")
        found.append(cells.blob(b"".join(entries[start:end])))
    return found


def _collections(array: pa.Array, entries: list[bytes]) -> list[bytes]:
    found = []
    for start, end in pairwise(array.offsets.to_pylist()):
        data = b"".join(entries[start:end])
        found.append(_lengths(4 + len(data), end - start) + data)
    return found


def _texts(array: pa.Array) -> list[bytes]:
    _, ends, data = array.buffers()
    offsets = np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1].tolist()
    text = data.to_pybytes() if data else b""
    return [_length(end - start) + text[start:end] for start, end in pairwise(offsets)]


def _ascii(array: pa.Array) -> list[bytes]:
    found = _texts(array)
    if not b"".join(cell[4:] for cell in found).isascii():
        raise CannotEncode("text that is not ASCII")
    return found


def _numbers(dtype: str) -> Callable[[pa.Array], Fixed]:
    wire, native = np.dtype(dtype), np.dtype(dtype).newbyteorder("=")

    def numbers(array: pa.Array) -> Fixed:
        return _fixed(_values(array, native).astype(wire))

    return numbers


def _booleans(array: pa.Array) -> Fixed:
    return _fixed(array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8))


def _timestamps(array: pa.Array) -> Fixed:
    return _fixed((_values(array, np.dtype(np.int64)) // 1000).astype(">i8"))


def _dates(array: pa.Array) -> Fixed:
    days = _values(array, np.dtype(np.int32)).view(np.uint32) ^ np.uint32(2**31)
    return _fixed(days.astype(">u4"))


def _uuids(array: pa.Array) -> Fixed:
    texts = array.fill_null("0" * 8 + "-0000-0000-0000-" + "0" * 12)
    found = [cell[4:] for cell in _texts(texts)]
    if any(len(text) != 36 for text in found):
        raise CannotEncode(_no_uuid(next(text for text in found if len(text) != 36)))
    characters = np.frombuffer(b"".join(found), np.uint8).reshape(len(found), 36)
    digits = _DIGITS[characters[:, _UUID_DIGITS]]
    wrong = (digits == _NO_DIGIT).any(axis=1) | (characters[:, _UUID_DASHES] != ord("-")).any(axis=1)
    if wrong.any():
        raise CannotEncode(_no_uuid(found[int(wrong.argmax())]))
    return _fixed(digits[:, ::2] << 4 | digits[:, 1::2])


def _no_uuid(text: bytes) -> str:
    return f"`{text.decode()[:40]}`, which is no UUID"


def _address(value: str) -> bytes:
    try:
        return cells.blob(ip_address(value).packed)
    except ValueError:
        raise CannotEncode(f"`{value[:40]}`, which is no address") from None


def _duration(value: dict[str, int | None]) -> bytes:
    months, days, nanoseconds = (value[name] or 0 for name in ("months", "days", "nanoseconds"))
    if min(months, days, nanoseconds) < 0 < max(months, days, nanoseconds):
        raise CannotEncode(f"a duration with signs of both kinds ({months}, {days}, {nanoseconds})")
    return cells.duration((months, days, nanoseconds))


def _decimal(value: Decimal | int) -> bytes:
    return cells.blob(DecimalType.serialize(Decimal(value), _PROTOCOL))


def _varint(value: Decimal | int) -> bytes:
    if value != int(value):
        raise CannotEncode(f"{value}, which is no whole number")
    return cells.blob(IntegerType.serialize(int(value), _PROTOCOL))


def _values(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def _fixed(values: npt.NDArray[Any]) -> Fixed:
    data = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    width = data.shape[1]
    found = np.empty((len(values), 4 + width), np.uint8)
    found[:, :4] = np.frombuffer(_length(width), np.uint8)
    found[:, 4:] = data
    return found


def _as_cells(columns: Sequence[Fixed]) -> list[list[bytes]]:
    """Fixed-width columns joined into one column of byte strings; no column for none."""
    if not columns:
        return []
    block = np.hstack(columns)
    data, width = block.tobytes(), block.shape[1]
    return [[data[start : start + width] for start in range(0, len(data), width)]]


_BY_VALUE: dict[CqlKind, Callable[[Any], bytes]] = {
    CqlKind.DECIMAL: _decimal,
    CqlKind.DURATION: _duration,
    CqlKind.INET: _address,
    CqlKind.VARINT: _varint,
}
_BY_COLUMN: dict[CqlKind, Callable[[pa.Array], Fixed | list[bytes]]] = {
    **{kind: _numbers(dtype) for kind, dtype in NUMBER_FORMATS.items()},
    CqlKind.ASCII: _ascii,
    CqlKind.BLOB: _texts,
    CqlKind.BOOLEAN: _booleans,
    CqlKind.DATE: _dates,
    CqlKind.TEXT: _texts,
    CqlKind.TIMESTAMP: _timestamps,
    CqlKind.TIMEUUID: _uuids,
    CqlKind.UUID: _uuids,
    CqlKind.VARCHAR: _texts,
}
FIXED_WIDTH = frozenset(_BY_COLUMN) - {CqlKind.ASCII, CqlKind.BLOB, CqlKind.TEXT, CqlKind.VARCHAR}
"""Kinds whose cells all have the same width."""
