"""The last look at entities before they are purged: heads, the log beyond the writer, Kafka beyond the log.

In this order, so that nothing can slip from one place to the next unseen: what is at or below the position
was in the heads when they were read, what was published since is in Kafka's tail. Whoever looks again, some
entities at a time, reads their heads anew and of the tail only what has come since.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tidemark.delivery.published_log import PublishedLog, reading
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.writer_topics import recreated_topics
from tidemark.expiry.decision import LeftAlone, Newer, newer_of
from tidemark.expiry.errors import OffsetsUnseen
from tidemark.expiry.heads import ExpiryHeads
from tidemark.journal.codec.record import read_action, read_key
from tidemark.journal.errors import Undecodable
from tidemark.journal.head import Head
from tidemark.log.model.binding import NOTHING_YET, Binding, Offsets, TopicPartition
from tidemark.log.read import select
from tidemark.log.state.control import LogControl

COLUMNS = ("id", "partition", "offset", "key", "value", "timestamp", "timestamp_type", "headers")

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """A message as Kafka or the log has it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    timestamp_type: int
    headers: Headers
    id: int | None = None

    @property
    def entity(self) -> str | None:
        """Whom it is about."""
        return None if self.key is None else read_key(self.key)

    def to_newer(self) -> Newer | None:
        """The message as a reason to leave its entity alone; None when it is no reason."""
        try:
            action = read_action(self.key, self.value, self.timestamp, self.timestamp_type, self.headers)
        except Undecodable:
            return Newer(LeftAlone.UNREADABLE, self.partition, self.offset, self.id)
        return newer_of(action, self.partition, self.offset, self.id)


class TopicTail(Protocol):
    """Kafka's part."""

    def offsets(self, topic: str) -> Mapping[int, Offsets] | None:
        """What every partition of a topic holds right now; None where there is no such topic."""

    def records(self, topic: str, partition: int, first: int, end: int) -> Iterator[ActionRecord]:
        """The records from an offset up to another one, which is not included."""


@dataclass(frozen=True, slots=True)
class LastLook:
    """What is known of some entities of one topic."""

    heads: Mapping[str, Head]
    newer: Mapping[str, Sequence[Newer]]
    """Messages beyond the writer's position, by entity; those that the heads know are among them."""
    ends: Mapping[int, int]
    """The first offset of every partition that was not looked at."""
    log_end: int
    """The last id that was looked at in the log."""
    is_topic_gone: bool = False
    """Whether there is nowhere to send a purge to."""


@dataclass(frozen=True)
class Look:
    """Where to look for the entities of one journal."""

    writer: str
    positions: Positions
    log: PublishedLog
    heads: ExpiryHeads
    tail: TopicTail

    def at(self, topic: str, keys: Collection[str], after: int | None = None) -> LastLook:
        """Look at these entities now; at the log behind the writer, or behind an id that is given."""
        return Looking(self, topic, keys, after).at(keys)


class Looking:
    """Entities of one topic that are looked at some at a time, each right before it is purged."""

    def __init__(self, look: Look, topic: str, keys: Collection[str], after: int | None = None) -> None:
        self._look, self._topic, self._keys, self._after = look, topic, keys, after
        self._found: dict[str, list[Newer]] = {}
        self._ends: dict[int, int] | None = None
        """The first offset of every partition that was not looked at yet; None before the first look."""
        self._log_end = NOTHING_YET

    def at(self, keys: Collection[str]) -> LastLook:
        """What is known of some of the entities now."""
        look = self._look
        state = look.positions.load(look.writer)
        position = state.position if state else NOTHING_YET
        heads = look.heads.of_entities(self._topic, list(keys))
        if self._ends is None:
            self._ends = self._read_log(position if self._after is None else self._after)
        # A purge for a topic that was made again would reach the new one, whose entities are others.
        is_same = state is None or self._topic not in recreated_topics(look.log.control, state)
        is_there = is_same and self._read_tail(self._ends)
        newer = {key: self._found[key] for key in keys if key in self._found}
        return LastLook(heads, newer, dict(self._ends), self._log_end, not is_there)

    def _read_log(self, after: int) -> dict[int, int]:
        """Look at the log; where Kafka goes on."""
        log = self._look.log.reopened()
        for record in read_logged(log, after, self._topic, self._keys):
            _note(self._found, record)
        self._log_end = log.end
        starts = published_offsets(log.control, log.manifest.t)
        return {partition: first for (topic, partition), first in starts.items() if topic == self._topic}

    def _read_tail(self, ends: dict[int, int]) -> bool:
        """Look at what has come to Kafka since; whether the topic is there at all."""
        tail = self._look.tail
        partitions = tail.offsets(self._topic)
        for partition, held in sorted((partitions or {}).items()):
            first = ends.get(partition, held.earliest)
            if not held.earliest <= first <= held.latest:
                pipeline = self._look.log.control.pipeline
                raise OffsetsUnseen(pipeline, self._topic, partition, first, held)
            for record in tail.records(self._topic, partition, first, held.latest):
                if record.entity in self._keys:
                    _note(self._found, record)
            ends[partition] = held.latest
        return partitions is not None


def read_logged(log: PublishedLog, after: int, topic: str, keys: Collection[str]) -> Iterator[ActionRecord]:
    """The log's messages about these entities beyond an id, in id order."""
    if after >= log.end:
        return
    with reading():
        chosen = select(
            log.manifest,
            log.folder.root,
            first_id=after + 1,
            namespaces=[topic],
            allow_compacted=True,
        )
        for batch in chosen.batches(COLUMNS):
            yield from _records(batch, keys)


def published_offsets(control: LogControl, t: int) -> dict[TopicPartition, int]:
    """The next offset of every partition that a log published up to ``t`` does not have."""
    reached = control.bindings_head().reached
    return first_unpublished(reached, control.bindings_younger(t))


def first_unpublished(
    reached: Mapping[TopicPartition, int], unpublished: Sequence[Binding]
) -> dict[TopicPartition, int]:
    """The same, from how far the source is bound and what of it is not published."""
    found = dict(reached)
    for binding in unpublished:
        for s in binding.slices:
            place = (s.topic, s.partition)
            found[place] = min(s.lower, found.get(place, s.lower))
    return found


def _note(found: dict[str, list[Newer]], record: ActionRecord) -> None:
    newer, entity = record.to_newer(), record.entity
    if newer is not None and entity is not None:
        found.setdefault(entity, []).append(newer)


def _records(batch: pa.RecordBatch, keys: Collection[str]) -> Iterator[ActionRecord]:
    wanted = [key is not None and read_key(key) in keys for key in batch.column("key").to_pylist()]
    for row in batch.filter(pa.array(wanted, pa.bool_())).to_pylist() if any(wanted) else ():
        headers = [(header["name"], header["value"]) for header in row.pop("headers") or ()]
        yield ActionRecord(**row, headers=headers)
