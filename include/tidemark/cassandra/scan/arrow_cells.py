"""Cells as Cassandra sends them → Arrow arrays, a column at a time.

An empty cell of a type without an empty value is null, as in the driver. A value that the Arrow type cannot
hold raises ``DoesNotFit``; it is never rounded or truncated.
"""

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cassandra.cqltypes import DecimalType
from cassandra.marshal import uvint_unpack, varint_unpack, vints_unpack

from tidemark.cassandra.cql_types import (
    DURATION,
    NUMBER_FORMATS,
    TIMESTAMP,
    CqlKind,
    CqlType,
    arrow_type,
    vector_width,
)
from tidemark.cassandra.scan.raw_column import RawColumn

_PROTOCOL = 5
_MOST_MILLISECONDS = (2**63 - 1) // 1000
_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint8).reshape(256, 2)
_UUID_DASHES = (8, 13, 18, 23)
_UUID_DIGITS = np.delete(np.arange(36), _UUID_DASHES)


class DoesNotFit(ValueError):
    """A value that the column's type in Arrow cannot hold."""


def decode(cql_type: CqlType, cells: Sequence[bytes | None], wanted: pa.DataType | None = None) -> pa.Array:
    """A column of cells as Arrow; ``wanted`` is another type than the default, for decimals' precision."""
    return _decode(cql_type, RawColumn.of(cells), wanted or arrow_type(cql_type))


def _decode(cql_type: CqlType, column: RawColumn, wanted: pa.DataType) -> pa.Array:
    if not column.present.any():
        return pa.nulls(len(column), wanted)
    match cql_type.kind:
        case CqlKind.LIST | CqlKind.SET:
            return _lists(cql_type, column, wanted)
        case CqlKind.MAP:
            return _maps(cql_type, column, wanted)
        case CqlKind.TUPLE | CqlKind.USER_TYPE:
            return _structs(cql_type, column, wanted)
        case CqlKind.VECTOR:
            return _vectors(cql_type, column, wanted)
        case CqlKind.DECIMAL | CqlKind.VARINT:
            return _decimals(cql_type.kind, column, wanted)
        case CqlKind.DURATION:
            return _durations(column, wanted)
        case kind:
            return _SCALARS[kind](column)


