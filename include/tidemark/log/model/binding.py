"""Bindings and the ids they own.

Ids are computed from a binding alone, so that every run over the same binding gives every record the same id.
Nothing here reads Kafka, Cassandra or a clock.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from tidemark.log.errors import BadBinding

NOTHING_YET = -1
"""The end of an empty log, and the position of a writer that has delivered nothing."""

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, order=True)
class Slice:
    """The offsets of one Kafka partition in a binding: from ``lower`` (included) to ``upper`` (excluded)."""

    topic: str
    partition: int
    lower: int
    upper: int

    def __post_init__(self) -> None:
        if not 0 <= self.lower < self.upper:
            raise BadBinding(
                f"{self.topic}/{self.partition}: [{self.lower}, {self.upper}) is not a range of offsets."
            )

    @property
    def width(self) -> int:
        """The number of ids that the slice owns, including ids without a record."""
        return self.upper - self.lower


class CapturePlace(StrEnum):
    """Where a binding is captured and delivered. Decided when it is bound, so that every attempt finds what
    earlier ones have left. The files are the same.

    Attributes:
        ENGINE: In Spark's tasks.
        PROCESS: In the process that captures, for a few records: Spark takes longer to begin than they take.
    """

    ENGINE = "engine"
    PROCESS = "process"


@dataclass(frozen=True)
class Binding:
    """The durable decision which offsets form the next part of the log.

    Attributes:
        t: The time of the binding in µs; it identifies the binding within its pipeline.
        base: The first id that it owns.
        slices: The offsets of each partition, in (topic, partition) order.
        run_id: The run that made it.
        topics: Name and Kafka's id of each topic: a recreated topic has the same name, but another id.
        captured_by: Where its files are written.
        last_bound: For partitions that the binding directly before does not have, a time: no binding between
            that time and this binding has the partition; −1: none before this binding has it. No entry says
            nothing. It only shortens searches, so it is no part of what makes two bindings equal.
    """

    t: int
    base: int
    slices: tuple[Slice, ...]
    run_id: str
    topics: tuple[tuple[str, str], ...] = ()
    captured_by: CapturePlace = CapturePlace.ENGINE
    last_bound: Mapping[TopicPartition, int] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        places = [(s.topic, s.partition) for s in self.slices]
        if not places or places != sorted(set(places)):
            raise BadBinding(
                f"A binding at {self.t} needs slices in (topic, partition) order, each once: {places}."
            )

    @cached_property
    def width(self) -> int:
        """The number of ids that the binding owns."""
        return sum(s.width for s in self.slices)

    @property
    def end(self) -> int:
        """The last id the binding owns."""
        return self.base + self.width - 1

    @cached_property
    def shifts(self) -> Mapping[TopicPartition, int]:
        """The difference between id and offset, by partition."""
        shifts, first = {}, self.base
        for s in self.slices:
            shifts[s.topic, s.partition] = first - s.lower
            first += s.width
        return shifts

    @cached_property
    def owned(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """The first and the last id of each slice, by partition."""
        return {
            (s.topic, s.partition): (s.lower + shift, s.upper - 1 + shift)
            for s in self.slices
            for shift in (self.shifts[s.topic, s.partition],)
        }

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """Kafka's ids of the topics, by name."""
        return dict(self.topics)

    def id_of(self, topic: str, partition: int, offset: int) -> int:
        """The id of the record at an offset."""
        return offset + self.shifts[topic, partition]

    def offsets_at(self, position: int) -> dict[TopicPartition, int]:
        """The last offset whose id is at or below ``position``, of every partition that has such an
        offset.
        """
        return {
            place: min(s.upper - 1, position - self.shifts[place])
            for s in self.slices
            if position - self.shifts[place := (s.topic, s.partition)] >= s.lower
        }

    def write_time(self, id_: int) -> int:
        """The Cassandra write timestamp (µs) of every cell that is written for this message."""
        return self.t + (id_ - self.base)

    def to_json(self) -> str:
        """The row in the control plane."""
        slices = [[s.topic, s.partition, s.lower, s.upper] for s in self.slices]
        row = {"t": self.t, "base": self.base, "slices": slices, "run_id": self.run_id}
        by = {} if self.captured_by is CapturePlace.ENGINE else {"captured_by": self.captured_by}
        last = {"last_bound": times_to_rows(self.last_bound)} if self.last_bound else {}
        return json.dumps({**row, "topics": self.topic_ids, **by, **last})

    @classmethod
    def from_json(cls, text: str) -> "Binding":
        """The binding in a row."""
        row = json.loads(text)
        slices = tuple(Slice(*s) for s in row["slices"])
        topics = tuple(sorted(row.get("topics", {}).items()))
        by = CapturePlace(row.get("captured_by", CapturePlace.ENGINE))
        last_bound = times_from_rows(row.get("last_bound", ()))
        return cls(row["t"], row["base"], slices, row["run_id"], topics, by, last_bound)


