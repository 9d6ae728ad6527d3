"""The tables of a collection on real Cassandra: created once, written whole, read as of every time."""

import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from cassandra.util import Date, Duration, Time
from tests.support.collection_rows import ACCOUNTS, SEATS, SHARDS, newest, python_row, row, state
from tests.support.faults import Killed, kill_at

from tidemark.cassandra.cql_types import parse_type
from tidemark.cassandra.schema.errors import GraceTooShort, SchemaLockHeld
from tidemark.cassandra.schema.steps import SchemaLimits
from tidemark.cassandra.token_ranges import LOWEST, TokenRange, cut_ring, deal
from tidemark.collection.model.column_types import column_type
from tidemark.collection.model.row import CollectionRow
from tidemark.collection.model.row_digests import digests_of
from tidemark.collection.model.schema import CollectionSchema, Column
from tidemark.collection.model.values.encoders import encoder_of
from tidemark.collection.tables import writing
from tidemark.collection.tables.changes import changes, digest_of_stored, rows_written
from tidemark.collection.tables.codec.python_rows import PythonRows
from tidemark.collection.tables.create import create_collection
from tidemark.collection.tables.errors import CollectionMissing, TableDiffers
from tidemark.collection.tables.identity import identify
from tidemark.collection.tables.key_origins import (
    KeyOrigin,
    KeyVersion,
    key_origins,
    newest_before,
    replaced_since,
)
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.collection.tables.purging import drop_obsolete, drop_times, find_obsolete
from tidemark.collection.tables.reading import CollectionReader
from tidemark.collection.tables.stored import (
    FIRST_TOKEN,
    StoredRow,
    TokenCursor,
    stored_page,
    stored_versions,
)
from tidemark.collection.tables.tables import CollectionTables
from tidemark.collection.tables.writing import write_rows
from tidemark.faults import FaultPoint
from tidemark.outputs.model.digest import TimeDigests

pytestmark = pytest.mark.system

A, B, C = 1_000_000, 2_000_000, 3_000_000
"""Times of bindings."""
HISTORY = [
    row(A, 0, ("ann",), ("Ann", 1)),
    row(A, 1, ("bob",), ("Bob", 1)),
    row(A, 2, ("ann",), ("Ann", 2)),
    row(A, 3, ("cid",), ("Cid", None)),
    row(B, 1000, ("ann",), ("Ann", 3)),
    row(B, 1001, ("bob",), None),
    row(B, 1002, ("cid",), ("Cid", 9)),
    row(B, 1003, ("cid",), ("Cid", None)),
    row(C, 2000, ("bob",), ("Bob", 7)),
    row(C, 2001, ("ann",), None),
    row(C, 2002, ("dan",), ("Dan", 1)),
    row(C, 2003, ("dan",), None),
]
"""Keys with several messages at a time, that go and come back, and one that was never seen."""
SMALL = SchemaLimits(shortest_grace=0)


@dataclass(frozen=True)
class Collection:
    """A collection of a test's own."""

    session: Any
    place: CollectionPlace

    @property
    def tables(self) -> CollectionTables:
        return CollectionTables.of(self.session, self.place)

    @property
    def reader(self) -> CollectionReader:
        return CollectionReader(self.tables)

    def write(self, *rows: CollectionRow) -> None:
        assert write_rows(self.tables, rows) == len(rows)

    def execute(self, query: str, *values: Any) -> list[Any]:
        """A query in which ``$`` stands for the table."""
        return list(self.session.execute(query.replace("$", str(self.place)), values or None))

    def everything(self) -> list[Any]:
        """All cells of both tables with their write times."""
        names = [*self.place.data_columns, "gone", "topic", "partition", "offset"]
        times = ", ".join(f"WRITETIME({name}) AS written_{name}" for name in names)
        rows = self.execute(f"SELECT {', '.join(self.place.key_columns)}, t, message_id, {times} FROM $")
        values = self.execute("SELECT * FROM $")
        return [*map(tuple, rows), *map(tuple, values), *map(tuple, self.execute("SELECT * FROM $_changes"))]

    def seen(self, at: int) -> list[Any]:
        """What ``rows`` gives at a time, in order."""
        found = [one for batch in self.reader.rows(at) for one in batch.to_pylist()]
        return sorted(found, key=repr)

    def changed(self, t: int) -> list[tuple[Any, int]]:
        """What changed at a time: rows by column, and whether they went or came."""
        rows = PythonRows(self.place)
        found = list(changes(self.tables, t))
        assert {one.t for one in found} <= {t}
        return [(rows.decode(one.row), one.diff) for one in found]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def keyspace(services: Any) -> Iterator[str]:
    name = f"collection_{uuid4().hex[:8]}"
    yield name
    services.session.execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


