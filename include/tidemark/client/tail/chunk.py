"""A run of a partition's records in little memory: found by their keys, decoded by those who ask for them.

Headers and values lie in one byte string, and numbers in arrays, because an object for each record would
take twice the memory. Left out are records that change no entity: marks, and those that are no actions.
Values above ``LARGEST_VALUE`` are left out too; their records have to be read from Kafka again. Decodes
nothing, and is not thread-safe.
"""

import re
from array import array
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from tidemark.client.tail.wanted_key import WantedKey
from tidemark.journal.codec.record import ACTION_HEADER
from tidemark.kafka.consumer import RecordHeaders

MOST_RECORDS = 1_024
MOST_BYTES = 262_144
"""Bytes of headers and values after which a chunk is full."""
LARGEST_VALUE = 16_384
"""Bytes of the largest value that is kept."""

RECORD_BYTES = 32
"""Memory of a record besides its header and value."""
KEY_BYTES = 110
"""Memory of a key that the chunk does not have yet, besides its own bytes."""
ODD_BYTES = 450
"""Memory of a record that does not have the usual form, besides its headers and value."""

_TEXT = rb'"[ !#-\[\]-~]*"'
_is_mark = re.compile(
    rb'\{"mark":\{"id":%b(?:,"origin":%b)?(?:,"version":%b)?\}\}' % (_TEXT, _TEXT, _TEXT)
).fullmatch
"""A mark as clients write it. Marks of another form are kept, and decoded where their entity is read."""

_POSITIONS = tuple(range(MOST_RECORDS))
"""Shared by all chunks, so that a dictionary of positions holds no numbers of its own."""
_NONE = -1
TIMESTAMP_TYPE = 1
"""Of kept records: Kafka's number of the producer's time. Records without a time are not kept."""


class TailRecord(Protocol):
    """A record of the tail, as ``ReadRecord`` gives it."""

    @property
    def offset(self) -> int:
        """The record's offset."""

    @property
    def key(self) -> bytes | None:
        """The record's key."""

    @property
    def value(self) -> bytes | None:
        """The record's value."""

    @property
    def headers(self) -> RecordHeaders:
        """The record's headers, in their order."""

    @property
    def timestamp(self) -> int | None:
        """In milliseconds; None when the record has none."""

    @property
    def timestamp_type(self) -> int:
        """As Kafka numbers them."""


