"""``tidemark.Journal``: append to the entities of one topic, and read them without waiting for replication.

Actions are sent to Kafka. Reads take replicated events from Cassandra and the rest from Kafka. It never
writes to Cassandra, and never sends an action a second time.
"""

import socket
from collections.abc import Generator, Iterable, Mapping
from datetime import timedelta
from typing import Any, Protocol, Self
from uuid import uuid4

from tidemark.client.actions import Checks
from tidemark.client.errors import Conflict, Misplaced, NotSent, TopicUnconfirmed
from tidemark.client.events import Event, JournalEvent
from tidemark.client.journal_tables import CassandraTables
from tidemark.client.producer import ActionSender, sent_version
from tidemark.client.reader import EntityReader, EntityStanding, Tail
from tidemark.client.settings import JournalSettings, declare, settings_of
from tidemark.client.table_events import ReadableTables
from tidemark.client.tail import JournalTail
from tidemark.client.topic_identity import Guard, TopicGuard, Unguarded
from tidemark.client.topic_ids import KafkaTopics
from tidemark.client.topic_record import ControlLedger, ControlPlane
from tidemark.clock import wall_clock_millis
from tidemark.connections import CassandraConnection, KafkaConnection
from tidemark.journal.action import Action, Delete, Mark, Purge
from tidemark.journal.segments import DEFAULT_SEGMENT_SIZE
from tidemark.kafka.producer import Placed
from tidemark.pipeline.connections import Lookup
from tidemark.pipeline.model import Isolation

PATIENCE = 30.0
"""Seconds after which Kafka is said not to answer."""


class Sending(Protocol):
    """What takes actions."""

    def send(self, action: Action, further: Mapping[str, str] | None = None) -> Placed:
        """Send one; returns when it is acknowledged."""

    def close(self) -> None:
        """Stop."""


class ClosableTail(Tail, Protocol):
    """A tail whose clients can be closed."""

    def close(self) -> None:
        """Close them."""


