"""What a collection writer does with Cassandra: the one door of the kind to its tables.

Tests put tables in memory in its place. Nothing here decides which rows there are.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tidemark.cassandra.scan.clustering import CqlOperator, Restriction
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import Extract
from tidemark.cassandra.session import connect, server_time
from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow
from tidemark.collection.tables.codec.cells import StoredRows, integer
from tidemark.collection.tables.create import create_collection
from tidemark.collection.tables.identity import identify
from tidemark.collection.tables.layout import MESSAGE_ID, PARTITION, TOPIC, CollectionPlace, T
from tidemark.collection.tables.scanning import newest_up_to, rows_at, rows_of_keys
from tidemark.collection.tables.tables import CollectionTables
from tidemark.collection.tables.writing import RowWriter
from tidemark.connections import CassandraConnection
from tidemark.delivery.writer import TargetIdentity

NEVER = 0
"""A time that no binding has: what is written for it is seen by no reader."""


class KeyOrigin(NamedTuple):
    """Where a key of a topic came from before a message.

    Attributes:
        message_id: The message that had it.
        partition: The partition of that message.
    """

    message_id: int
    partition: int


Origins = dict[tuple[Key, str], KeyOrigin]
"""By key and topic."""


class AddsRows(Protocol):
    """Adds rows that are durable when the writing ends."""

    def add(self, rows: Iterable[CollectionRow]) -> None:
        """Add rows in any order."""


@dataclass(frozen=True)
class CollectionTarget:
    """The tables of one collection.

    Attributes:
        connection: Cassandra.
        place: The tables.
    """

    connection: CassandraConnection
    place: CollectionPlace

    def create(self) -> None:
        """Create the tables where they are missing; refuses others of the same names."""
        create_collection(connect(self.connection), self.place)

    def identify(self) -> TargetIdentity:
        """The identity of the tables as they are now. Raises CollectionMissing."""
        return identify(connect(self.connection), self.place)

    def is_empty(self) -> bool:
        """Whether there is no row and no change in them."""
        session = connect(self.connection)
        tables = (self.place.rows, self.place.changes)
        return not any(session.execute(f"SELECT * FROM {one.cql_name} LIMIT 1").one() for one in tables)

    def origins(self, t: int, keys: Iterable[Key]) -> Origins:
        """Where keys came from before the time ``t``, or, of keys that begin at it, their first rows there.

        Of each key only one row before ``t`` is read, so a key of several topics is known by one of them.
        """
        found: Origins = {}
        begun: list[Key] = []
        for key, at, topic, origin in self._read(newest_up_to(t), keys):
            if at < t:
                found[key, topic] = origin
            else:
                begun.append(key)
        if begun:  # an earlier attempt, or another part, has written rows of this binding
            known = set()
            for key, _, topic, origin in self._read(_newest_before(t), begun):
                found[key, topic] = origin
                known.add(key)
            for key, _, topic, origin in self._read(rows_at(t), [key for key in begun if key not in known]):
                first = found.get((key, topic))
                if first is None or origin.message_id < first.message_id:
                    found[key, topic] = origin
        return found

    @contextmanager
    def writing(self, check: Callable[[], None]) -> Iterator[AddsRows]:
        """Write rows; all are acknowledged when the block ends. ``check`` is called before every batch."""
        with self._tables.bulk(check) as bulk:
            rows = RowWriter(self._tables, bulk)
            yield rows
            rows.finish()

    def discard(self, rows: Iterable[CollectionRow]) -> None:
        """Delete exactly these rows, whether they are there or not."""
        self._tables.discard(rows)

    def try_using(self) -> None:
        """Ask Cassandra for the time, then read and write at the consistency of a delivery.

        The writes delete what no binding has.
        """
        server_time(connect(self.connection))
        tables = self._tables
        for _ in self._read(newest_up_to(NEVER), ()):
            pass
        with tables.bulk() as bulk:
            tables.drop_changes(bulk, NEVER)

    def _read(
        self, extract: Extract, keys: Iterable[Key]
    ) -> Iterator[tuple[Key, int, str, KeyOrigin]]:
        tables, stored = self._tables, StoredRows(self.place.schema)
        names = (*self.place.key_columns, T, MESSAGE_ID, TOPIC, PARTITION)
        for cells in rows_of_keys(tables, Selected.of(self.place.rows, names), extract, keys):
            t, message_id, topic, partition = cells[-4:]
            origin = KeyOrigin(integer(message_id), integer(partition))
            yield stored.key(cells), integer(t), (topic or b"").decode(), origin

    @property
    def _tables(self) -> CollectionTables:
        return CollectionTables.of(connect(self.connection), self.place)


def _newest_before(t: int) -> Extract:
    return Extract((Restriction(T, CqlOperator.LESS, t),), rows=1)
