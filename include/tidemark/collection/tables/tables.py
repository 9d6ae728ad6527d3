"""The tables of one collection over a session, with their prepared statements for writing.

Every method can be repeated: each write carries a write time that follows from its message.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from weakref import WeakKeyDictionary

from tidemark.cassandra.bulk.writer import IN_FLIGHT, BulkStatement, BulkWriter
from tidemark.cassandra.driver import ConsistencyLevel, Session
from tidemark.collection.model.row import CollectionRow
from tidemark.collection.tables import statements
from tidemark.collection.tables.codec.cells import change_cells, changes_cells, version_cells
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.collection.tables.versions import OlderVersions

_opened: WeakKeyDictionary[Session, dict[tuple[object, ...], "CollectionTables"]] = WeakKeyDictionary()


class CollectionTables:
    """The statements are prepared once for a session, because a batch can be a single message."""

    def __init__(self, session: Session, place: CollectionPlace) -> None:
        self.session, self.place = session, place
        self.consistency: int = ConsistencyLevel.name_to_value[place.consistency.value]

    @classmethod
    def of(cls, session: Session, place: CollectionPlace) -> "CollectionTables":
        """The tables over a session, opened once."""
        opened = _opened.setdefault(session, {})
        key = (place.keyspace, place.name, place.schema, place.consistency)
        if key not in opened:
            opened[key] = cls(session, place)
        return opened[key]

    def bulk(self, check: Callable[[], None] | None = None, in_flight: int = IN_FLIGHT) -> BulkWriter:
        """A bulk writer for the ``add_`` methods; it calls ``check`` before every batch of writes."""
        return BulkWriter(self.session, self.consistency, check=check, in_flight=in_flight)

    def add_rows(self, bulk: BulkWriter, rows: Iterable[bytes]) -> None:
        """Adds rows as ``row_cells`` encodes them."""
        statement, add = self._insert_row, bulk.add
        for row in rows:
            add(statement, row)

    def add_changes(self, bulk: BulkWriter, shard: int, t: int, keys: Iterable[bytes]) -> None:
        """Adds that keys, as ``key_bytes`` encodes them, have rows of a shard at a time."""
        statement, add = self._insert_change, bulk.add
        for key in keys:
            add(statement, change_cells(shard, t, key))

    def discard(self, rows: Iterable[CollectionRow], check: Callable[[], None] | None = None) -> None:
        """Deletes exactly the rows of these messages, at their own write times, and waits for the deletes.

        A row that is not there is deleted too, because a write that timed out may still arrive. The changes
        stay: other messages may have rows of the same key at the same time, and a key without one is seen to
        have changed nothing. A deleted row cannot be written again: its tombstone has the same write time.
        """
        with self.bulk(check) as bulk:
            for row in rows:
                place = (row.key, row.t, row.message_id, row.write_time)
                bulk.add(self._delete_row, version_cells(*place))

    def drop_older(self, bulk: BulkWriter, found: OlderVersions) -> None:
        """Adds the deletion of all rows of a key before the kept one, as one range."""
        bulk.add(self._delete_older, version_cells(found.key, found.t, found.message_id, found.write_time))

    def drop_changes(self, bulk: BulkWriter, t: int) -> None:
        """Adds the deletion of what there is about a time, in every shard."""
        for shard in range(self.place.schema.shards):
            bulk.add(self._delete_changes, changes_cells(shard, t))

    @cached_property
    def _insert_row(self) -> BulkStatement:
        return self._prepare(statements.insert_row(self.place))

    @cached_property
    def _insert_change(self) -> BulkStatement:
        return self._prepare(statements.insert_change(self.place))

    @cached_property
    def _delete_row(self) -> BulkStatement:
        return self._prepare(statements.delete_row(self.place))

    @cached_property
    def _delete_older(self) -> BulkStatement:
        return self._prepare(statements.delete_older(self.place))

    @cached_property
    def _delete_changes(self) -> BulkStatement:
        return self._prepare(statements.delete_changes(self.place))

    def _prepare(self, query: str) -> BulkStatement:
        statement = self.session.prepare(query)
        statement.consistency_level = self.consistency
        statement.is_idempotent = True
        return BulkStatement.of(statement)