def times_to_rows(times: Mapping[TopicPartition, int]) -> list[list[Any]]:
    """Times of partitions for JSON; most partitions of a topic have the same time, so it is there once."""
    together: dict[tuple[int, str], list[int]] = {}
    for (topic, partition), t in sorted(times.items()):
        together.setdefault((t, topic), []).append(partition)
    return [[t, topic, partitions] for (t, topic), partitions in sorted(together.items())]


def times_from_rows(rows: Iterable[Sequence[Any]]) -> dict[TopicPartition, int]:
    """The times in such rows."""
    return {(topic, partition): t for t, topic, partitions in rows for partition in partitions}


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offsets that a Kafka partition holds.

    Attributes:
        earliest: The first offset that is still stored.
        latest: The offset that the next record will get.
    """

    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class Available:
    """The current state of the source's topics.

    Attributes:
        offsets: The offsets of every partition.
        topic_ids: Kafka's ids of the topics, by name.
    """

    offsets: Mapping[TopicPartition, Offsets]
    topic_ids: Mapping[str, str]


def next_time(now: int, upper: int, previous: Binding | None) -> int:
    """The earliest valid ``t`` at or after ``now``: not below ``upper``, and greater than every write time of
    the previous binding.
    """
    floor = upper if previous is None else max(upper, previous.t + previous.width + 1)
    return max(now, floor)


def cut_slices(
    bound: Mapping[TopicPartition, int], available: Mapping[TopicPartition, Offsets], limit: int
) -> tuple[Slice, ...]:
    """The slices of the next binding: from the end of the last one to the latest offsets, at most ``limit``
    offsets in total.

    A new partition starts at its earliest offset. Where the limit is exceeded, every partition gets the same
    share, and small partitions leave the rest of theirs to larger ones, so that none starves.
    """
    lowers = {place: bound.get(place, offsets.earliest) for place, offsets in available.items()}
    waiting = {
        place: offsets.latest - lowers[place]
        for place, offsets in available.items()
        if offsets.latest > lowers[place]
    }
    shares = share_fairly(waiting, limit, turn=sum(bound.values()))
    return tuple(
        Slice(topic, partition, lowers[topic, partition], lowers[topic, partition] + share)
        for (topic, partition), share in sorted(shares.items())
        if share
    )


def share_fairly(
    waiting: Mapping[TopicPartition, int], limit: int, turn: int = 0
) -> dict[TopicPartition, int]:
    """The number of offsets that each partition may contribute, at most ``limit`` in total.

    The remainder of an even division is given out one by one, beginning with partition number ``turn``.
    """
    shares = dict.fromkeys(sorted(waiting), 0)
    left, unfilled = limit, list(shares)
    while unfilled and (each := left // len(unfilled)):
        for place in unfilled:
            given = min(each, waiting[place] - shares[place])
            shares[place] += given
            left -= given
        unfilled = [place for place in unfilled if shares[place] < waiting[place]]
    for number in range(left if unfilled else 0):
        shares[unfilled[(turn + number) % len(unfilled)]] += 1
    return shares


def reached_offsets(
    bound: Mapping[TopicPartition, int], slices: Iterable[Slice]
) -> dict[TopicPartition, int]:
    """The next offset to bind of every partition, after these slices."""
    return {**bound, **{(s.topic, s.partition): s.upper for s in slices}}
