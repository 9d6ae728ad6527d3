"""Collections to read: an output in a control plane, with the rows of its renditions in memory or in tables.

Renditions are written directly, as their deliveries would write them: what a delivery does is not tested
here. Every account has an owner, which is its key with a capital, and a balance.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import pyarrow as pa
from tests.support.collection_rows import ACCOUNTS, newest, obsolete_of, place_of, python_row, row, state
from tests.support.output_store_world import FIRST, OutputStoreWorld

from tidemark.cassandra.schema.steps import SchemaLimits
from tidemark.cassandra.token_ranges import HIGHEST
from tidemark.client.collection.collection import Collection
from tidemark.client.collection.opened import OpenedCollection
from tidemark.client.collection.output_view import OutputView
from tidemark.client.collection.rendition_rows import Renditions, RowChange, TableRenditions
from tidemark.client.collection.switch import differences
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.model.schema import CollectionSchema
from tidemark.collection.tables.codec.python_rows import PythonRow, PythonRows
from tidemark.collection.tables.create import create_collection
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.collection.tables.stored import FIRST_TOKEN, StoredPage, StoredRow, TokenCursor
from tidemark.collection.tables.tables import CollectionTables
from tidemark.collection.tables.writing import write_rows
from tidemark.consensus.objects import Consensus
from tidemark.outputs.model.reading import Switch
from tidemark.outputs.model.rendition import Rendition
from tidemark.outputs.state.reader_lease import TERM
from tidemark.outputs.state.trim import trim

Accounts = Mapping[str, int | None]
"""Balances by key; None deletes the key."""
PARTS = range(2)


def stored_row(one: CollectionRow) -> StoredRow:
    """A row with a token that is a number of its key."""
    token = int.from_bytes(blake2b(key_bytes(one.key), digest_size=8).digest(), "big", signed=True)
    own = (one.t, one.message_id, one.gone, one.partition, one.offset)
    return StoredRow(max(token, FIRST_TOKEN), one.key, one.values, *own)


@dataclass
class MemoryRows:
    """``RenditionRows`` of rows in memory."""

    there: list[CollectionRow] = field(default_factory=list)
    is_dropped: bool = False
    columns: CollectionSchema = ACCOUNTS
    forgotten_changes: int = 0
    """The time before which changes are gone."""
    before_read: Callable[[], object] = lambda: None
    """Called before every read: what happens while a process reads."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.string()), ("owner", pa.string()), ("balance", pa.int32())])

    def read(self) -> list[CollectionRow]:
        self.before_read()
        assert not self.is_dropped, "it was asked for rows of a place that is dropped"
        return self.there

    def get(self, key: Mapping[str, Any], at: int) -> PythonRow | None:
        cells = PythonRows(place_of(self.columns)).encode_key(key)
        found = newest(self.read(), at).get(cells)
        return None if found is None or found.gone else python_row(found, self.columns)

    def rows(self, at: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        there = [python_row(one, self.columns) for one in state(self.read(), at).values()]
        for one in there:  # a batch each, so that something can happen between them
            yield pa.RecordBatch.from_pylist([one], schema=schema)
            self.before_read()

    def stored_page(self, at: int, cursor: TokenCursor) -> StoredPage:
        last = min(cursor.token + cursor.width - 1, HIGHEST)
        rows = sorted(stored_row(one) for one in newest(self.read(), at).values())
        own = [row for row in rows if cursor.token <= row.token <= last]
        return StoredPage(own, TokenCursor(last + 1, cursor.width * 8) if last < HIGHEST else None)

    def stored_versions(
        self, keys: Iterable[tuple[bytes, ...]], before: int, until: int
    ) -> dict[tuple[bytes, ...], list[StoredRow]]:
        found: dict[tuple[bytes, ...], list[StoredRow]] = {}
        older = newest(self.read(), before)
        for key in keys:
            rows = [one for one in self.there if one.key == key and before < one.t <= until]
            rows += [older[key]] if key in older else []
            if rows:
                found[key] = [stored_row(one) for one in sorted(rows, key=lambda one: -one.message_id)]
        return found

    def changes(self, t: int) -> Iterator[RowChange]:
        assert t >= self.forgotten_changes, "it was asked for changes that are gone"
        before, at = state(self.read(), t - 1), state(self.read(), t)
        for key in sorted({one.key for one in self.there if one.t == t}):
            seen = [self._visible(found.get(key)) for found in (before, at)]
            if seen[0] != seen[1]:
                yield from (
                    RowChange(one, diff) for one, diff in zip(seen, (-1, 1), strict=True) if one is not None
                )

    def visible(self, at: int, part: int) -> list[CollectionRow]:
        return [one for one in state(self.read(), at).values() if one.shard % len(PARTS) == part]

    def _visible(self, found: CollectionRow | None) -> PythonRow | None:
        return None if found is None else python_row(found, self.columns)


@dataclass
class MemoryRenditions:
    """``Renditions`` of rows in memory, by number."""

    held: dict[int, MemoryRows] = field(default_factory=dict)

    def rows_of(self, rendition: Rendition) -> MemoryRows:
        return self.held.setdefault(rendition.number, MemoryRows())

    def differences(self, switch: Switch) -> Iterator[RowChange]:
        before, after = self.rows_of(switch.before), self.rows_of(switch.after)
        found = differences(
            (before.columns, after.columns),
            PARTS,
            lambda part: before.visible(switch.h - 1, part),
            lambda part: after.visible(switch.h, part),
        )
        for one, is_new in found:
            decode = PythonRows(place_of((after if is_new else before).columns)).decode
            yield RowChange(decode(one), 1 if is_new else -1)

    def add(self, rendition: Rendition, rows: list[CollectionRow]) -> None:
        there = self.rows_of(rendition).there
        there += [one for one in rows if one not in there]

    def drop(self, rendition: Rendition) -> None:
        self.rows_of(rendition).is_dropped = True

    def drop_versions(self, rendition: Rendition, since: int) -> int:
        there, found = self.rows_of(rendition).there, obsolete_of(self.rows_of(rendition).there, since)
        kept = {one.key: (one.t, one.message_id) for one in found}
        there[:] = [one for one in there if (one.t, one.message_id) >= kept.get(one.key, (0, 0))]
        return len(found)

    def drop_changes(self, rendition: Rendition, since: int) -> int:
        self.rows_of(rendition).forgotten_changes = since
        return 0


class TablesOfTest(TableRenditions):
    """Tables of Cassandra whose columns are those of ``ACCOUNTS``, in a keyspace of the test's own."""

    def __init__(self, session: Any, keyspace: str) -> None:
        self.session, self.keyspace = session, keyspace
        super().__init__(lambda: session, self.place)

    def place(self, rendition: Rendition) -> CollectionPlace:
        return place_of(ACCOUNTS, self.keyspace, rendition.place)

    def add(self, rendition: Rendition, rows: list[CollectionRow]) -> None:
        create_collection(self.session, self.place(rendition), SchemaLimits(shortest_grace=0))
        write_rows(CollectionTables.of(self.session, self.place(rendition)), rows)

    def drop(self, rendition: Rendition) -> None:
        place = self.place(rendition)
        for table in (place.rows, place.changes):
            self.session.execute(f"DROP TABLE {table.cql_name}", timeout=60)


class ReadingWorld(OutputStoreWorld):
    """A collection with two or more renditions, and its readers."""

    def __init__(self, consensus: Consensus | None = None, renditions: Any = None) -> None:
        super().__init__(consensus)
        self.renditions: Any = renditions or MemoryRenditions()
        self.ids = 0
        self.written: dict[int, dict[int, Accounts]] = {}
        """By number of the rendition and time: what was written."""
        self.store.create(FIRST)

    def write(self, number: int, t: int, accounts: Accounts) -> None:
        """The rows of a time."""
        rows = []
        for key, balance in accounts.items():
            values = None if balance is None else (key.capitalize(), balance)
            rows.append(row(t, self.ids, (key,), values))
            self.ids += 1
        self.renditions.add(self.output.rendition(number), rows)
        self.written.setdefault(number, {})[t] = accounts

    def step(self, t: int, *accounts: Accounts) -> int:
        """A binding, finished by renditions 1, 2, … with these rows, and its frontier; its time."""
        bound = self.bind(t).t
        for number, one in enumerate(accounts, 1):
            self.write(number, bound, one)
            self.deliver(number)
        return bound

    def build_second(self, history: Mapping[int, Accounts] | None = None) -> None:
        """A verified second rendition, with the rows of the first one unless others are given."""
        self.declare()
        for t, accounts in (self.written[1] if history is None else history).items():
            self.write(2, t, accounts)
        self.removal.places.add(self.output.rendition(2).place)
        self.finish(2)
        self.verify(2)

    def truth(self, number: int, at: int) -> dict[str, int]:
        """The balances in a rendition as of a time: from what was written."""
        found: dict[str, int] = {}
        for t, accounts in sorted(self.written[number].items()):
            for key, balance in accounts.items() if t <= at else ():
                found.pop(key, None)
                if balance is not None:
                    found[key] = balance
        return found

    def true_balances(self, at: int) -> dict[str, int]:
        """What every reader must see as of a time."""
        return self.truth(self.output.resolve(at).number, at)

    def retire_first(self) -> None:
        """Retire rendition 1, and drop its rows."""
        rendition = self.output.rendition(1)
        self.retire(1)
        self.renditions.drop(rendition)

    def trim(self, cut: int) -> int:
        """Remove the versions before a time, as far as readers allow; the first readable time."""
        return trim(self.store, self.readers, self.progress, cut, self.renditions).since

    def opened(self, term: int = TERM, who: str = "a test") -> OpenedCollection:
        """What one process opens."""
        renditions: Renditions = self.renditions
        view = OutputView(self.store, self.progress)
        return OpenedCollection(view, self.readers, renditions, who, term)

    def collection(self, term: int = TERM, who: str = "a test") -> Collection:
        """A reader in a process of its own."""
        return Collection.of_opened(self.opened(term, who))

    @property
    def held(self) -> list[int]:
        """The times that readers hold."""
        return sorted(one.t for one in self.readers.load().capabilities.values())


def balances(batches: Any) -> dict[str, int]:
    """Balances by key of a stream of batches; a key that is there twice fails."""
    found: dict[str, int] = {}
    for batch in batches:
        for one in batch.to_pylist():
            assert found.setdefault(one["id"], one["balance"]) is one["balance"]
            assert one["owner"] == one["id"].capitalize()
    return found


def emitted(stream: Any) -> dict[int, list[tuple[str, int]]]:
    """The changes of a stream by time: ``bob=50`` and ±1."""
    return {one.t: [(f"{row['id']}={row['balance']}", diff) for row, _, diff in one] for one in stream}


def accumulated(
    changes: Mapping[int, list[tuple[str, int]]], at: int, before: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The counts of rows that changes up to a time add up to, after a state."""
    counts = {f"{key}={balance}": 1 for key, balance in (before or {}).items()}
    for t, found in changes.items():
        for name, diff in found if t <= at else ():
            counts[name] = counts.get(name, 0) + diff
    return {name: count for name, count in counts.items() if count}


def counted(accounts: Mapping[str, int]) -> dict[str, int]:
    """A state as counts of rows."""
    return {f"{key}={balance}": 1 for key, balance in accounts.items()}