class SourceRecord(TailRecord, Protocol):
    """A record of the tail as it comes from Kafka."""

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the leader that the record was sent to; None where it is not known."""


class KeptRecord(NamedTuple):
    """A record that a chunk has kept."""

    offset: int
    key: bytes
    value: bytes | None
    headers: RecordHeaders
    timestamp: int
    timestamp_type: int


class MissingRecords(NamedTuple):
    """Offsets, the last one exclusive, that have to be read from Kafka."""

    first: int
    end: int


class _Odd(NamedTuple):
    """Parts of a record that has several headers, no value, or one that is too large to keep."""

    value: bytes | None
    headers: RecordHeaders
    is_whole: bool


class TailChunk:
    """Records of one partition, in the order of their offsets."""

    __slots__ = (
        "_before",
        "_data",
        "_header_ends",
        "_last",
        "_length",
        "_odd",
        "_offsets",
        "_parts",
        "_times",
        "_value_ends",
        "size",
    )

    def __init__(self) -> None:
        self._last: dict[bytes, int] = {}
        """The position of each key's last record."""
        self._before = array("h")
        """The position of the record before with the same key."""
        self._offsets, self._times = array("q"), array("q")
        self._parts: list[bytes] = []
        """Header and value of each record, until the chunk is sealed."""
        self._data = b""
        """The same in one piece, afterwards."""
        self._length = 0
        self._header_ends, self._value_ends = array("I"), array("I")
        self._odd: dict[int, _Odd] = {}
        self.size = 0
        """Bytes of memory, about."""

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last(self) -> int:
        """The offset of the last record."""
        return self._offsets[-1]

    @property
    def is_full(self) -> bool:
        """Whether the next record belongs into another chunk."""
        return len(self._offsets) >= MOST_RECORDS or self._length >= MOST_BYTES

    def add(self, record: SourceRecord) -> None:
        """Keeps a record, unless it changes no entity."""
        key = record.key
        if key is None:
            return
        headers = record.headers
        header = headers[0][1] if len(headers) == 1 and headers[0][0] == ACTION_HEADER else None
        if header is None:
            if all(name != ACTION_HEADER for name, _ in headers):
                return
        elif header.startswith(b'{"mark"') and _is_mark(header):
            return
        timestamp, value = record.timestamp, record.value
        if timestamp is None:
            return
        offsets, last = self._offsets, self._last
        position = _POSITIONS[len(offsets)]
        if header is None or value is None or len(value) > LARGEST_VALUE:
            self._add_odd(headers, value)
            header = value = b""
        self._parts += (header, value)
        length = len(header)
        self._header_ends.append(self._length + length)
        length += len(value)
        self.size += RECORD_BYTES + length
        self._length += length
        self._value_ends.append(self._length)
        before = last.get(key, _NONE)
        if before == _NONE:
            self.size += KEY_BYTES + len(key)
        last[key] = position
        self._before.append(before)
        offsets.append(record.offset)
        self._times.append(timestamp)

    def _add_odd(self, headers: RecordHeaders, value: bytes | None) -> None:
        is_whole = value is None or len(value) <= LARGEST_VALUE
        kept = value if is_whole else None
        self._odd[len(self._offsets)] = _Odd(kept, tuple(headers), is_whole)
        texts = sum(len(name) + len(data or b"") for name, data in headers)
        self.size += ODD_BYTES + texts + len(kept or b"")

    def seal(self) -> None:
        """Puts headers and values together, which takes less memory. Nothing may be added afterwards."""
        self._data, self._parts = b"".join(self._parts), []

    def read(self, key: WantedKey, first: int, end: int) -> Iterator["KeptRecord | MissingRecords"]:
        """The entity's records from one offset to another, exclusive, in order.

        One ``MissingRecords`` stands for the first to the last record whose value was not kept.
        """
        positions = self._positions(key, first, end)
        missing = [self._offsets[each] for each in positions if each in self._odd and self._is_missing(each)]
        for position in positions:
            offset = self._offsets[position]
            if not missing or not missing[0] <= offset <= missing[-1]:
                yield self._record(key, position)
            elif offset == missing[0]:
                yield MissingRecords(missing[0], missing[-1] + 1)

    def _positions(self, key: WantedKey, first: int, end: int) -> list[int]:
        found: list[int] = []
        keys = [each for each in self._last if key.is_key(each)] if key.is_ambiguous else [key.raw]
        for each in keys:
            position = self._last.get(each, _NONE)
            while position != _NONE and self._offsets[position] >= first:
                if self._offsets[position] < end:
                    found.append(position)
                position = self._before[position]
        found.sort()
        return found

    def _is_missing(self, position: int) -> bool:
        return not self._odd[position].is_whole

    def _record(self, key: WantedKey, position: int) -> KeptRecord:
        value: bytes | None
        headers: RecordHeaders
        if odd := self._odd.get(position):
            value, headers, _ = odd
        else:
            header, value = self._plain(position)
            headers = ((ACTION_HEADER, header),)
        return KeptRecord(
            self._offsets[position], key.raw, value, headers, self._times[position], TIMESTAMP_TYPE
        )

    def _plain(self, position: int) -> tuple[bytes, bytes]:
        """Header and value of a record of the usual form."""
        if self._parts:
            return self._parts[2 * position], self._parts[2 * position + 1]
        begin = self._value_ends[position - 1] if position else 0
        between = self._header_ends[position]
        return self._data[begin:between], self._data[between : self._value_ends[position]]