Make = Callable[..., Collection]


@pytest.fixture(scope="module")
def make(services: Any, keyspace: str) -> Make:
    """Makes collections with tables of their own in one keyspace."""

    def made(schema: CollectionSchema = ACCOUNTS, create: bool = True) -> Collection:
        place = CollectionPlace("orders", "accounts", keyspace, f"c{uuid4().hex[:8]}", schema)
        if create:
            create_collection(services.session, place)
        return Collection(services.session, place)

    return made


@pytest.fixture(scope="module")
def told(make: Make) -> Collection:
    """A collection with ``HISTORY``; tests only read it."""
    collection = make()
    collection.write(*HISTORY)
    return collection


# Creating


def test_from_nothing_the_keyspace_and_the_tables_are_created_once(services: Any) -> None:
    name = f"collection_{uuid4().hex[:8]}"
    place = CollectionPlace("orders", "accounts", name, "accounts", ACCOUNTS)
    try:
        sent = create_collection(services.session, place)
        assert [statement.split(" (")[0].split(" WITH")[0] for statement in sent] == [
            f"CREATE KEYSPACE IF NOT EXISTS {name}",
            f"CREATE TABLE IF NOT EXISTS {name}.locks",
            f"CREATE TABLE IF NOT EXISTS {name}.accounts_changes",
            f"CREATE TABLE IF NOT EXISTS {name}.accounts",
        ]
        assert create_collection(services.session, place) == ()
        assert list(services.session.execute(f"SELECT * FROM {name}.locks")) == []
    finally:
        services.session.execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


STARTER = """
import sys
from tests.support.collection_rows import ACCOUNTS
from tidemark.cassandra.session import connect, disconnect_all
from tidemark.collection.tables.create import create_collection
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.connections import CassandraConnection

session = connect(CassandraConnection(hosts=("127.0.0.1",), port=int(sys.argv[1])))
print("connected", flush=True)
sys.stdin.readline()
sent = create_collection(session, CollectionPlace("orders", "accounts", *sys.argv[2:], ACCOUNTS))
print(len([statement for statement in sent if ".accounts" in statement]))
disconnect_all()
"""


def test_processes_that_create_at_once_create_each_table_once(services: Any) -> None:
    keyspace = f"collection_{uuid4().hex[:8]}"
    command = [sys.executable, "-c", STARTER, str(services.cassandra.port), keyspace, "accounts"]
    starters = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for starter in starters:
            assert starter.stdout is not None
            assert starter.stdout.readline() == "connected\n"
        for starter in starters:
            assert starter.stdin is not None
            starter.stdin.write("go\n")
            starter.stdin.flush()
        answers = [int(starter.communicate(timeout=90)[0].splitlines()[-1]) for starter in starters]
        assert [starter.returncode for starter in starters] == [0, 0]
        assert sorted(answers) == [0, 2]
        place = CollectionPlace("orders", "accounts", keyspace, "accounts", ACCOUNTS)
        assert create_collection(services.session, place) == ()
    finally:
        services.session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)


def test_a_lock_of_another_process_is_waited_for_and_named(
    services: Any, told: Collection, make: Make
) -> None:
    collection = make(create=False)
    locks = f"{collection.place.keyspace}.locks"
    services.session.execute(
        f"INSERT INTO {locks} (id, expiry_ms, timestamp, metadata) VALUES ('kafka-journal', 60000, "
        "'2026-03-01T12:00:00Z', 'akka-7') IF NOT EXISTS USING TTL 20"
    )
    try:
        with pytest.raises(SchemaLockHeld, match="akka-7 has been changing the schema"):
            create_collection(services.session, collection.place, SchemaLimits(wait=0.2))
    finally:
        services.session.execute(f"DELETE FROM {locks} WHERE id = 'kafka-journal' IF EXISTS")


