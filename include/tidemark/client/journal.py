"""``tidemark.Journal``: appends to the entities of one topic, and reads them without waiting for replication.

Actions are sent to Kafka. Reads return replicated events from Cassandra and the others from Kafka. Never
writes to Cassandra, and never retries an action that may have been sent.
"""

import os
import socket
from collections.abc import Generator, Iterable, Mapping
from datetime import timedelta
from typing import Any, Protocol, Self
from uuid import uuid4
from weakref import WeakSet

from tidemark.client.actions import Checks
from tidemark.client.errors import Conflict, Misplaced, NotSent, TopicUnconfirmed
from tidemark.client.events import Event, JournalEvent
from tidemark.client.producer import ActionSender, sent_version
from tidemark.client.reader import EntityReader, EntityStanding, Tail
from tidemark.client.settings import JournalSettings, declare, settings_of
from tidemark.client.tables.active_tables import ActiveTables, TablesInUse, UsedTables
from tidemark.client.tail.head_cache import CACHE_BYTES, CACHE_RECORDS, CacheBounds, CacheInfo
from tidemark.client.tail.journal_tail import JournalTail, KafkaTailSource
from tidemark.client.topic_identity import Guard, TopicGuard, Unguarded
from tidemark.client.topic_ids import KafkaTopics
from tidemark.client.topic_record import ControlLedger, ControlPlane
from tidemark.clock import wall_clock_millis
from tidemark.connections import CassandraConnection, KafkaConnection
from tidemark.journal.action import Action, Delete, Mark, Purge
from tidemark.kafka.producer import Placed
from tidemark.pipeline.connections import Lookup
from tidemark.pipeline.model import Isolation

PATIENCE = 30.0
"""The default timeout of Kafka, in seconds."""

_journals: "WeakSet[Journal]" = WeakSet()
"""The open journals of this process."""
_of_parents: list[object] = []
"""Kafka clients of the process that this one was forked from. They can be neither used nor freed here."""


def _connect_all_again() -> None:
    for journal in list(_journals):
        journal._connect_again()


os.register_at_fork(after_in_child=_connect_all_again)


class Sending(Protocol):
    """Sends actions to a topic."""

    def send(self, action: Action, further: Mapping[str, str] | None = None) -> Placed:
        """Sends an action with further headers. Returns when Kafka has acknowledged it."""

    def close(self) -> None:
        """Closes the Kafka client."""


class ClosableTail(Tail, Protocol):
    """A tail whose clients can be closed."""

    def cache_info(self) -> CacheInfo:
        """The state of the cache."""

    def close(self) -> None:
        """Closes the Kafka clients."""


