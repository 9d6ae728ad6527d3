"""The ``journal`` writer: actions into the tables that kafka-journal's clients read.

One Kafka partition is one part, so an entity is always one task's, in order. What the target has already
(offsets at or below ``pointer2``) is dropped. A message that cannot be understood stops the writer: it is
never skipped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.delivery.pipeline import JournalDeclaration
from tidemark.errors import TidemarkError
from tidemark.journal.effect import Effect, Message
from tidemark.journal.errors import JournalError, Undecodable
from tidemark.journal.fold import fold
from tidemark.journal.record import read_action
from tidemark.log.binding import Binding
from tidemark.log.files import LogFolder
from tidemark.log.manifest import LogFile
from tidemark.writers.journal_schema import create_journal
from tidemark.writers.journal_tables import JournalTables
from tidemark.writers.writer import Part, Written, admit

MESSAGES_AT_ONCE = 16_384
"""How many messages are folded before their effect is written: what bounds the memory of a task."""


class ActionRefused(TidemarkError):
    """A message of the log could not be applied to its entity."""

    def __init__(self, pipeline: str, writer: str, topic: str, reason: str) -> None:
        super().__init__(
            f"{pipeline}/{writer}: topic {topic}: {reason} The position stays before it. "
            "Look at the message, then put the producer right."
        )
        self.args = (pipeline, writer, topic, reason)
        self.pipeline, self.writer, self.topic, self.reason = pipeline, writer, topic, reason

    def __reduce__(self) -> tuple[type["ActionRefused"], tuple[str, str, str, str]]:
        return type(self), (self.pipeline, self.writer, self.topic, self.reason)


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

    def write(self, part: Part, log: LogFolder) -> Written:
        """See ``Writer.write``."""
        (file,) = part.files
        tables = JournalTables(connect(self.connection), self.declared)
        pointer = tables.read_pointer(file.topic, file.partition)
        pattern = re.compile(self.declared.namespaces)
        total = Written()
        for batch in _chunks(log.read_file(file)):
            admitted = admit(batch, pattern)
            total += Written(filtered=batch.num_rows - admitted.num_rows)
            total += self._write_chunk(tables, file.topic, admitted, -1 if pointer is None else pointer)
        return total

    def finish(self, binding: Binding) -> None:
        """Move the pointers: from now on readers take this binding from Cassandra."""
        tables = JournalTables(connect(self.connection), self.declared)
        pattern = re.compile(self.declared.namespaces)
        for s in binding.slices:
            if pattern.search(s.topic):
                write_time = binding.write_time(binding.id_of(s.topic, s.partition, s.upper - 1))
                tables.write_pointer(s.topic, s.partition, s.upper - 1, binding.t, write_time)

    def _write_chunk(self, tables: JournalTables, topic: str, chunk: pa.Table, pointer: int) -> Written:
        entities: dict[str, list[Message]] = {}
        ignored = 0
        for message in self._messages(topic, chunk):
            if message is None or message.offset <= pointer:
                ignored += 1
            else:
                entities.setdefault(message.action.key, []).append(message)
        heads = tables.read_heads(topic, list(entities))
        effects = [self._fold(topic, key, heads.get(key), messages) for key, messages in entities.items()]
        tables.write(effects)
        return Written(
            written=sum(len(messages) for messages in entities.values()),
            ignored=ignored,
            details={
                "events": sum(effect.events for effect in effects),
                "duplicates": sum(len(effect.duplicates) for effect in effects),
            },
        )

    def _messages(self, topic: str, chunk: pa.Table) -> Iterator[Message | None]:
        """The actions of a chunk in id order; None for what is no action."""
        for record in chunk.to_pylist():
            headers = [(header["name"], header["value"]) for header in record["headers"] or ()]
            try:
                action = read_action(
                    record["key"], record["value"], record["timestamp"], record["timestamp_type"], headers
                )
            except Undecodable as error:
                placed = error.at(record["partition"], record["offset"], record["id"])
                raise ActionRefused(self.pipeline, self.name, topic, str(placed)) from None
            if action is None:
                yield None
                continue
            yield Message(
                record["id"], record["partition"], record["offset"], record["write_time"], record["t"], action
            )

    def _fold(self, topic: str, key: str, head: Any, messages: Sequence[Message]) -> Effect:
        zone = ZoneInfo(self.zone)
        try:
            return fold(topic, key, head, messages, segment_size=self.declared.segment_size, zone=zone)
        except JournalError as error:
            raise ActionRefused(self.pipeline, self.name, topic, f"entity {key}: {error}") from None


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches of a file, gathered until a chunk is worth its round trips."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= MESSAGES_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
