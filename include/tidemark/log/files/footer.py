"""The footer of a Parquet file, normalised so that its bytes do not depend on the writing process.

Parquet's Java writer lists the encodings of a column in the order of a hash set, whose hashes differ between
processes. So the same messages would give files with different digests. Sorting those lists changes neither
their meaning nor any length. Nothing else in a file is changed.
"""

from collections.abc import Iterator
from enum import IntEnum

MAGIC = b"PAR1"
TAIL = 8
"""The footer's length and the magic number, at the end of every file."""
ENCODINGS = (4, 1, 3, 2)
"""The path to the lists by Parquet's field numbers: row_groups → columns → meta_data → encodings."""


class ThriftType(IntEnum):
    """The types of Thrift's compact protocol, in which footers are written."""

    STOP = 0
    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13


WIDTHS = {
    ThriftType.TRUE: 0,
    ThriftType.FALSE: 0,
    ThriftType.BYTE: 1,
    ThriftType.DOUBLE: 8,
    ThriftType.UUID: 16,
}


def footer_length(tail: bytes) -> int:
    """The length of the footer, from the last ``TAIL`` bytes of a file."""
    if tail[4:] != MAGIC:
        raise ValueError("this is not a Parquet file")
    return int.from_bytes(tail[:4], "little")


def in_order(footer: bytes) -> bytes:
    """The same footer with every list of encodings sorted."""
    ordered = bytearray(footer)
    for spans in _Walk(footer).find(ENCODINGS):
        encodings = sorted(footer[start:end] for start, end in spans)
        ordered[spans[0][0] : spans[-1][1]] = b"".join(encodings)
    return bytes(ordered)


class _Walk:
    """One pass over a footer in Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def find(self, wanted: tuple[int, ...]) -> Iterator[list[tuple[int, int]]]:
        """The positions (start, end) of the elements of every list at this path of field numbers."""
        yield from self._struct((), wanted)

    def _struct(self, path: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[list[tuple[int, int]]]:
        field = 0
        while (header := self._byte()) != ThriftType.STOP:
            step = header >> 4
            field = field + step if step else _unzigzag(self._varint())
            yield from self._value(ThriftType(header & 0x0F), (*path, field), wanted)

    def _value(
        self, type_: ThriftType, path: tuple[int, ...], wanted: tuple[int, ...]
    ) -> Iterator[list[tuple[int, int]]]:
        match type_:
            case ThriftType.STRUCT:
                yield from self._struct(path, wanted)
            case ThriftType.LIST | ThriftType.SET:
                yield from self._list(path, wanted)
            case ThriftType.MAP:
                yield from self._map(path, wanted)
            case ThriftType.BINARY:
                length = self._varint()
                self._at += length
            case ThriftType.I16 | ThriftType.I32 | ThriftType.I64:
                self._varint()
            case _:
                self._at += WIDTHS[type_]

    def _list(self, path: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[list[tuple[int, int]]]:
        header = self._byte()
        size, element = header >> 4, ThriftType(header & 0x0F)
        if size == 15:
            size = self._varint()
        spans = []
        for _ in range(size):
            start = self._at
            yield from self._element(element, path, wanted)
            spans.append((start, self._at))
        if path == wanted and spans:
            yield spans

    def _map(self, path: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[list[tuple[int, int]]]:
        size = self._varint()
        if not size:
            return
        types = self._byte()
        for _ in range(size):
            yield from self._element(ThriftType(types >> 4), path, wanted)
            yield from self._element(ThriftType(types & 0x0F), path, wanted)

    def _element(
        self, type_: ThriftType, path: tuple[int, ...], wanted: tuple[int, ...]
    ) -> Iterator[list[tuple[int, int]]]:
        """Skips one element. A boolean takes a byte as an element of a list, and none as a field."""
        if type_ in (ThriftType.TRUE, ThriftType.FALSE):
            self._at += 1
        else:
            yield from self._value(type_, path, wanted)

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift


def _unzigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)