class Journal:
    """The journal of one topic. Calls block. Threads may share it, but not the iterator of one ``read``."""

    def __init__(
        self,
        topic: str,
        *,
        kafka: KafkaConnection,
        cassandra: CassandraConnection,
        keyspace: str = "journal",
        tables: Mapping[str, str] | None = None,
        consistency: str = "LOCAL_QUORUM",
        isolation: str = "read_committed",
        correlate: bool = True,
        origin: str | None = None,
        patience: float = PATIENCE,
        cache_bytes: int = CACHE_BYTES,
        cache_records: int = CACHE_RECORDS,
    ) -> None:
        """Describes the journal. Connections are made by the first call that needs them.

        Args:
            topic: The Kafka topic.
            kafka: The connection to Kafka.
            cassandra: The connection to the cluster with the journal's tables.
            keyspace: The keyspace of the tables.
            tables: Table names that differ from kafka-journal's, such as ``{"pointer2": "pointers"}``.
            consistency: The consistency level of reads from Cassandra.
            isolation: ``read_committed``, or ``read_uncommitted`` to read open and aborted transactions too.
            correlate: False returns rows of other incarnations too, and logs a warning.
            origin: The sender's name, stored in every record; None: this machine's host name.
            patience: The timeout of Kafka, in seconds.
            cache_bytes: The most memory for what was read of Kafka's tail, over all partitions; 0: none.
            cache_records: The most records in that memory; 0: none.

        Raises:
            BadInput: The topic's name, the origin or a bound of the cache is invalid.
        """
        declared = declare(keyspace, tables, consistency)
        settings = JournalSettings(topic, kafka, cassandra, declared, Isolation(isolation))
        self._connect(settings, correlate, origin, patience, CacheBounds(cache_bytes, cache_records))

    @classmethod
    def of_pipeline(
        cls,
        name: str,
        *,
        topic: str | None = None,
        writer: str | None = None,
        look_up: Lookup | None = None,
        correlate: bool = True,
        origin: str | None = None,
        patience: float = PATIENCE,
        cache_bytes: int = CACHE_BYTES,
        cache_records: int = CACHE_RECORDS,
    ) -> Self:
        """The journal that a pipeline replicates, configured by the pipeline's file.

        It reads the tables of the writer's active rendition, and asks every 10 seconds which one that is.

        Args:
            name: The pipeline's name.
            topic: One of its topics; required where it has several.
            writer: One of its journal writers; required where it has several.
            look_up: Returns a connection by its name; None: connections come from the environment variables
                ``AIRFLOW_CONN_…``.
            correlate: See ``Journal``.
            origin: See ``Journal``.
            patience: See ``Journal``.
            cache_bytes: See ``Journal``.
            cache_records: See ``Journal``.

        Returns:
            The journal, not connected yet.
        """
        settings = settings_of(name, topic, writer, look_up)
        return cls.of_settings(
            settings,
            correlate=correlate,
            origin=origin,
            patience=patience,
            cache_bytes=cache_bytes,
            cache_records=cache_records,
        )

    @classmethod
    def of_settings(
        cls,
        settings: JournalSettings,
        *,
        correlate: bool = True,
        origin: str | None = None,
        patience: float = PATIENCE,
        cache_bytes: int = CACHE_BYTES,
        cache_records: int = CACHE_RECORDS,
    ) -> Self:
        """The journal that the settings describe.

        Args:
            settings: Topic, tables and connections.
            correlate: See ``Journal``.
            origin: See ``Journal``.
            patience: See ``Journal``.
            cache_bytes: See ``Journal``.
            cache_records: See ``Journal``.

        Returns:
            The journal, not connected yet.
        """
        journal = cls.__new__(cls)
        journal._connect(settings, correlate, origin, patience, CacheBounds(cache_bytes, cache_records))
        return journal

    def _connect(
        self,
        settings: JournalSettings,
        correlate: bool,
        origin: str | None,
        patience: float,
        bounds: CacheBounds,
    ) -> None:
        topic, kafka = settings.topic, settings.kafka
        bounds = Checks(topic).bounds(bounds)
        source = KafkaTailSource(topic, kafka, settings.isolation.value, patience)
        tail = JournalTail(topic, source, bounds, patience)
        tables = ActiveTables(topic, settings.cassandra, settings.declared, settings.ask_active)
        control = settings.control or ControlPlane(settings.cassandra, None)
        ledger = ControlLedger(topic, control, settings.declared, tables)
        topics = KafkaTopics(topic, kafka, patience)
        guard = TopicGuard(topic, settings.declared.keyspace, topics, ledger)
        self._assemble(topic, ActionSender(topic, kafka, patience), tables, tail, correlate, origin, guard)
        self._settings = (settings, correlate, origin, patience, bounds)
        _journals.add(self)

    def _connect_again(self) -> None:
        """Replaces the clients in a forked process, where their threads and connections do not exist."""
        # Closing or freeing a client waits for its threads.
        _of_parents.append((self._sender, self._tail, self._guard))
        self._connect(*self._settings)

    def _assemble(
        self,
        topic: str,
        sender: Sending,
        tables: TablesInUse,
        tail: ClosableTail,
        correlate: bool = True,
        origin: str | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._topic, self._sender, self._tail, self._tables = topic, sender, tail, tables
        self._guard = guard or Unguarded()
        self._checks = Checks(topic)
        self._origin = self._checks.origin(socket.gethostname() if origin is None else origin)
        self._correlate = correlate
        self._reads: tuple[UsedTables, EntityReader] | None = None

    def _reader(self, key: str) -> EntityReader:
        """Reads from the tables of the rendition that is active now."""
        used, reads = self._tables.now(key), self._reads
        if reads is None or reads[0] != used:
            reader = EntityReader(
                self._topic,
                used.tables,
                self._tail,
                self._mark,
                self._guard,
                correlate=self._correlate,
                segment_size=used.segment_size,
            )
            reads = self._reads = used, reader
        return reads[1]

    @property
    def topic(self) -> str:
        """The name of the Kafka topic."""
        return self._topic

    def append(
        self,
        key: str,
        events: Iterable[Event],
        *,
        expire_after: str | timedelta | None = None,
        metadata: Any = None,
        payload_metadata: Any = None,
        headers: Mapping[str, str] | None = None,
        expected_last: int | None = None,
    ) -> Placed:
        """Appends events to an entity atomically, in one Kafka record.

        The events' numbers must be consecutive, and should follow the entity's last number. Without
        ``expected_last`` that is not checked: an append with a number that exists already is sent, and the
        entity cannot be read past that number afterwards.

        Args:
            key: The entity's key.
            events: The events, at least one.
            expire_after: The entity's time to live from now on, as a ``timedelta`` or text such as
                ``30 days``. Every append replaces it; None: the entity does not expire.
            metadata: A JSON value that is stored in the record's header.
            payload_metadata: A JSON value that is stored with the payload.
            headers: Further headers of the Kafka record.
            expected_last: The number that the entity's last event must have; 0 where the entity must not
                exist. It is read before the append is sent; this is no lock. None: not checked.

        Returns:
            The partition and the offset of the record, after all in-sync replicas have acknowledged it.

        Raises:
            BadInput: An argument is invalid, or the record would stop replication.
            Conflict: The entity's last event has another number than ``expected_last``.
            Misplaced: The tables have the entity from another partition.
            NotSent: Kafka did not acknowledge the record. ``is_certain`` is True where it was certainly not
                stored.
            TopicRecreated: The topic was deleted and created again.
        """
        key = self._checks.key(key)
        found = self._checks.events(key, events)
        action = self._checks.append(
            key,
            wall_clock_millis(),
            found,
            origin=self._origin,
            version=sent_version(),
            expire_after=expire_after,
            metadata=metadata,
            payload_metadata=payload_metadata,
            headers=headers,
        )
        if expected_last is not None:
            self._expect(key, self._checks.next_number(key, expected_last, found))
        return self._send(action)

    def _expect(self, key: str, last: int) -> None:
        standing = self._standing(key)
        if last != (standing.seq_nr if standing else 0):
            raise Conflict(self._topic, key, last, standing.seq_nr if standing else None)

    def _standing(self, key: str) -> EntityStanding | None:
        """The entity's state. Raises ``Misplaced`` where replication would stop at a record of this key."""
        standing = self._reader(key).standing(key)
        if standing and standing.kept not in (None, standing.partition):
            raise Misplaced(self._topic, key, standing.kept or 0, standing.partition)
        return standing

    def delete(self, key: str, to: int, *, headers: Mapping[str, str] | None = None) -> Placed | None:
        """Deletes the entity's events up to and including a number.

        Args:
            key: The entity's key.
            to: The number of the last event to delete. Above the entity's last number, that one is used.
            headers: Further headers of the Kafka record.

        Returns:
            The partition and the offset of the record; None where the entity does not exist and nothing was
            sent.

        Raises:
            See ``append``.
        """
        key = self._checks.key(key)
        to, further = self._checks.number(key, to, "`to`"), self._checks.headers(key, headers)
        standing = self._standing(key)
        if standing is None:
            return None
        to = min(to, standing.seq_nr)
        self._checks.span(key, "delete", standing.delete_to + 1, to, standing.segment_size)
        action = Delete(key, wall_clock_millis(), to, self._origin, sent_version())
        return self._send(action, further)

    def purge(self, key: str, *, headers: Mapping[str, str] | None = None) -> Placed:
        """Removes the whole entity. A later append begins a new incarnation.

        Args:
            key: The entity's key.
            headers: Further headers of the Kafka record.

        Returns:
            The partition and the offset of the record, which is sent even where the entity does not exist.

        Raises:
            See ``append``.
        """
        key = self._checks.key(key)
        further = self._checks.headers(key, headers)
        if standing := self._standing(key):
            self._checks.span(key, "purge", standing.delete_to, standing.seq_nr, standing.segment_size)
        return self._send(Purge(key, wall_clock_millis(), self._origin, sent_version()), further)

    def read(self, key: str, from_seq_nr: int = 1) -> Generator[JournalEvent]:
        """Reads the entity's events in order, as they were at one moment after the first one was requested.

        Args:
            key: The entity's key.
            from_seq_nr: The number of the first event to return, from 1.

        Returns:
            A lazy iterator; it is empty where the entity does not exist. When it raises, the events that it
            has returned are correct but incomplete.

        Raises:
            BadRecord: A record of the entity in Kafka cannot be decoded.
            ChangedWhileReading: Events were deleted or the entity was purged during the read; read again.
            DuplicateSeqNr: Two events have the same number.
            TablesUnreadable: Cassandra did not answer.
            TailUnreadable: Kafka did not answer.
            TailLost: Kafka has removed records before they were replicated.
            TopicRecreated: The topic was deleted and created again.
        """
        key = self._checks.key(key)
        return self._read(key, self._checks.number(key, from_seq_nr, "`from_seq_nr`"))

    def _read(self, key: str, first: int) -> Generator[JournalEvent]:
        yield from self._reader(key).read(key, first)

    def pointer(self, key: str) -> int | None:
        """The sequence number of the entity's last event.

        Args:
            key: The entity's key.

        Returns:
            The number, of a deleted event too; None where the entity does not exist.

        Raises:
            See ``read``.
        """
        key = self._checks.key(key)
        standing = self._reader(key).standing(key)
        return None if standing is None else standing.seq_nr

    def cache_info(self) -> CacheInfo:
        """The state of the cache of Kafka's tail: hits, misses, records and bytes.

        Returns:
            The counts since the journal was opened, and what is kept now.
        """
        return self._tail.cache_info()

    def mark(self, key: str) -> Placed:
        """Sends a mark to the entity's partition. Every record acknowledged before has a lower offset.

        A mark changes no entity.

        Args:
            key: The entity's key.

        Returns:
            The partition and the offset of the mark.

        Raises:
            See ``append``.
        """
        action = Mark(self._checks.key(key), wall_clock_millis(), str(uuid4()), self._origin, sent_version())
        return self._send(action)

    def _send(self, action: Action, further: Mapping[str, str] | None = None) -> Placed:
        """Sends an action, unless the topic is not the one that the tables were filled from."""
        try:
            self._guard.check(action.key)
        except TopicUnconfirmed as error:
            name = type(action).__name__.lower()
            raise NotSent(self._topic, action.key, name, error.reason, is_certain=True) from error
        return self._sender.send(action, further)

    def _mark(self, key: str) -> Placed:
        return self._sender.send(Mark(key, wall_clock_millis(), str(uuid4()), self._origin, sent_version()))

    def close(self) -> None:
        """Closes the Kafka clients. Cassandra sessions are shared by the process and stay open."""
        _journals.discard(self)
        self._sender.close()
        self._tail.close()
        self._guard.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
