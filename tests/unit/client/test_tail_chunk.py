"""A chunk of the tail: what it keeps, what it gives back, and how much memory it takes."""

import tracemalloc

import pytest
from tests.support.memory_client import MemoryRecord

from tidemark.client.tail.chunk import LARGEST_VALUE, MissingRecords, TailChunk
from tidemark.client.tail.wanted_key import WantedKey
from tidemark.journal.action import Mark, append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events

pytestmark = pytest.mark.unit

ACTION = ("journal.action", b'{"append":{}}')


def record(offset: int, key: bytes | None = b"k", value: bytes | None = b"v", *headers, timestamp=7):
    return MemoryRecord(offset, key, value, headers or (ACTION,), timestamp, 1, 0)


def given_chunk(*records: MemoryRecord) -> TailChunk:
    chunk = TailChunk()
    for one in records:
        chunk.add(one)
    return chunk


def offsets(chunk: TailChunk, key: str, first: int = 0, end: int = 99) -> list[object]:
    return [
        one if isinstance(one, MissingRecords) else one.offset
        for one in chunk.read(WantedKey(key), first, end)
    ]


@pytest.mark.parametrize(
    "kept",
    [
        record(4),
        record(4, b"k", b""),
        record(4, b"k", None),
        record(4, b"k", b"v", ACTION, ("h", b"x")),
        record(4, b"k", b"v", ("h", None), ACTION),
        record(4, b"k", b"v", ("journal.action", None)),
        record(4, b"k", b"v", ("journal.action", b'{"mark":{"id":1}}')),
        record(4, b"k", b"v", ("journal.action", b'{"mark":{"id":"m"},"append":{}}')),
    ],
)
def test_a_record_is_given_back_as_it_came(kept: MemoryRecord) -> None:
    chunk = given_chunk(record(1, b"j"), kept, record(5, b"j"))
    chunk.seal()
    (found,) = chunk.read(WantedKey("k"), 0, 99)
    assert tuple(found) == tuple(kept)[:6]


@pytest.mark.parametrize(
    "left_out",
    [
        record(4, None),
        record(4, b"k", b"v", ("h", b"x")),
        record(4, timestamp=None),
        record(4, b"k", None, *write_action(Mark("k", 1, "m", "a host", "tidemark-1")).headers),
        record(4, b"k", None, *write_action(Mark("k", 1, "m")).headers),
    ],
)
def test_a_record_that_changes_no_entity_is_left_out(left_out: MemoryRecord) -> None:
    assert len(given_chunk(left_out)) == 0


def test_an_entitys_records_are_found_in_their_order() -> None:
    chunk = given_chunk(*(record(offset, b"jk"[offset % 2 :][:1]) for offset in range(9)))
    assert offsets(chunk, "k") == [1, 3, 5, 7]
    assert offsets(chunk, "j", 2, 6) == [2, 4]
    assert offsets(chunk, "other") == []


def test_values_that_are_too_large_are_said_to_be_missing() -> None:
    large = b"x" * (LARGEST_VALUE + 1)
    chunk = given_chunk(record(1), record(2, b"k", large), record(3), record(4, b"k", large), record(5))
    assert offsets(chunk, "k") == [1, MissingRecords(2, 5), 5]
    assert chunk.size < len(large)


def test_keys_that_are_not_utf_8_are_found_by_what_they_decode_to() -> None:
    chunk = given_chunk(record(1, b"\xff"), record(2, b"\xfe"), record(3, "\ufffd".encode()), record(4, b"x"))
    assert offsets(chunk, "\ufffd") == [1, 2, 3]


def test_the_size_is_that_of_the_memory() -> None:
    def made(offset: int) -> MemoryRecord:
        event = EncodedEvent(offset + 1, (), "text", "x" * 200)
        sent = write_action(append("k", 1, Events((event,))))
        return MemoryRecord(offset, b"order-%06d" % offset, sent.value, sent.headers, 10**12 + offset, 1, 0)

    records = [made(offset) for offset in range(700)]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    chunk = given_chunk(*records)
    chunk.seal()
    del records
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < chunk.size * 1.1
