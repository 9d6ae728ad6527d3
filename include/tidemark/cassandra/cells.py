"""Values as CQL cells: length-prefixed bytes, as protocol version 3 and later encodes them.

A row for ``BulkWriter`` is its cells one after the other, in the order of the statement's bind markers. What
is None becomes the ``absent`` cell: UNSET leaves the column as it is, NULL deletes its value. Nothing here
reads a schema: the caller knows the type of a column. A value that does not fit raises Python's own error
(``struct.error``, ``OverflowError``, ``AttributeError``); it is never truncated or rounded.

Each type has a function for one value, named after it. Types for which encoding a whole column at once saves
time (a quarter to a third per cell) also have a plural.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import date as Date
from itertools import chain
from struct import Struct
from uuid import UUID

NULL = b"\xff\xff\xff\xff"
UNSET = b"\xff\xff\xff\xfe"

_length = Struct(">i").pack
_lengths = Struct(">ii").pack
_int = Struct(">ii").pack
_bigint = Struct(">iq").pack
_date = Struct(">iI").pack
_UUID_LENGTH = _length(16)
_DAY_ZERO = 2**31 - Date(1970, 1, 1).toordinal()
"""Days are counted from the middle of an unsigned 32-bit number."""


def text(value: str | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``text``."""
    if value is None:
        return absent
    data = value.encode()
    return _length(len(data)) + data


def texts(values: Iterable[str | None], absent: bytes = UNSET) -> list[bytes]:
    """A column of ``text``."""
    return [absent if v is None else _length(len(data := v.encode())) + data for v in values]


def blob(value: bytes | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``blob``."""
    return absent if value is None else _length(len(value)) + value


def int_(value: int | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``int``."""
    return absent if value is None else _int(4, value)


def ints(values: Iterable[int | None], absent: bytes = UNSET) -> list[bytes]:
    """A column of ``int``."""
    return [absent if v is None else _int(4, v) for v in values]


def bigint(value: int | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``bigint``."""
    return absent if value is None else _bigint(8, value)


def bigints(values: Iterable[int | None], absent: bytes = UNSET) -> list[bytes]:
    """A column of ``bigint``."""
    return [absent if v is None else _bigint(8, v) for v in values]


def timestamp(milliseconds: int | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``timestamp``, from milliseconds since 1970."""
    return absent if milliseconds is None else _bigint(8, milliseconds)


timestamps = bigints
"""A column of ``timestamp``, from milliseconds since 1970."""


def date(value: Date | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``date``."""
    return absent if value is None else _date(4, value.toordinal() + _DAY_ZERO)


def uuid(value: UUID | bytes | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``uuid``, from one or from its 16 bytes."""
    return absent if value is None else _UUID_LENGTH + _uuid_bytes(value)


def duration(value: tuple[int, int, int] | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``duration``, from months, days and nanoseconds."""
    if value is None:
        return absent
    months, days, nanoseconds = value
    data = _vint(months) + _vint(days) + _vint(nanoseconds)
    return _length(len(data)) + data


def text_set(values: Collection[str] | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``set<text>``, elements in the given order; an empty set is not absent."""
    return absent if values is None else _collection(len(values), values)


def text_map(values: Mapping[str, str] | None, absent: bytes = UNSET) -> bytes:
    """A cell of ``map<text, text>``, entries in the given order; an empty map is not absent."""
    return absent if values is None else _collection(len(values), chain.from_iterable(values.items()))


def encoded_list(elements: Collection[bytes]) -> bytes:
    """The value of a list of encoded elements, without a length prefix."""
    return _length(len(elements)) + b"".join([_length(len(each)) + each for each in elements])


def rows(*columns: Iterable[bytes]) -> list[bytes]:
    """Columns of cells as rows for ``BulkWriter.add``."""
    return list(map(b"".join, zip(*columns, strict=True)))


def _collection(count: int, elements: Iterable[str]) -> bytes:
    parts: list[bytes] = []
    for element in elements:
        encoded = element.encode()
        parts += (_length(len(encoded)), encoded)
    data = b"".join(parts)
    return _lengths(4 + len(data), count) + data


def _uuid_bytes(value: UUID | bytes) -> bytes:
    if isinstance(value, UUID):
        return value.bytes
    if len(value) != 16:
        raise ValueError(f"a uuid has 16 bytes, not {len(value)}")
    return value


def unsigned_vint(number: int) -> bytes:
    """A number of up to 64 bits as one to nine bytes; leading ones of the first byte count the others."""
    if number < 0x80:
        return bytes((number,))
    others = min((number.bit_length() - 1) // 7, 8)
    leading = 0xFF00 >> others & 0xFF
    return (leading << 8 * others | number).to_bytes(others + 1, "big")


def _vint(value: int) -> bytes:
    """The protocol's vint: zigzag, then as ``unsigned_vint``."""
    number = (value << 1) ^ (value >> 63)
    if number >> 64:
        raise OverflowError(f"{value} has more than 64 bits")
    return unsigned_vint(number)
