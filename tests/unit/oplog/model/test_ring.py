"""The ring and the clients that follow it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.oplog_samples import given_ring, operation, ring_event

from tidemark.operations.filters import OperationFilter
from tidemark.oplog.model.follower import MOST_BYTES, MOST_EVENTS, Chunks, Follower, StreamShape
from tidemark.oplog.model.ring import OVERHEAD, Ring
from tidemark.oplog.model.server_sent_events import SERVER_SENT
from tidemark.oplog.model.stream_filter import StreamFilter
from tidemark.oplog.model.vector import MovingVector, vector_text

pytestmark = pytest.mark.unit

ALL = StreamShape(StreamFilter(), b"o1.d.", SERVER_SENT)
NONE = StreamShape(StreamFilter(OperationFilter.of(["none"])), b"o1.e.", SERVER_SENT)


def ids(data: bytes) -> list[str]:
    return [line[4:].decode() for line in data.split(b"\n") if line.startswith(b"id: ")]


def text(*vector: int) -> str:
    return f"o1.d.{vector_text(vector)}"


def test_a_ring_begins_where_its_hub_has_begun() -> None:
    assert given_ring(start=(5, 7)).start == (5, 7)


def test_a_full_ring_begins_after_what_it_has_dropped() -> None:
    assert given_ring((0, 3), (1, 0), (0, 4), most=1).start == (4, 1)


def test_a_ring_is_bounded_in_bytes_too() -> None:
    ring, hub = Ring((0,), 100, 3 * (OVERHEAD + 200)), MovingVector((0,))
    for offset in range(10):
        ring.append([ring_event(hub, 0, offset, data=b"x" * 200)], hub.offsets)
    assert 0 < ring.end - ring.first < 4


def test_an_event_larger_than_the_ring_leaves_it_empty() -> None:
    ring, hub = Ring((0,), 100, 10), MovingVector((0,))
    ring.append([ring_event(hub, 0, 0)], hub.offsets)
    assert (ring.start, ring.bytes, ring.since(ring.end, 5)) == ((1,), 0, [])


def test_a_ring_has_what_follows_a_vector_from_its_start_on() -> None:
    assert given_ring((0, 3), (0, 4), most=1).has_after((4, 0))


def test_a_ring_does_not_have_what_it_has_dropped() -> None:
    assert not given_ring((0, 3), (0, 4), most=1).has_after((3, 9))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=60), st.integers(1, 20), st.data())
def test_the_first_event_after_a_vector_is_found(
    steps: list[tuple[int, int]], most: int, data: st.DataObject
) -> None:
    next_of = [0, 0, 0]
    ring, hub = Ring((0, 0, 0), most, 10**9), MovingVector((0, 0, 0))
    for partition, width in steps:
        next_of[partition] += width
        ring.append([ring_event(hub, partition, next_of[partition] - 1)], hub.offsets)
    vector = [data.draw(st.integers(least, 200)) for least in ring.start]
    kept = ring.since(ring.first, 100)
    after = [number for number, one in enumerate(kept, ring.first) if one.offset >= vector[one.partition]]
    assert ring.seq_after(vector) == min(after, default=ring.end)


def test_a_client_gets_what_it_does_not_have() -> None:
    ring = given_ring((0, 0), (1, 0), (0, 1))
    follower = Follower(ring, ALL, (1, 0))
    assert ids(follower.take(ring, Chunks()).data) == [text(1, 1), text(2, 1)]


def test_a_client_that_is_up_to_date_gets_nothing() -> None:
    ring = given_ring((0, 0))
    assert not Follower(ring, ALL, (1, 0)).is_behind(ring)


def test_clients_at_one_place_share_their_bytes() -> None:
    ring, chunks = given_ring((0, 0)), Chunks()
    first, second = (Follower(ring, ALL, ring.vector) for _ in range(2))
    hub = MovingVector(ring.vector)
    ring.append([ring_event(hub, 1, 0)], hub.offsets)
    assert first.take(ring, chunks).data is second.take(ring, chunks).data


def test_a_client_that_is_ahead_of_the_hub_gets_nothing_below_its_own_vector() -> None:
    ring = given_ring((0, 0))
    follower = Follower(ring, ALL, (4, 0))
    hub = MovingVector(ring.vector)
    ring.append([ring_event(hub, 0, 1), ring_event(hub, 0, 3), ring_event(hub, 0, 4)], hub.offsets)
    assert ids(follower.take(ring, Chunks()).data) == [text(5, 0)]


def test_the_position_of_a_client_that_is_ahead_keeps_what_it_has() -> None:
    ring = given_ring((0, 0))
    follower = Follower(ring, ALL, (4, 0))
    hub = MovingVector(ring.vector)
    ring.append([ring_event(hub, 1, 6)], hub.offsets)
    assert ids(follower.take(ring, Chunks()).data) == [text(4, 7)]


def test_a_client_that_the_hub_has_caught_up_with_shares_its_position() -> None:
    ring, chunks = given_ring((0, 0)), Chunks()
    follower = Follower(ring, ALL, (2, 0))
    hub = MovingVector(ring.vector)
    ring.append([ring_event(hub, 0, 1)], hub.offsets)
    follower.take(ring, chunks)
    ring.append([ring_event(hub, 0, 2)], hub.offsets)
    chunks.forget()
    other = Follower(ring, ALL, (2, 0))
    assert follower.take(ring, chunks).data == other.take(ring, chunks).data


def test_a_filtered_client_advances_without_events() -> None:
    ring = given_ring((0, 0), (1, 0))
    follower = Follower(ring, NONE, (0, 0))
    chunk = follower.take(ring, Chunks())
    assert (chunk.data, chunk.count, follower.position(ring).decode()) == (b"", 0, vector_text((1, 1)))


def test_the_position_of_an_up_to_date_client_includes_what_was_no_operation() -> None:
    ring = given_ring((0, 0))
    follower = Follower(ring, ALL, ring.vector)
    ring.append([], (5, 9))
    assert follower.position(ring).decode() == vector_text((5, 9))


def test_G6_C24_a_client_whose_events_are_dropped_is_overrun() -> None:
    ring = given_ring((0, 0), most=1)
    follower = Follower(ring, ALL, (0, 0))
    hub = MovingVector(ring.vector)
    ring.append([ring_event(hub, 0, 1)], hub.offsets)
    assert follower.is_overrun(ring)


def test_nothing_follows_from_a_vector_that_the_ring_has_lost() -> None:
    with pytest.raises(ValueError, match="lost"):
        Follower(given_ring((0, 0), (0, 1), most=1), ALL, (0, 0))


def test_a_chunk_is_bounded_in_events() -> None:
    ring = given_ring(*((0, offset) for offset in range(MOST_EVENTS + 5)), most=10**6)
    follower = Follower(ring, NONE, (0, 0))
    follower.take(ring, Chunks())
    assert follower.seq == MOST_EVENTS


def test_a_chunk_is_bounded_in_bytes() -> None:
    ring, hub = Ring((0,), 100, 10**9), MovingVector((0,))
    ring.append([ring_event(hub, 0, offset, data=b"x" * MOST_BYTES) for offset in range(3)], hub.offsets)
    hub2 = Follower(ring, ALL, hub.offsets)
    hub2.seq = 0
    assert hub2.take(ring, Chunks()).count == 1


def test_ids_of_a_chunk_are_those_of_its_filter() -> None:
    ring, chunks = given_ring((0, 0)), Chunks()
    hub = MovingVector(ring.vector)
    followers = [Follower(ring, shape, ring.vector) for shape in (ALL, NONE)]
    ring.append([ring_event(hub, 0, 1, operation())], hub.offsets)
    assert [one.take(ring, chunks).count for one in followers] == [1, 0]
