"""A client's place in the ring: which events it gets next, and its position after each.

A client whose vector is ahead of the hub in a partition, because another agent has served it before, gets
nothing below its own vector. One that is nowhere ahead shares its position with all others.
"""

from dataclasses import dataclass

from tidemark.oplog.model.ring import Ring, RingEvent
from tidemark.oplog.model.server_sent_events import EventFormat
from tidemark.oplog.model.stream_filter import StreamFilter
from tidemark.oplog.model.vector import MovingVector, Vector, covers

MOST_EVENTS = 1_000
"""Of one chunk, before the filter."""
MOST_BYTES = 65_536
"""About how many bytes a chunk has at most: a client that takes nothing holds one."""
_MOST_CHUNKS = 256


@dataclass(frozen=True, slots=True)
class StreamShape:
    """What decides the bytes of an event, beside the event: equal for all clients that may share them.

    Attributes:
        filter: What the stream has.
        prefix: What its ids begin with, up to the vector.
        format: How events are written.
    """

    filter: StreamFilter
    prefix: bytes
    format: EventFormat

    def encode(self, events: list[tuple[RingEvent, bytes]]) -> bytes:
        """Events with the texts of the positions after them."""
        before, between, after = self.format.before, self.format.between, self.format.after
        prefix = self.prefix
        parts: list[bytes] = []
        for event, position in events:
            name = event.name
            parts += (before[name], prefix, position, between[name], event.data, after)
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive events of a stream.

    Attributes:
        data: Their bytes; empty where the filter admits none.
        count: How many they are.
        end: The sequence number after the last event that was considered.
    """

    data: bytes
    count: int
    end: int


class Chunks:
    """Chunks for clients that share their position: each is encoded once."""

    def __init__(self) -> None:
        self._made: dict[tuple[bytes, bool, int], Chunk] = {}

    def forget(self) -> None:
        """Keep no chunk: the ring has more events now."""
        self._made.clear()

    def next(self, ring: Ring, shape: StreamShape, seq: int) -> Chunk:
        """The events from a sequence number on."""
        key = (shape.prefix, shape.format.is_sse, seq)
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= _MOST_CHUNKS:
                self._made.clear()
            found = self._made[key] = _shared_chunk(ring, shape, seq)
        return found


def _shared_chunk(ring: Ring, shape: StreamShape, seq: int) -> Chunk:
    admits, size, chosen, end = shape.filter.admits, 0, [], seq
    for event in ring.since(seq, MOST_EVENTS):
        end += 1
        if admits(event.type, event.parents):
            chosen.append((event, event.position))
            size += len(event.data) + len(event.position) + 64
            if size > MOST_BYTES:
                break
    return Chunk(shape.encode(chosen), len(chosen), end)


class Follower:
    """One client that follows the ring."""

    __slots__ = ("_ahead", "_last", "_shape", "seq")

    def __init__(self, ring: Ring, shape: StreamShape, vector: Vector) -> None:
        """``vector`` is what the client has; the ring has everything after it."""
        if not ring.has_after(vector):
            raise ValueError("the ring has lost what follows this vector")
        self._shape = shape
        self.seq = ring.seq_after(vector)
        self._ahead: MovingVector | None = MovingVector(vector)
        self._last = b""
        self._align(ring)

    def is_overrun(self, ring: Ring) -> bool:
        """Whether the ring has lost events that the client needs."""
        return self.seq < ring.first

    def is_behind(self, ring: Ring) -> bool:
        """Whether the ring has events for the client to consider."""
        return self.seq < ring.end

    def take(self, ring: Ring, chunks: Chunks) -> Chunk:
        """The next events of the client; it has them from now on."""
        chunk = chunks.next(ring, self._shape, self.seq) if self._ahead is None else self._own(ring)
        self.seq = chunk.end
        if self._ahead is not None:
            self._align(ring)
        return chunk

    def position(self, ring: Ring) -> bytes:
        """The text of the client's vector, after everything that it has taken."""
        if self._ahead is not None:
            return self._ahead.text
        if self.seq == ring.end:
            return ring.position
        return ring.since(self.seq - 1, 1)[0].position if self.seq > ring.first else b""

    def _own(self, ring: Ring) -> Chunk:
        """Events for a client that has a vector of its own."""
        own, chosen, end = self._ahead, [], self.seq
        assert own is not None
        for event in ring.since(self.seq, MOST_EVENTS):
            end += 1
            if event.offset >= own[event.partition]:
                own.move(event.partition, event.offset + 1)
                if self._shape.filter.admits(event.type, event.parents):
                    chosen.append((event, own.text))
        return Chunk(self._shape.encode(chosen), len(chosen), end)

    def _align(self, ring: Ring) -> None:
        """Once the client is at the hub's place and nowhere ahead of it, they share their position."""
        own = self._ahead
        assert own is not None
        if self.seq == ring.end:
            if covers(ring.vector, own.offsets):
                self._ahead = None
            else:
                own.move_all(ring.vector)