def test_a_table_with_other_columns_is_refused_and_left_alone(make: Make) -> None:
    collection = make()
    for change, difference in (
        ("ADD note text", "its column `note` (text) is not among the wanted ones"),
        ("DROP owner", "it has no column `owner` (text)"),
        ("RENAME t TO moment", "it has no column `t` (bigint)"),
    ):
        collection.execute(f"ALTER TABLE $ {change}")
        with pytest.raises(TableDiffers) as refused:
            create_collection(collection.session, collection.place)
        assert difference in refused.value.differences


def test_tables_that_forget_deletes_too_soon_are_refused(make: Make) -> None:
    collection = make()
    collection.execute("ALTER TABLE $ WITH gc_grace_seconds = 60")
    with pytest.raises(GraceTooShort, match="gc_grace_seconds = 60"):
        create_collection(collection.session, collection.place)
    assert create_collection(collection.session, collection.place, SMALL) == ()


def test_a_table_that_was_dropped_and_created_again_has_another_identity(make: Make) -> None:
    collection = make()
    found = [identify(collection.session, collection.place)]
    assert identify(collection.session, collection.place) == found[0]
    for table in ("$", "$_changes"):
        collection.execute(f"DROP TABLE {table}")
        with pytest.raises(CollectionMissing, match=r"there is no table .* Nothing was written or read"):
            identify(collection.session, collection.place)
        assert len(create_collection(collection.session, collection.place)) == 1
        found.append(identify(collection.session, collection.place))
    assert len({one.id for one in found}) == 3
    assert {one.what for one in found} == {f"table {collection.place}"}


# Writing


def test_writing_again_changes_nothing(told: Collection) -> None:
    before = told.everything()
    told.write(*reversed(HISTORY))
    assert told.everything() == before
    assert len(told.execute("SELECT t FROM $")) == len(HISTORY)


def test_every_cell_has_the_write_time_of_its_message(told: Collection) -> None:
    found = told.execute("SELECT message_id, WRITETIME(gone) AS at, WRITETIME(owner) AS owner FROM $")
    assert {one.message_id: one.at for one in found} == {one.message_id: one.write_time for one in HISTORY}
    written = {one.message_id: one.write_time for one in HISTORY if one.values[0] is not None}
    assert {one.message_id: one.owner for one in found if one.owner} == written


