"""The ``journal`` writer: actions into the tables that kafka-journal's clients read.

One Kafka partition is one part, so an entity is always one task's, in order. What the target has already
(offsets at or below ``pointer2``) is dropped. A message that cannot be understood stops the writer: it is
never skipped.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from tidemark.cassandra.session import connect, server_time
from tidemark.connections import CassandraConnection
from tidemark.delivery.pipeline import JournalDeclaration
from tidemark.delivery.writer import BadMessage, Part, Writing, Written, admit
from tidemark.journal.action import Delete, Purge
from tidemark.journal.effect import Effect, Message
from tidemark.journal.errors import JournalError, Undecodable
from tidemark.journal.fold import fold
from tidemark.journal.head import Head
from tidemark.journal.record import read_action
from tidemark.log.binding import Binding
from tidemark.log.manifest import LogFile
from tidemark.writers.journal_schema import create_journal
from tidemark.writers.journal_tables import JournalTables

MESSAGES_AT_ONCE = 16_384
"""How many messages are folded before their effect is written: what bounds the memory of a task."""


@dataclass(frozen=True)
class JournalWriter:
    """Writes one journal keyspace."""

    pipeline: str
    declared: JournalDeclaration
    connection: CassandraConnection
    zone: str

    @property
    def name(self) -> str:
        """See ``Writer.name``."""
        return self.declared.name

    @property
    def shape(self) -> Mapping[str, Any]:
        """See ``Writer.shape``."""
        keys = {"kind", "keyspace", "tables", "segment_size", "namespaces"}
        return {**self.declared.model_dump(mode="json", include=keys), "timezone": self.zone}

    def prepare(self) -> None:
        """Make keyspace and tables."""
        create_journal(connect(self.connection), self.pipeline, self.declared)

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        """One part per Kafka partition that the filter admits; a file holds one namespace, its topic's."""
        return [Part(binding, (file,)) for file in files]

    def write(self, part: Part, writing: Writing) -> Written:
        """See ``Writer.write``."""
        tables = JournalTables(connect(self.connection), self.declared)
        pattern = re.compile(self.declared.namespaces)
        total = Written()
        pointers: dict[tuple[str, int], int] = {}
        for batch in _chunks(writing.batches):
            admitted = admit(batch, pattern)
            total += Written(filtered=batch.num_rows - admitted.num_rows)
            if admitted.num_rows == 0:
                continue
            place = admitted["topic"][0].as_py(), admitted["partition"][0].as_py()
            if place not in pointers:
                found = tables.read_pointer(*place)
                pointers[place] = -1 if found is None else found
            writing.lease.check()
            total += self._write_chunk(tables, place[0], admitted, pointers[place])
        return total

    def finish(self, part: Part, writing: Writing) -> None:
        """Move the pointers: from now on readers take this binding from Cassandra."""
        binding = part.binding
        writing.lease.check()
        tables = JournalTables(connect(self.connection), self.declared)
        pattern = re.compile(self.declared.namespaces)
        for s in binding.slices:
            if pattern.search(s.topic):
                write_time = binding.write_time(binding.id_of(s.topic, s.partition, s.upper - 1))
                tables.write_pointer(s.topic, s.partition, s.upper - 1, binding.t, write_time)

    def is_reachable(self) -> None:
        """Ask Cassandra for the time."""
        server_time(connect(self.connection))

    def refuses_acknowledgement(self, message: Mapping[str, Any]) -> str | None:
        """What was applied half cannot be taken back: a delete or a purge can only be tried again."""
        headers = [(header["name"], header["value"]) for header in message["headers"] or ()]
        times = (message["timestamp"], message["timestamp_type"])
        try:
            action = read_action(message["key"], message["value"], *times, headers)
        except Undecodable:
            return None
        if isinstance(action, Delete | Purge):
            return "a delete or a purge may be applied half by now; it can only be tried again."
        return None

    def _write_chunk(self, tables: JournalTables, topic: str, chunk: pa.Table, pointer: int) -> Written:
        """Write everything below the first bad message; then say which one that is."""
        messages, ignored, bad = self._read(topic, chunk, pointer)
        effects: list[Effect] = []
        heads = tables.read_heads(topic, list({message.action.key for message in messages}))
        while True:
            try:
                effects = self._fold(topic, heads, messages)
                break
            except BadMessage as worse:
                bad = worse
                messages = [message for message in messages if message.id < worse.id]
        tables.write(effects)
        if bad:
            raise bad
        return Written(
            written=len(messages),
            ignored=ignored,
            details={
                "events": sum(effect.events for effect in effects),
                "duplicates": sum(len(effect.duplicates) for effect in effects),
            },
        )

    def _read(
        self, topic: str, chunk: pa.Table, pointer: int
    ) -> tuple[list[Message], int, BadMessage | None]:
        """The actions beyond the pointer in id order, up to what cannot be understood; how many were none."""
        messages: list[Message] = []
        ignored = 0
        for record in chunk.to_pylist():
            headers = [(header["name"], header["value"]) for header in record["headers"] or ()]
            place = (record["partition"], record["offset"])
            times = (record["timestamp"], record["timestamp_type"])
            try:
                action = read_action(record["key"], record["value"], *times, headers)
            except Undecodable as error:
                return messages, ignored, self._bad(topic, *place, record["id"], error.reason)
            if action is None or record["offset"] <= pointer:
                ignored += 1
            else:
                messages.append(Message(record["id"], *place, record["write_time"], record["t"], action))
        return messages, ignored, None

    def _fold(self, topic: str, heads: Mapping[str, Any], messages: Sequence[Message]) -> list[Effect]:
        entities: dict[str, list[Message]] = {}
        for message in messages:
            entities.setdefault(message.action.key, []).append(message)
        return [self._fold_one(topic, key, heads.get(key), actions) for key, actions in entities.items()]

    def _fold_one(self, topic: str, key: str, head: Head | None, actions: Sequence[Message]) -> Effect:
        """What an entity's actions amount to; blames the first one that cannot be applied."""
        size, zone = self.declared.segment_size, ZoneInfo(self.zone)

        def fails_by(last: int) -> bool:
            try:
                fold(topic, key, head, actions[: last + 1], segment_size=size, zone=zone)
            except JournalError:
                return True
            return False

        try:
            return fold(topic, key, head, actions, segment_size=size, zone=zone)
        except JournalError as error:
            bad = actions[bisect_left(range(len(actions)), True, key=fails_by)]
            problem = f"entity {key}: {error}"
            raise self._bad(topic, bad.partition, bad.offset, bad.id, problem) from None

    def _bad(self, topic: str, partition: int, offset: int, id_: int, problem: str) -> BadMessage:
        return BadMessage(self.pipeline, self.name, topic, partition, offset, id_, problem)


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches of a file, gathered until a chunk is worth its round trips."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= MESSAGES_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