def _texts(column: RawColumn) -> pa.Array:
    texts = _of_any_length(column, pa.string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DoesNotFit(f"text that is not UTF-8 ({error})") from None
    return texts


def _blobs(column: RawColumn) -> pa.Array:
    return _of_any_length(column, pa.binary())


def _of_any_length(column: RawColumn, kind: pa.DataType) -> pa.Array:
    offsets = np.zeros(len(column) + 1, np.int32)
    offsets[1:] = column.ends
    buffers = [_bitmap(column.present), pa.py_buffer(offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, len(column), buffers)


def _numbers(dtype: str) -> Callable[[RawColumn], pa.Array]:
    """Numbers of a fixed width."""
    cell, native = np.dtype(dtype), np.dtype(dtype).newbyteorder("=")

    def numbers(column: RawColumn) -> pa.Array:
        values, absent = _fixed(column, cell)
        return pa.array(values.astype(native, copy=False), mask=absent)

    return numbers


def _booleans(column: RawColumn) -> pa.Array:
    values, absent = _fixed(column, np.dtype("u1"))
    return pa.array(values != 0, mask=absent)


def _timestamps(column: RawColumn) -> pa.Array:
    values, absent = _fixed(column, np.dtype(">i8"))
    milliseconds = values.astype(np.int64)
    if len(milliseconds) and max(milliseconds.max(), -milliseconds.min()) > _MOST_MILLISECONDS:
        raise DoesNotFit(f"a timestamp of {milliseconds[np.abs(milliseconds).argmax()]} ms since 1970")
    return pa.array(milliseconds * 1000, mask=absent).view(TIMESTAMP)


def _dates(column: RawColumn) -> pa.Array:
    values, absent = _fixed(column, np.dtype(">u4"))
    days = (values.astype(np.uint32) ^ np.uint32(2**31)).view(np.int32)
    return pa.array(days, mask=absent).view(pa.date32())


def _uuids(column: RawColumn) -> pa.Array:
    values, absent = _fixed(column, np.dtype("V16"))
    count = len(values)
    digits = _HEX[np.frombuffer(values.tobytes(), np.uint8)].reshape(count, 32)
    texts = np.full((count, 36), ord("-"), np.uint8)
    texts[:, _UUID_DIGITS] = digits
    valid = None if absent is None else _bitmap(~absent)
    offsets = pa.py_buffer(np.arange(0, 36 * count + 1, 36, dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), count, [valid, offsets, pa.py_buffer(texts)])


def _addresses(column: RawColumn) -> pa.Array:
    return pa.array([str(ip_address(cell)) if cell else None for cell in column.cells()], pa.string())


def _durations(column: RawColumn, wanted: pa.DataType) -> pa.Array:
    names = DURATION.names
    values = [dict(zip(names, vints_unpack(cell), strict=True)) if cell else None for cell in column.cells()]
    return pa.array(values, wanted)


def _decimals(kind: CqlKind, column: RawColumn, wanted: pa.DataType) -> pa.Array:
    read: Callable[[bytes], Any] = (
        varint_unpack if kind is CqlKind.VARINT else lambda cell: DecimalType.deserialize(cell, _PROTOCOL)
    )
    values = [read(cell) if cell else None for cell in column.cells()]
    try:
        return pa.array(values, wanted)
    except pa.ArrowInvalid as error:
        raise DoesNotFit(f"a number that is no {wanted} ({error})") from None


def _lists(cql_type: CqlType, column: RawColumn, wanted: pa.DataType) -> pa.Array:
    counts, (elements,) = column.elements(1)
    values = _decode(cql_type.elements[0], elements, wanted.value_type)
    return pa.ListArray.from_arrays(_offsets(counts), values, wanted, mask=_absent(column))


def _maps(cql_type: CqlType, column: RawColumn, wanted: pa.DataType) -> pa.Array:
    counts, parts = column.elements(2)
    types = (wanted.key_type, wanted.item_type)
    keys, values = map(_decode, cql_type.elements, parts, types)
    return pa.MapArray.from_arrays(_offsets(counts), keys, values, wanted, mask=_absent(column))


def _structs(cql_type: CqlType, column: RawColumn, wanted: pa.DataType) -> pa.Array:
    parts = column.fields(len(cql_type.elements))
    values = map(_decode, cql_type.elements, parts, (field.type for field in wanted))
    return pa.StructArray.from_arrays(list(values), fields=list(wanted), mask=pa.array(~column.present))


def _vectors(cql_type: CqlType, column: RawColumn, wanted: pa.DataType) -> pa.Array:
    """Elements are concatenated: fixed-width ones as they are, others length-prefixed."""
    size, element = cql_type.size, cql_type.elements[0]
    width = vector_width(element)
    filled = column.lengths > 0
    if width is None:
        cells = [cell for whole in column.cells() if whole for cell in _parts_of_vector(whole, size)]
        elements = RawColumn.of(cells)
    elif (wrong := column.lengths[filled & (column.lengths != width * size)]).size:
        raise DoesNotFit(f"a vector of {wrong[0]} bytes, where there are {width * size}")
    else:
        elements = RawColumn(column.data, np.full(int(filled.sum()) * size, width, np.int64))
    values = _decode(element, elements, wanted.value_type)
    return pa.ListArray.from_arrays(_offsets(filled * size), values, wanted, mask=pa.array(~filled))


def _parts_of_vector(cell: bytes, size: int) -> list[bytes]:
    found, place = [], 0
    for _ in range(size):
        length, read = uvint_unpack(cell[place:])
        place += read + length
        found.append(cell[place - length : place])
    if place != len(cell):
        raise DoesNotFit(f"a vector of {len(cell)} bytes, of which {place} are its {size} elements")
    return found


def _offsets(counts: npt.NDArray[np.int64]) -> pa.Array:
    offsets = np.zeros(len(counts) + 1, np.int32)
    offsets[1:] = np.cumsum(counts)
    return pa.array(offsets)


def _absent(column: RawColumn) -> pa.Array:
    # A collection without entries still has their count, four bytes.
    return pa.array(column.lengths < 4)


def _fixed(column: RawColumn, cell: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """The values, arbitrary for nulls, and the mask of nulls."""
    found = column.lengths == cell.itemsize
    if found.all():
        return column.data.view(cell), None
    if (wrong := column.lengths[~found & (column.lengths > 0)]).size:
        raise DoesNotFit(f"a cell of {wrong[0]} bytes, where there are {cell.itemsize}")
    values = np.zeros(len(column), cell)
    values[found] = column.data.view(cell)
    return values, ~found


def _bitmap(present: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))


_SCALARS: dict[CqlKind, Callable[[RawColumn], pa.Array]] = {
    **{kind: _numbers(dtype) for kind, dtype in NUMBER_FORMATS.items()},
    CqlKind.ASCII: _texts,
    CqlKind.BLOB: _blobs,
    CqlKind.BOOLEAN: _booleans,
    CqlKind.COUNTER: _numbers(">i8"),
    CqlKind.DATE: _dates,
    CqlKind.INET: _addresses,
    CqlKind.TEXT: _texts,
    CqlKind.TIMESTAMP: _timestamps,
    CqlKind.TIMEUUID: _uuids,
    CqlKind.UUID: _uuids,
    CqlKind.VARCHAR: _texts,
}
