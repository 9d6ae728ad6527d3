"""The ring: the last events that the hub has read, in the order in which it has read them.

Events are encoded once, without their ids, which depend on the filter of a stream. Bounded in number and in
bytes. Every event has a sequence number of this process, which nothing outside it knows.
"""

from bisect import bisect_left
from collections.abc import Sequence

from tidemark.oplog.model.vector import MovingVector, Vector, covers

OVERHEAD = 300
"""Bytes of an event beside its data, about."""


class RingEvent:
    """One valid operation.

    Attributes:
        partition: Its partition.
        offset: Its offset.
        name: What happened.
        type: The type of its object.
        parents: The parents of its object.
        data: Its data, encoded.
        position: The text of the hub's vector after it.
    """

    __slots__ = ("data", "name", "offset", "parents", "partition", "position", "type")

    def __init__(
        self,
        partition: int,
        offset: int,
        name: str,
        type_: str,
        parents: tuple[str, ...],
        data: bytes,
        position: bytes,
    ) -> None:
        self.partition, self.offset, self.name = partition, offset, name
        self.type, self.parents, self.data, self.position = type_, parents, data, position

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return OVERHEAD + len(self.data) + len(self.position) + sum(map(len, self.parents))


class _Places:
    """Offsets and sequence numbers of the events of one partition, both ascending."""

    __slots__ = ("first", "offsets", "seqs")

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.seqs: list[int] = []
        self.first = 0
        """The index of the first one that is kept: lists are cut seldom."""

    def drop_first(self) -> None:
        self.first += 1
        if self.first > 1_000 and self.first * 2 > len(self.seqs):
            del self.offsets[: self.first], self.seqs[: self.first]
            self.first = 0

    def seq_from(self, offset: int) -> int | None:
        """The first sequence number at or after an offset."""
        place = bisect_left(self.offsets, offset, self.first)
        return self.seqs[place] if place < len(self.seqs) else None


class Ring:
    """See the module.

    Attributes:
        first: The sequence number of the first event.
        end: The sequence number of the next event.
    """

    def __init__(self, start: Vector, most_events: int, most_bytes: int) -> None:
        """``start`` is the vector from which on the hub reads."""
        self._start, self._vector = MovingVector(start), MovingVector(start)
        self._most_events, self._most_bytes = most_events, most_bytes
        self._events: list[RingEvent] = []
        self._dropped = 0
        """Events at the beginning of the list that count as gone."""
        self._bytes = 0
        self._places = [_Places() for _ in start]
        self.first = self.end = 0

    @property
    def start(self) -> Vector:
        """The ring has every valid operation from here on, up to ``vector``."""
        return self._start.offsets

    @property
    def vector(self) -> Vector:
        """What the hub has read."""
        return self._vector.offsets

    @property
    def position(self) -> bytes:
        """The text of ``vector``."""
        return self._vector.text

    @property
    def bytes(self) -> int:
        """About how many bytes the events take."""
        return self._bytes

    def append(self, events: Sequence[RingEvent], vector: Sequence[int]) -> None:
        """Add what the hub has read up to a vector. Where there is too much, the oldest events go."""
        for event in events:
            places = self._places[event.partition]
            places.offsets.append(event.offset)
            places.seqs.append(self.end)
            self._bytes += event.size
            self.end += 1
        self._events += events
        self._vector.move_all(vector)
        while self.first < self.end and (
            self.end - self.first > self._most_events or self._bytes > self._most_bytes
        ):
            oldest = self._events[self._dropped]
            self._dropped += 1
            self.first += 1
            self._bytes -= oldest.size
            self._start.move(oldest.partition, oldest.offset + 1)
            self._places[oldest.partition].drop_first()
        if (self._dropped > 1_000 and self._dropped * 2 > len(self._events)) or self.first == self.end:
            del self._events[: self._dropped]
            self._dropped = 0

    def has_after(self, vector: Sequence[int]) -> bool:
        """Whether the ring has every operation that a vector does not have, as far as the hub has read."""
        return covers(vector, self.start)

    def seq_after(self, vector: Sequence[int]) -> int:
        """The first sequence number of an event that a vector does not have; the next one where there is
        none."""
        found = [places.seq_from(vector[number]) for number, places in enumerate(self._places)]
        return min((seq for seq in found if seq is not None), default=self.end)

    def since(self, seq: int, most: int) -> list[RingEvent]:
        """At most so many events from a sequence number on, which the ring still has."""
        if seq < self.first:
            raise ValueError(f"event {seq} is not in the ring any more, which begins with {self.first}")
        place = seq - self.first + self._dropped
        return self._events[place : place + most]