class Journal:
    """One topic's journal. Blocks; may be shared by threads, each with its own reads."""

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
    ) -> None:
        """Name the journal; nothing is connected to before it is used.

        Args:
            topic: The Kafka topic whose entities these are.
            kafka: How Kafka is reached.
            cassandra: How the cluster with the journal's tables is reached.
            keyspace: The keyspace of the tables.
            tables: Other names than kafka-journal's, such as ``{"pointer2": "pointers"}``.
            consistency: The consistency level of reads from Cassandra.
            isolation: ``read_committed``, or ``read_uncommitted`` to see open transactions too.
            correlate: False hands out rows of other incarnations too, with a warning in the log.
            origin: The sender's name in every record; this machine's name when left out.
            patience: Seconds after which Kafka is said not to answer.

        Raises:
            BadInput: The topic's name or the origin cannot be used.
        """
        declared = declare(keyspace, tables, consistency)
        settings = JournalSettings(topic, kafka, cassandra, declared, Isolation(isolation))
        self._connect(settings, correlate, origin, patience)

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
    ) -> Self:
        """The journal that a pipeline replicates: topic, keyspace, isolation and connections from its file.

        Args:
            name: The pipeline's name.
            topic: One of its topics; needed where it has several.
            writer: One of its journal writers; needed where it has several.
            look_up: Finds a connection by its name; without it, connections are taken from the environment
                variables ``AIRFLOW_CONN_…``.
            correlate: See ``Journal``.
            origin: See ``Journal``.
            patience: See ``Journal``.

        Returns:
            The journal, not connected yet.
        """
        settings = settings_of(name, topic, writer, look_up)
        return cls.of_settings(settings, correlate=correlate, origin=origin, patience=patience)

    @classmethod
    def of_settings(
        cls,
        settings: JournalSettings,
        *,
        correlate: bool = True,
        origin: str | None = None,
        patience: float = PATIENCE,
    ) -> Self:
        """The journal that these settings are for.

        Args:
            settings: Topic, tables and connections.
            correlate: See ``Journal``.
            origin: See ``Journal``.
            patience: See ``Journal``.

        Returns:
            The journal, not connected yet.
        """
        journal = cls.__new__(cls)
        journal._connect(settings, correlate, origin, patience)
        return journal

    def _connect(
        self, settings: JournalSettings, correlate: bool, origin: str | None, patience: float
    ) -> None:
        topic, kafka = settings.topic, settings.kafka
        tail = JournalTail(topic, kafka, settings.isolation.value, patience)
        tables = CassandraTables(topic, settings.cassandra, settings.declared)
        control = settings.control or ControlPlane(settings.cassandra, None)
        ledger = ControlLedger(topic, control, settings.declared, tables)
        topics = KafkaTopics(topic, kafka, patience)
        guard = TopicGuard(topic, settings.declared.keyspace, topics, ledger)
        sender, size = ActionSender(topic, kafka, patience), settings.declared.segment_size
        self._assemble(topic, sender, tables, tail, correlate, origin, guard, size)

    def _assemble(
        self,
        topic: str,
        sender: Sending,
        tables: ReadableTables,
        tail: ClosableTail,
        correlate: bool = True,
        origin: str | None = None,
        guard: Guard | None = None,
        segment_size: int = DEFAULT_SEGMENT_SIZE,
    ) -> None:
        self._topic, self._sender, self._tail = topic, sender, tail
        self._guard = guard or Unguarded()
        self._checks = Checks(topic)
        self._origin = self._checks.origin(socket.gethostname() if origin is None else origin)
        self._reader = EntityReader(
            topic, tables, tail, self._mark, self._guard, correlate=correlate, segment_size=segment_size
        )

    @property
    def topic(self) -> str:
        """The topic whose entities these are."""
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
        """Append events to an entity, all of them or none, in one record.

        The events' numbers follow one another and should follow the entity's last one. Without
        ``expected_last``, a number that was used already is taken like any other, and the entity cannot be
        read any more.

        Args:
            key: The entity's key.
            events: The events, at least one.
            expire_after: How long the entity lives from now on, until the next append says otherwise.
            metadata: Any JSON value, kept in the record's header.
            payload_metadata: Any JSON value, kept with the payload.
            headers: Further headers of the Kafka record.
            expected_last: The number of the entity's last event, 0 for no entity. It is looked up first.

        Returns:
            The partition and the offset of the record, once all replicas in sync have it.

        Raises:
            BadInput: The append would stop replication, or cannot be sent as it is.
            Conflict: The entity's last event has another number than ``expected_last``.
            Misplaced: The tables have the entity from another partition.
            NotSent: Kafka did not acknowledge it; ``is_certain`` says whether it can be there all the same.
            TopicRecreated: The topic was deleted and made again.
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
        """The entity's state. Raises ``Misplaced`` where replication would stop at a record sent to it."""
        standing = self._reader.standing(key)
        if standing and standing.kept not in (None, standing.partition):
            raise Misplaced(self._topic, key, standing.kept or 0, standing.partition)
        return standing

    def delete(self, key: str, to: int, *, headers: Mapping[str, str] | None = None) -> Placed | None:
        """Delete the entity's first events.

        Args:
            key: The entity's key.
            to: The number of the last event to delete; never past the entity's last one.
            headers: Further headers of the Kafka record.

        Returns:
            The partition and the offset of the record; None when there is no such entity, and nothing was
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
        """Remove the entity with everything it had; what is appended later begins anew.

        Args:
            key: The entity's key.
            headers: Further headers of the Kafka record.

        Returns:
            The partition and the offset of the record; one is also sent when there is no such entity.

        Raises:
            See ``append``.
        """
        key = self._checks.key(key)
        further = self._checks.headers(key, headers)
        if standing := self._standing(key):
            self._checks.span(key, "purge", standing.delete_to, standing.seq_nr, standing.segment_size)
        return self._send(Purge(key, wall_clock_millis(), self._origin, sent_version()), further)

    def read(self, key: str, from_seq_nr: int = 1) -> Generator[JournalEvent]:
        """The entity's events in their order, as they are when the first of them is asked for.

        Args:
            key: The entity's key.
            from_seq_nr: The number of the first event that is wanted.

        Returns:
            An iterator that reads while it is asked. When it raises, the events it gave are right, but not
            all there are. It is empty when there is no such entity.

        Raises:
            ChangedWhileReading: The entity was deleted from or purged meanwhile; read again.
            TablesUnreadable: Cassandra did not answer.
            TailUnreadable: Kafka did not answer.
            TailLost: Kafka has removed records before they were replicated.
            TopicRecreated: The topic was deleted and made again.
        """
        key = self._checks.key(key)
        return self._reader.read(key, self._checks.number(key, from_seq_nr, "`from_seq_nr`"))

    def pointer(self, key: str) -> int | None:
        """The sequence number of the entity's last event.

        Args:
            key: The entity's key.

        Returns:
            The number of its last event, deleted or not; None when there is no such entity.

        Raises:
            See ``read``.
        """
        standing = self._reader.standing(self._checks.key(key))
        return None if standing is None else standing.seq_nr

    def mark(self, key: str) -> Placed:
        """Leave a mark in the entity's partition: everything acknowledged before has a lower offset.

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
        """Send an action to the topic that the tables are filled from, and to no other one."""
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
        self._sender.close()
        self._tail.close()
        self._guard.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