def test_a_process_that_is_killed_between_changes_and_rows_leaves_nothing_to_see(
    make: Make, told: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = make()
    kill_at(monkeypatch, FaultPoint.COLLECTION_CHANGES_WRITTEN)
    with pytest.raises(Killed):
        killed.write(*HISTORY)
    assert (killed.seen(C), killed.changed(A)) == ([], [])
    killed.write(*HISTORY)
    assert killed.everything() == told.everything()


def test_a_process_that_is_killed_between_two_lots_leaves_no_row_without_its_change(
    make: Make, told: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = make()
    monkeypatch.setattr(writing, "ROWS_TOGETHER", 3)
    kill_at(monkeypatch, FaultPoint.COLLECTION_CHANGES_WRITTEN, time=3)
    with pytest.raises(Killed):
        killed.write(*HISTORY)
    stored = {
        one.message_id for t in (A, B, C) for n in range(SHARDS) for one in rows_written(killed.tables, t, n)
    }
    assert stored == {one.message_id for one in killed.execute("SELECT message_id FROM $")} != set()
    killed.write(*HISTORY)
    assert killed.everything() == told.everything()


class LeaseLost(Exception):
    """What the check of a lease raises."""


def test_nothing_is_written_without_the_lease(make: Make) -> None:
    def check() -> None:
        raise LeaseLost

    collection = make()
    with pytest.raises(LeaseLost):
        write_rows(collection.tables, HISTORY, check)
    assert collection.everything() == []


def test_a_row_that_arrives_late_does_not_hide_a_newer_one(make: Make) -> None:
    collection = make()
    collection.write(*HISTORY[4:])
    collection.write(*HISTORY[:4])
    assert collection.reader.get({"id": "ann"}, B) == {"id": "ann", "owner": "Ann", "balance": 3}


def test_exactly_the_row_of_a_message_is_discarded(make: Make) -> None:
    collection, without = make(), make()
    discarded = HISTORY[2]
    collection.write(*HISTORY)
    collection.tables.discard([discarded])
    collection.tables.discard([discarded])
    left = [one for one in HISTORY if one != discarded]
    without.write(*left)
    assert [collection.seen(t) for t in (A, B, C)] == [without.seen(t) for t in (A, B, C)]
    assert [collection.changed(t) for t in (A, B, C)] == [without.changed(t) for t in (A, B, C)]
    assert len(collection.execute("SELECT t FROM $")) == len(left)


def test_a_key_whose_only_message_of_a_time_is_discarded_did_not_change_at_it(make: Make) -> None:
    collection = make()
    collection.write(*HISTORY)
    collection.tables.discard([HISTORY[4]])
    assert "ann" not in [one["id"] for one, _ in collection.changed(B)]
    assert collection.reader.get({"id": "ann"}, B) == {"id": "ann", "owner": "Ann", "balance": 2}


# Reading


@pytest.mark.parametrize(
    ("key", "at", "balance"),
    [
        ("ann", A - 1, None),
        ("ann", A, 2),
        ("ann", B - 1, 2),
        ("ann", B, 3),
        ("ann", C, None),
        ("bob", A, 1),
        ("bob", B, None),
        ("bob", C, 7),
        ("dan", C, None),
        ("eve", C, None),
    ],
)
def test_a_key_is_what_its_newest_message_up_to_a_time_says(
    told: Collection, key: str, at: int, balance: int | None
) -> None:
    found = told.reader.get({"id": key}, at)
    assert (found and found["balance"]) == balance
    assert found is None or list(found) == ["id", "owner", "balance"]


def test_as_of_a_time_all_rows_are_those_of_their_keys(told: Collection) -> None:
    assert [told.seen(at) for at in (A - 1, A, B, C)] == [
        [],
        [
            {"id": "ann", "owner": "Ann", "balance": 2},
            {"id": "bob", "owner": "Bob", "balance": 1},
            {"id": "cid", "owner": "Cid", "balance": None},
        ],
        [
            {"id": "ann", "owner": "Ann", "balance": 3},
            {"id": "cid", "owner": "Cid", "balance": None},
        ],
        [
            {"id": "bob", "owner": "Bob", "balance": 7},
            {"id": "cid", "owner": "Cid", "balance": None},
        ],
    ]


def test_what_changed_at_a_time_is_what_went_and_what_came(told: Collection) -> None:
    """``cid`` had two messages at B and is the same after them; ``dan`` came and went within C."""
    ann = [{"id": "ann", "owner": "Ann", "balance": number} for number in (2, 3)]
    bob = [{"id": "bob", "owner": "Bob", "balance": number} for number in (1, 7)]
    assert sorted(told.changed(A), key=repr) == [
        (ann[0], 1),
        (bob[0], 1),
        ({"id": "cid", "owner": "Cid", "balance": None}, 1),
    ]
    assert sorted(told.changed(B), key=repr) == [(ann[0], -1), (ann[1], 1), (bob[0], -1)]
    assert sorted(told.changed(C), key=repr) == [(ann[1], -1), (bob[1], 1)]


def test_at_a_time_without_a_binding_nothing_changed(told: Collection) -> None:
    assert told.changed(B + 1) == []


def test_of_a_key_the_row_that_went_comes_before_the_one_that_came(told: Collection) -> None:
    assert [diff for one, diff in told.changed(B) if one["id"] == "ann"] == [-1, 1]


def test_the_digest_of_what_is_stored_is_that_of_what_was_written(told: Collection) -> None:
    for t in (A, B, C):
        written = digests_of([one for one in HISTORY if one.t == t], SHARDS)
        assert digest_of_stored(told.tables, t) == TimeDigests(t, written)


def test_a_cell_that_was_damaged_shows_in_the_digest(make: Make) -> None:
    collection = make()
    collection.write(*HISTORY)
    collection.execute(
        f"UPDATE $ USING TIMESTAMP {A + 999} SET balance = 5 WHERE id = 'bob' AND t = {A} AND message_id = 1"
    )
    written = digests_of([one for one in HISTORY if one.t == A], SHARDS)
    found = digest_of_stored(collection.tables, A)
    assert [one == other for one, other in zip(found.shards, written, strict=True)].count(False) == 1


def test_ranges_that_different_processes_read_are_the_table_together(told: Collection) -> None:
    groups = deal(cut_ring([], 16), 3)
    found = [
        one for parts in groups for batch in told.reader.rows(B, parts=parts) for one in batch.to_pylist()
    ]
    assert sorted(found, key=repr) == told.seen(B)
    assert [
        one for batch in told.reader.rows(B, parts=[TokenRange(LOWEST, LOWEST + 1)]) for one in [batch]
    ] == []


def test_a_collection_that_is_not_there_is_missing(make: Make) -> None:
    with pytest.raises(CollectionMissing, match="there is no table"):
        _ = make(create=False).reader


def folded(rows: Iterable[CollectionRow], at: int, schema: CollectionSchema) -> list[Any]:
    return sorted((python_row(one, schema) for one in state(rows, at).values()), key=repr)


def test_a_long_history_is_what_a_fold_in_memory_says(make: Make) -> None:
    """Keys of two columns, many times, several messages of a key at once, keys that go: as of every time."""
    chance, collection = random.Random(7), make(SEATS)
    rows, times, message = [], [], 0
    for number in range(8):
        t = (number + 1) * 1_000_000
        times.append(t)
        for _ in range(chance.randrange(300)):
            hall, seat = f"hall {chance.randrange(3)}", chance.randrange(150)
            guest = chance.choice([None, ("Ann",), ("Bob",), ("Cid",), (None,)])
            rows.append(row(t, number * 1000 + message % 1000, (hall, seat), guest, SEATS))
            message += 1
    collection.write(*chance.sample(rows, len(rows)))
    before: dict[Any, CollectionRow] = {}
    for t in times:
        after = state(rows, t)
        assert collection.seen(t) == folded(rows, t, SEATS)
        assert sorted(collection.reader.stored(t), key=repr) == sorted(after.values(), key=repr)
        went = [(python_row(one, SEATS), -1) for key, one in before.items() if not same(one, after.get(key))]
        came = [(python_row(one, SEATS), 1) for key, one in after.items() if not same(one, before.get(key))]
        assert sorted(collection.changed(t), key=repr) == sorted(went + came, key=repr)
        written = digests_of([one for one in rows if one.t == t], SHARDS)
        assert digest_of_stored(collection.tables, t).shards == written
        before = after
    keys = {one.key for one in rows}
    for key in chance.sample(sorted(keys), 40):
        at = chance.choice(times)
        values = {"hall": key[0].decode(), "seat": int.from_bytes(key[1], "big")}
        one = state(rows, at).get(key)
        assert collection.reader.get(values, at) == (one and python_row(one, SEATS))


def same(one: CollectionRow, other: CollectionRow | None) -> bool:
    return other is not None and one.values == other.values


def test_more_rows_than_pages_hold_all_come_once(make: Make) -> None:
    collection = make()
    rows = [
        row(t, t // 1000 + n, (f"key {n}",), ("x" * 400, n), partition=n % 7)
        for t in (A, B)
        for n in range(900)
    ]
    collection.write(*rows)
    assert [one["balance"] for one in sorted(collection.seen(A), key=lambda one: one["balance"])] == [
        *range(900)
    ]
    assert len(collection.changed(A)) == 900
    assert collection.changed(B) == []
    found = key_origins(collection.tables, C, [one.key for one in rows])
    assert found == {(one.key, "accounts"): KeyOrigin(one.message_id, one.partition) for one in rows[900:]}


# Origins of keys


def test_the_origin_of_a_key_is_its_newest_message_before_a_time_also_when_it_is_gone(make: Make) -> None:
    collection = make(SEATS)
    rows = [
        row(A, 0, ("main", 1), ("Ann",), SEATS, partition=0),
        row(B, 1000, ("main", 1), ("Ann",), SEATS, partition=2),
        row(A, 1, ("main", 2), None, SEATS, partition=1),
        row(A, 2, ("side", 1), ("Bob",), SEATS, partition=5, topic="other"),
    ]
    collection.write(*rows)
    unknown = row(A, 9, ("side", 9), None, SEATS).key
    keys = [*(one.key for one in rows), unknown]
    assert key_origins(collection.tables, C, keys) == {
        (rows[0].key, "accounts"): KeyOrigin(1000, 2),
        (rows[2].key, "accounts"): KeyOrigin(1, 1),
        (rows[3].key, "other"): KeyOrigin(2, 5),
    }
    assert key_origins(collection.tables, B, keys)[rows[0].key, "accounts"] == KeyOrigin(0, 0)


def test_the_origin_of_a_key_that_begins_at_a_time_is_its_first_message_there(make: Make) -> None:
    collection = make(SEATS)
    rows = [
        row(A, 1, ("main", 1), ("Ann",), SEATS, partition=0),
        row(A, 2, ("main", 1), ("Bob",), SEATS, partition=0),
        row(A, 7, ("main", 1), ("Cid",), SEATS, partition=2),
        row(B, 9, ("main", 1), ("Dan",), SEATS, partition=3),
    ]
    collection.write(*rows)
    found = key_origins(collection.tables, A, [rows[0].key])
    assert found == {(rows[0].key, "accounts"): KeyOrigin(1, 0)}


def test_the_newest_row_before_a_message_is_one_of_an_earlier_message_of_its_binding_or_before(
    make: Make,
) -> None:
    collection = make(SEATS)
    rows = [
        row(A, 1, ("main", 1), ("Ann",), SEATS, partition=3),
        row(A, 2, ("main", 1), None, SEATS, partition=3),
        row(A, 7, ("main", 1), ("Cid",), SEATS, partition=3),
        row(B, 9, ("main", 1), ("Dan",), SEATS, partition=3),
        row(B, 8, ("side", 1), ("Eve",), SEATS, partition=1),
    ]
    collection.write(*rows)
    key, other, unknown = rows[0].key, rows[4].key, row(A, 0, ("side", 9), None, SEATS).key

    def ids(t: int, first_id: int) -> dict[Any, int]:
        found = newest_before(collection.tables, t, first_id, [key, other, unknown])
        return {one: version.message_id for one, version in found.items()}

    assert ids(A, 1) == {}
    assert ids(A, 7) == {key: 2}
    assert ids(A, 8) == {key: 7}
    assert ids(B, 8) == {key: 7}
    assert ids(B, 9) == {key: 7, other: 8}
    assert ids(C, 1_000) == {key: 9, other: 8}
    assert newest_before(collection.tables, B, 8, [key])[key] == KeyVersion(
        A, 7, rows[2].topic, rows[2].partition, rows[2].offset
    )


def test_a_message_without_a_row_that_has_later_ones_was_replaced_since(make: Make) -> None:
    collection = make(SEATS)
    rows = [
        row(A, 1, ("main", 1), ("Ann",), SEATS),
        row(A, 7, ("main", 1), ("Cid",), SEATS),
        row(B, 9, ("side", 1), ("Dan",), SEATS),
    ]
    collection.write(*rows)
    key, other = rows[0].key, rows[2].key
    assert replaced_since(collection.tables, A, {key: 1, other: 2}) == {other}
    assert replaced_since(collection.tables, A, {key: 5}) == {key}
    assert replaced_since(collection.tables, B, {key: 8, other: 9}) == set()


# What is stored, in the order of tokens


def test_what_is_stored_comes_in_the_order_of_tokens_and_goes_on_from_any_of_them(make: Make) -> None:
    collection = make()
    collection.write(*[row(A, n, (f"key {n}",), ("x" * 300, n)) for n in range(1_500)])
    collection.write(*[row(B, 2_000 + n, (f"key {n}",), None) for n in range(0, 1_500, 3)])

    def read(at: int, token: int = FIRST_TOKEN) -> list[StoredRow]:
        found: list[StoredRow] = []
        cursor: TokenCursor | None = TokenCursor(token)
        while cursor is not None:
            page = stored_page(collection.tables, at, cursor)
            found += page.rows
            cursor = page.next
        return found

    rows = read(B)
    assert [one.token for one in rows] == sorted(one.token for one in rows)
    assert (len(rows), sum(one.gone for one in rows)) == (1_500, 500)
    tokens = collection.execute("SELECT TOKEN(id) AS placed, id FROM $ PER PARTITION LIMIT 1")
    assert {(one.token, one.key[0].decode()) for one in rows} == {(one.placed, one.id) for one in tokens}
    assert read(B, rows[700].token) == rows[700:]
    assert not any(one.gone for one in read(A))


def test_versions_of_keys_are_those_after_a_time_and_the_newest_before_it(make: Make) -> None:
    collection = make()
    rows = [
        row(A, 0, ("ann",), ("Ann", 1)),
        row(A, 1, ("ann",), ("Ann", 2)),
        row(B, 1_000, ("ann",), None),
        row(B, 1_001, ("bob",), ("Bob", 1)),
        row(C, 2_000, ("ann",), ("Ann", 3)),
    ]
    collection.write(*rows)
    keys = [rows[0].key, rows[3].key, row(A, 0, ("eve",), None).key]
    found = stored_versions(collection.tables, keys, A, B)
    assert {key: [one.message_id for one in versions] for key, versions in found.items()} == {
        keys[0]: [1_000, 1],
        keys[1]: [1_001],
    }


# Purging


def test_after_a_purge_every_time_from_since_on_is_as_it_was(make: Make) -> None:
    collection = make()
    collection.write(*HISTORY)
    before = [(collection.seen(t), collection.changed(t)) for t in (B, C)]
    assert drop_obsolete(collection.tables, find_obsolete(collection.tables, B)) == 3
    assert drop_times(collection.tables, [A]) == 1
    assert [(collection.seen(t), collection.changed(t) if t > B else None) for t in (B, C)] == [
        (before[0][0], None),
        before[1],
    ]
    kept = {one.message_id for one in newest(HISTORY, B).values()} | {2000, 2001, 2002, 2003}
    assert {one.message_id for one in collection.execute("SELECT message_id FROM $")} == kept
    assert {one.t for one in collection.execute("SELECT t FROM $_changes")} == {B, C}


def test_a_second_purge_finds_nothing(make: Make) -> None:
    collection = make()
    collection.write(*HISTORY)
    drop_obsolete(collection.tables, find_obsolete(collection.tables, C))
    drop_times(collection.tables, [A, B, C])
    assert list(find_obsolete(collection.tables, C)) == []


def test_rows_that_were_purged_do_not_come_back_when_they_are_written_again(make: Make) -> None:
    collection = make()
    collection.write(*HISTORY)
    drop_obsolete(collection.tables, find_obsolete(collection.tables, B))
    drop_times(collection.tables, [A])
    before = collection.everything()
    collection.write(*HISTORY)
    assert collection.everything() == before


# Types

TYPES: dict[str, tuple[Any, Any]] = {
    "ascii": ("plain", "plain"),
    "bigint": (-(2**63), -(2**63)),
    "blob": ("AAH/", b"\x00\x01\xff"),
    "boolean": (True, True),
    "date": ("1969-12-31", Date("1969-12-31")),
    "decimal": ("123456789012345.678901234567890123456", Decimal("123456789012345.678901234567890123456")),
    "double": (0.1, 0.1),
    "duration": ("P1Y2M3DT4H", Duration(14, 3, 4 * 3_600_000_000_000)),
    "float": (0.5, 0.5),
    "inet": ("2001:db8::1", "2001:db8::1"),
    "int": (-1, -1),
    "smallint": (-(2**15), -(2**15)),
    "text": ("žluťoučký kůň 🐎", "žluťoučký kůň 🐎"),
    "time": ("23:59:59.999999999", Time(86_399_999_999_999)),
    "timestamp": ("2026-03-01T12:00:00.123Z", datetime(2026, 3, 1, 12, 0, 0, 123_000)),
    "timeuuid": (
        "8b2f4cde-1c3a-11ef-9262-0242ac120002",
        UUID("8b2f4cde-1c3a-11ef-9262-0242ac120002"),
    ),
    "tinyint": (127, 127),
    "uuid": ("6a1c4f9e-3d3b-4c8e-9d59-0d1b6a3f2e11", UUID("6a1c4f9e-3d3b-4c8e-9d59-0d1b6a3f2e11")),
    "varint": (-(2**100), -(2**100)),
    "list<int>": ([3, -1, 3], [3, -1, 3]),
    "set<int>": ([3, -1, 300], {-1, 3, 300}),
    "set<text>": ([], set()),
    "map<int, text>": ([[2, "b"], [-1, ""]], {-1: "", 2: "b"}),
    "map<text, list<set<int>>>": ({"a": [[1, -1], []]}, {"a": [{-1, 1}, set()]}),
    "map<int, tuple<set<int>, text>>": ([[1, [[1, -1], None]]], {1: ({-1, 1}, None)}),
    "map<int, vector<set<int>, 2>>": ([[1, [[1, -1], []]]], {1: [{-1, 1}, set()]}),
    "set<map<int, text>>": ([[[1, "a"], [-1, "b"]]], [{-1: "b", 1: "a"}]),
    "tuple<int, set<int>, text>": ([None, [1, -1], ""], (None, {-1, 1}, "")),
    "vector<float, 3>": ([0.5, -1, 2], [0.5, -1.0, 2.0]),
    "vector<set<int>, 2>": ([[1, -1], []], [{-1, 1}, set()]),
    "list<tuple<int, text>>": ([[1, None]], [(1, None)]),
}
"""By type: a value as JSON has it, and what a reader gets."""
EVERY_TYPE = CollectionSchema(
    (Column("id", parse_type("text")),),
    tuple(Column(f"c{number}", column_type(name)) for number, name in enumerate(TYPES)),
    SHARDS,
)
EMPTY = {"ascii": "", "text": "", "blob": "", "list<int>": [], "set<int>": [], "map<int, text>": []}


@pytest.fixture(scope="module")
def typed(make: Make) -> Collection:
    """A row with a value of every type, one with nulls, and one with what is empty."""
    collection = make(EVERY_TYPE)
    full = [encoder_of(column_type(name))(json) for name, (json, _) in TYPES.items()]
    empty = [encoder_of(column_type(name))(EMPTY[name]) if name in EMPTY else None for name in TYPES]
    nulls: list[bytes | None] = [None] * len(TYPES)
    cells = {"full": full, "empty": empty, "nulls": nulls}
    collection.write(*(typed_row(number, *one) for number, one in enumerate(cells.items())))
    return collection


def typed_row(number: int, key: str, values: list[bytes | None]) -> CollectionRow:
    made = row(A, number, (key,), [None] * len(values), EVERY_TYPE)
    return CollectionRow(
        made.key, tuple(values), A, number, made.write_time, False, "accounts", 0, number, made.shard
    )


@pytest.mark.parametrize("name", TYPES)
def test_a_value_of_every_type_is_read_exactly(typed: Collection, name: str) -> None:
    column = f"c{list(TYPES).index(name)}"
    found = typed.reader.get({"id": "full"}, A)
    assert found is not None
    value = found[column]
    wanted = TYPES[name][1]
    assert plain(value) == plain(wanted)
    came = next(one for one, _ in typed.changed(A) if one["id"] == "full")
    assert plain(came[column]) == plain(wanted)


def plain(value: Any) -> Any:
    """A value without the driver's own containers; sets are sorted lists."""
    if isinstance(value, dict) or hasattr(value, "items"):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if type(value).__name__ in ("SortedSet", "set", "frozenset"):
        return sorted((plain(one) for one in value), key=repr)
    return value


def test_what_is_empty_is_not_null(typed: Collection) -> None:
    found = typed.reader.get({"id": "empty"}, A)
    assert found is not None
    empty = {name for number, name in enumerate(TYPES) if found[f"c{number}"] is not None}
    assert empty == set(EMPTY)
    nulls = typed.reader.get({"id": "nulls"}, A)
    assert nulls is not None
    assert [value for name, value in nulls.items() if name != "id"] == [None] * len(TYPES)


def test_the_digest_of_every_type_is_that_of_what_was_written(typed: Collection) -> None:
    """Cassandra stores sets and maps in another order than rows have them."""
    rows = {one.key[0]: one for one in typed.reader.stored(A)}
    full = {name: encoder_of(column_type(name))(json) for name, (json, _) in TYPES.items()}
    assert dict(zip(TYPES, rows[b"full"].values, strict=True)) == full
    assert rows[b"full"] == typed_row(0, "full", [*full.values()])
    assert digest_of_stored(typed.tables, A).shards == digests_of(rows.values(), SHARDS)


def test_every_type_is_recognised_when_the_collection_is_opened_again(typed: Collection) -> None:
    assert create_collection(typed.session, typed.place) == ()


def test_arrow_has_the_columns_that_a_schema_names_with_its_precision(typed: Collection) -> None:
    number = list(TYPES).index("decimal")
    schema = pa.schema([("id", pa.string()), (f"c{number}", pa.decimal128(38, 21))])
    found = [one for batch in typed.reader.rows(A, schema) for one in batch.to_pylist()]
    assert {one["id"]: one[f"c{number}"] for one in found}["full"] == TYPES["decimal"][1]
    assert list(found[0]) == schema.names
