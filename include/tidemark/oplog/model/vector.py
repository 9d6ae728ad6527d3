"""Vectors: a place in a topic, as the next offset of every partition. And their text in ids of events.

A vector says what its holder has: in each partition everything below the offset. Partitions are numbered from
0 without gaps, as Kafka numbers them.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Iterable, Sequence

Vector = tuple[int, ...]

LARGEST_OFFSET = 2**63 - 1
_MOST_BYTES = 9
"""Of one offset: 63 bits, seven to a byte."""


def covers(vector: Sequence[int], other: Sequence[int]) -> bool:
    """Whether a vector has everything that another one has."""
    return all(mine >= theirs for mine, theirs in zip(vector, other, strict=True))


def joined(vector: Sequence[int], other: Sequence[int]) -> Vector:
    """What one of two vectors has."""
    return tuple(map(max, vector, other))


def distance(vector: Sequence[int], ahead: Sequence[int]) -> int:
    """How many offsets a vector is behind another one, in all partitions."""
    return sum(max(theirs - mine, 0) for mine, theirs in zip(vector, ahead, strict=True))


def vector_text(vector: Iterable[int]) -> str:
    """A vector as text: letters, digits, ``-`` and ``_`` only."""
    return _text(b"".join(map(_varint, vector)))


def read_vector(text: str) -> Vector:
    """The vector that a text says; raises ``ValueError``."""
    if len(text) % 4 == 1 or not text.isascii():
        raise ValueError("not a vector")
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except Error:
        raise ValueError("not a vector") from None
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 7 * _MOST_BYTES:
            raise ValueError("not a vector: an offset is too large")
        if not byte & 0x80:
            found.append(value)
            value = shift = 0
    # Only one text for each vector: what decodes otherwise was not made here.
    if shift or not found or vector_text(found) != text:
        raise ValueError("not a vector")
    return tuple(found)


class MovingVector:
    """A vector that moves forward, one partition at a time; its text is cheap to get again."""

    __slots__ = ("_bytes", "_offsets")

    def __init__(self, vector: Sequence[int]) -> None:
        self._offsets = list(vector)
        self._bytes = [_varint(offset) for offset in vector]

    def __getitem__(self, partition: int) -> int:
        return self._offsets[partition]

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def offsets(self) -> Vector:
        """The vector now."""
        return tuple(self._offsets)

    @property
    def text(self) -> bytes:
        """Its text now."""
        return urlsafe_b64encode(b"".join(self._bytes)).rstrip(b"=")

    def move(self, partition: int, offset: int) -> None:
        """Move one partition forward to a next offset; a smaller one changes nothing."""
        if offset > self._offsets[partition]:
            self._offsets[partition] = offset
            self._bytes[partition] = _varint(offset)

    def move_all(self, vector: Sequence[int]) -> None:
        """Move every partition forward."""
        for partition, offset in enumerate(vector):
            self.move(partition, offset)


def _varint(value: int) -> bytes:
    """A number of up to 63 bits: seven to a byte, the lowest first; the last byte is below 128."""
    if value < 0x80:
        return value.to_bytes(1)
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
