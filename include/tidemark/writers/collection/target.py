"""What a collection writer does with Cassandra: the one door of the kind to its tables.

Tests put tables in memory in its place. Nothing here decides which rows there are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from tidemark.cassandra.session import connect, server_time
from tidemark.cassandra.size import estimated_bytes, ring_tokens
from tidemark.cassandra.token_ranges import TokenRange, cut_ring
from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow
from tidemark.collection.tables.changes import digest_of_stored
from tidemark.collection.tables.codec.cells import StoredRows
from tidemark.collection.tables.create import create_collection
from tidemark.collection.tables.identity import identify
from tidemark.collection.tables.key_origins import (
    KeyVersion,
    Origins,
    key_origins,
    newest_before,
    replaced_since,
)
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.collection.tables.purging import drop_obsolete, drop_times, find_obsolete
from tidemark.collection.tables.reading import CollectionReader
from tidemark.collection.tables.scanning import PIECES, between, keys_changed, scan_rows, whole_rows
from tidemark.collection.tables.tables import CollectionTables
from tidemark.collection.tables.writing import RowWriter
from tidemark.connections import CassandraConnection
from tidemark.delivery.writer import TargetIdentity
from tidemark.outputs.model.digest import TimeDigests

BYTES_A_PIECE = 8 * 2**20
"""Of a range that is compared at once. In memory, rows take several times as much."""
NEVER = 0
"""A time that no binding has: what is written for it is seen by no reader."""


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
        for table in (self.place.rows, self.place.changes):
            statement = session.prepare(f"SELECT * FROM {table.cql_name} LIMIT 1")
            statement.consistency_level = self._tables.consistency
            if session.execute(statement).one():
                return False
        return True

    def origins(self, t: int, keys: Iterable[Key]) -> Origins:
        """See ``key_origins``."""
        return key_origins(self._tables, t, keys)

    def newest_before(self, t: int, first_id: int, keys: Iterable[Key]) -> Mapping[Key, KeyVersion]:
        """See ``newest_before``."""
        return newest_before(self._tables, t, first_id, keys)

    def replaced_since(self, t: int, ids: Mapping[Key, int]) -> frozenset[Key]:
        """See ``replaced_since``."""
        return replaced_since(self._tables, t, ids)

    @contextmanager
    def writing(self, check: Callable[[], None], in_flight: int) -> Iterator[AddsRows]:
        """Write rows; all are acknowledged when the block ends. ``check`` is called before every batch, of
        which at most ``in_flight`` wait for their answer."""
        with self._tables.bulk(check, in_flight) as bulk:
            rows = RowWriter(self._tables, bulk)
            yield rows
            rows.finish()

    def discard(self, rows: Iterable[CollectionRow]) -> None:
        """Delete exactly these rows, whether they are there or not."""
        self._tables.discard(rows)

    def digests(self, t: int) -> TimeDigests:
        """The digests of the rows that are stored for a time."""
        return digest_of_stored(self._tables, t)

    def pieces(self, other: CollectionPlace) -> list[TokenRange]:
        """The ring, cut so that one range of it has little of this collection and of another one."""
        session = connect(self.connection)
        places = (self.place, other)
        size = max(estimated_bytes(session, place.keyspace, place.name) for place in places)
        return cut_ring(ring_tokens(session), max(PIECES, size // BYTES_A_PIECE))

    def states(self, at: int, piece: TokenRange, *, with_gone: bool = False) -> Iterator[CollectionRow]:
        """The rows of the keys of a range as of a time, as they were written; see
        ``CollectionReader.stored``."""
        return CollectionReader(self._tables).stored(at, [piece], with_gone=with_gone)

    def versions(self, after: int, until: int, piece: TokenRange) -> Iterator[CollectionRow]:
        """All rows of a range after one time and up to another, also those that say that a key is gone."""
        stored, selected = StoredRows(self.place), whole_rows(self.place)
        for rows in scan_rows(self._tables, selected, between(after, until), [piece]):
            yield from map(stored.decode, rows)

    def count_obsolete(self, since: int) -> int:
        """How many keys have versions that no time from ``since`` on sees."""
        return sum(1 for _ in find_obsolete(self._tables, since))

    def drop_versions(self, since: int) -> int:
        """Delete the versions that no time from ``since`` on sees, with one range delete for each key;
        returns the number of keys that had some."""
        return drop_obsolete(self._tables, find_obsolete(self._tables, since))

    def drop_changes(self, times: Iterable[int]) -> int:
        """Delete which keys have rows at these times; returns the number of times."""
        return drop_times(self._tables, times)

    def size(self) -> int:
        """The estimated bytes of the rows."""
        return estimated_bytes(connect(self.connection), self.place.keyspace, self.place.name)

    def try_using(self) -> None:
        """Ask Cassandra for the time, then read and write at the consistency of a delivery.

        The writes delete what no binding has.
        """
        server_time(connect(self.connection))
        tables = self._tables
        list(keys_changed(tables, 0, NEVER))
        with tables.bulk() as bulk:
            tables.drop_changes(bulk, NEVER)

    @property
    def _tables(self) -> CollectionTables:
        return CollectionTables.of(connect(self.connection), self.place)
