"""Bindings and the ids they own.

An id is computed, never counted: from a binding alone, so that every run over the same binding gives every
record the same id. Nothing here reads Kafka, Cassandra or a clock.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from tidemark.log.errors import BadBinding

NOTHING_YET = -1
"""The end of an empty log, and the position of a writer that has not begun."""

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, order=True)
class Slice:
    """The offsets one binding takes from one Kafka partition: ``lower`` included, ``upper`` not."""

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
        """How many ids the slice owns, whether a record has them or not."""
        return self.upper - self.lower


@dataclass(frozen=True)
class Binding:
    """One durable row: at time ``t`` (µs) the source had reached these offsets."""

    t: int
    base: int
    slices: tuple[Slice, ...]
    run_id: str
    topics: tuple[tuple[str, str], ...] = ()
    """The id each topic had: a topic that was deleted and made again has the name, but not the id."""

    def __post_init__(self) -> None:
        places = [(s.topic, s.partition) for s in self.slices]
        if not places or places != sorted(set(places)):
            raise BadBinding(
                f"A binding at {self.t} needs slices in (topic, partition) order, each once: {places}."
            )

    @cached_property
    def width(self) -> int:
        """How many ids the binding owns."""
        return sum(s.width for s in self.slices)

    @property
    def end(self) -> int:
        """The last id the binding owns."""
        return self.base + self.width - 1

    @cached_property
    def shifts(self) -> Mapping[TopicPartition, int]:
        """What to add to an offset of a partition to get its id."""
        shifts, first = {}, self.base
        for s in self.slices:
            shifts[s.topic, s.partition] = first - s.lower
            first += s.width
        return shifts

    @cached_property
    def owned(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """The first and the last id that each partition's slice owns."""
        return {
            (s.topic, s.partition): (s.lower + shift, s.upper - 1 + shift)
            for s in self.slices
            for shift in (self.shifts[s.topic, s.partition],)
        }

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """The topics' ids by name."""
        return dict(self.topics)

    def id_of(self, topic: str, partition: int, offset: int) -> int:
        """The id of one record."""
        return offset + self.shifts[topic, partition]

    def offsets_at(self, position: int) -> dict[TopicPartition, int]:
        """The last offset whose id is at or below a position, of every partition that has one here."""
        return {
            place: min(s.upper - 1, position - self.shifts[place])
            for s in self.slices
            if position - self.shifts[place := (s.topic, s.partition)] >= s.lower
        }

    def write_time(self, id_: int) -> int:
        """The timestamp (µs) that every cell written for this message carries."""
        return self.t + (id_ - self.base)

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        slices = [[s.topic, s.partition, s.lower, s.upper] for s in self.slices]
        row = {"t": self.t, "base": self.base, "slices": slices, "run_id": self.run_id}
        return json.dumps({**row, "topics": self.topic_ids})

    @classmethod
    def from_json(cls, text: str) -> "Binding":
        """The binding a row holds."""
        row = json.loads(text)
        slices = tuple(Slice(*s) for s in row["slices"])
        topics = tuple(sorted(row.get("topics", {}).items()))
        return cls(row["t"], row["base"], slices, row["run_id"], topics)


@dataclass(frozen=True, slots=True)
class Offsets:
    """What a partition holds right now: the first offset still there and the one the next record will get."""

    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class Available:
    """What the source holds right now."""

    offsets: Mapping[TopicPartition, Offsets]
    topic_ids: Mapping[str, str]


def next_time(now: int, upper: int, previous: Binding | None) -> int:
    """The earliest allowed ``t`` at or after ``now``: never below upper, and past every write time handed
    out.
    """
    floor = upper if previous is None else max(upper, previous.t + previous.width + 1)
    return max(now, floor)


def cut_slices(
    bound: Mapping[TopicPartition, int], available: Mapping[TopicPartition, Offsets], limit: int
) -> tuple[Slice, ...]:
    """The slices of the next binding: from where the last one ended to what is there, at most ``limit``
    offsets.

    A partition seen for the first time starts at its earliest offset. When there is more than the limit,
    every partition gives the same share and what small ones leave over goes to the large ones, so none
    starves.
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
    """How much each partition may give so that the sum is at most ``limit``.

    What cannot be shared evenly goes to one partition after the other, beginning with number ``turn``.
    """
    shares = dict.fromkeys(sorted(waiting), 0)
    left, hungry = limit, list(shares)
    while hungry and (each := left // len(hungry)):
        for place in hungry:
            given = min(each, waiting[place] - shares[place])
            shares[place] += given
            left -= given
        hungry = [place for place in hungry if shares[place] < waiting[place]]
    for number in range(left if hungry else 0):
        shares[hungry[(turn + number) % len(hungry)]] += 1
    return shares


def reached_offsets(
    bound: Mapping[TopicPartition, int], slices: Iterable[Slice]
) -> dict[TopicPartition, int]:
    """The next offset of every partition after these slices were bound."""
    return {**bound, **{(s.topic, s.partition): s.upper for s in slices}}
