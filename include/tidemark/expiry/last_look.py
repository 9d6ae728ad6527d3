"""The last check of entities before they are purged: their heads, the log beyond the writer's position, and
Kafka's tail beyond the log.

They are read in this order, so that no message is missed while it moves from one place to the next: messages
at or below the position are in the heads, and messages published since the log was read are in the tail. A
later check of further entities reads their heads, and of the tail only the records that were added since.
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
from tidemark.log.bindings.bound_offsets import offsets_bound_at
from tidemark.log.model.binding import NOTHING_YET, Offsets
from tidemark.log.read import select

COLUMNS = ("id", "partition", "offset", "key", "value", "timestamp", "timestamp_type", "headers")

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """A message from Kafka or from the log. ``id`` is None for one from Kafka."""

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
        """The key of its entity; None where the record has no key."""
        return None if self.key is None else read_key(self.key)

    def to_newer(self) -> Newer | None:
        """The message as a reason to leave its entity alone; None where it is a mark or no action."""
        try:
            action = read_action(self.key, self.value, self.timestamp, self.timestamp_type, self.headers)
        except Undecodable:
            return Newer(LeftAlone.UNREADABLE, self.partition, self.offset, self.id)
        return newer_of(action, self.partition, self.offset, self.id)


class TopicTail(Protocol):
    """Reads the tail of topics from Kafka."""

    def offsets(self, topic: str) -> Mapping[int, Offsets] | None:
        """The current offsets of every partition of a topic; None where the topic does not exist."""

    def records(self, topic: str, partition: int, first: int, end: int) -> Iterator[ActionRecord]:
        """The records from offset ``first`` to ``end``, which is not included."""


@dataclass(frozen=True, slots=True)
class LastLook:
    """The result of the check of some entities of one topic."""

    heads: Mapping[str, Head]
    newer: Mapping[str, Sequence[Newer]]
    """Messages beyond the writer's position by key, including those that the heads already contain."""
    ends: Mapping[int, int]
    """The first offset of every partition that was not read."""
    log_end: int
    """The last id of the log that was read."""
    is_topic_gone: bool = False
    """Whether the topic was deleted or re-created, so that no purge can be sent."""


@dataclass(frozen=True)
class Look:
    """The sources of a check for the entities of one journal."""

    writer: str
    positions: Positions
    log: PublishedLog
    heads: ExpiryHeads
    tail: TopicTail

    def at(self, topic: str, keys: Collection[str], after: int | None = None) -> LastLook:
        """Checks these entities now, in the log beyond id ``after`` or by default the writer's position."""
        return Looking(self, topic, keys, after).at(keys)


class Looking:
    """Checks the entities of one topic in batches, each batch right before its purges are sent."""

    def __init__(self, look: Look, topic: str, keys: Collection[str], after: int | None = None) -> None:
        self._look, self._topic, self._keys, self._after = look, topic, keys, after
        self._found: dict[str, list[Newer]] = {}
        self._ends: dict[int, int] | None = None
        """The first offset of every partition that was not read yet; None before the first check."""
        self._log_end = NOTHING_YET

    def at(self, keys: Collection[str]) -> LastLook:
        """Checks some of the entities now. Raises OffsetsUnseen where Kafka no longer has offsets to read."""
        look = self._look
        state = look.positions.load(look.writer)
        position = state.position if state else NOTHING_YET
        heads = look.heads.of_entities(self._topic, list(keys))
        if self._ends is None:
            self._ends = self._read_log(position if self._after is None else self._after)
        # A purge for a re-created topic would reach the new topic, which has other entities.
        is_same = state is None or self._topic not in recreated_topics(look.log.control, state)
        is_there = is_same and self._read_tail(self._ends)
        newer = {key: self._found[key] for key in keys if key in self._found}
        return LastLook(heads, newer, dict(self._ends), self._log_end, not is_there)

    def _read_log(self, after: int) -> dict[int, int]:
        """Reads the log and returns the first offset of every partition that is only in Kafka."""
        log = self._look.log.reopened()
        for record in read_logged(log, after, self._topic, self._keys):
            _note(self._found, record)
        self._log_end = log.end
        starts = offsets_bound_at(log.control, log.manifest.t)
        return {partition: first for (topic, partition), first in starts.items() if topic == self._topic}

    def _read_tail(self, ends: dict[int, int]) -> bool:
        """Reads the records that were added to Kafka since, and returns whether the topic exists."""
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
    """The log's messages of these entities with ids above ``after``, in id order."""
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


def _note(found: dict[str, list[Newer]], record: ActionRecord) -> None:
    newer, entity = record.to_newer(), record.entity
    if newer is not None and entity is not None:
        found.setdefault(entity, []).append(newer)


def _records(batch: pa.RecordBatch, keys: Collection[str]) -> Iterator[ActionRecord]:
    wanted = [key is not None and read_key(key) in keys for key in batch.column("key").to_pylist()]
    for row in batch.filter(pa.array(wanted, pa.bool_())).to_pylist() if any(wanted) else ():
        headers = [(header["name"], header["value"]) for header in row.pop("headers") or ()]
        yield ActionRecord(**row, headers=headers)
