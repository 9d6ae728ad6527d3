"""A collection's tables without Spark: writing, reading as of a time, single keys; each beside its bare form.

Needs a running Cassandra whose port is the argument, and nothing else on it. One process for everything. Bare
writes are the same cells, encoded beforehand, in the order of the messages; a bare scan is the driver's rows
of the same table; a bare query is the prepared SELECT of one row.
"""

import random
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from statistics import median
from typing import Any

import pyarrow.compute as pc
from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import tuple_factory

from tidemark.cassandra.cql_types import parse_type
from tidemark.cassandra.python_values import PythonType
from tidemark.cassandra.scan.clustering import CqlOperator, Restriction
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import scan
from tidemark.cassandra.session import connect, disconnect_all
from tidemark.cassandra.table import quoted
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.model.schema import CollectionSchema, Column
from tidemark.collection.tables.changes import changes, digest_of_stored
from tidemark.collection.tables.codec.cells import change_cells, row_cells
from tidemark.collection.tables.create import create_collection
from tidemark.collection.tables.key_origins import key_origins
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.collection.tables.reading import CollectionReader
from tidemark.collection.tables.scanning import whole_ring
from tidemark.collection.tables.tables import CollectionTables
from tidemark.collection.tables.writing import write_rows
from tidemark.connections import CassandraConnection
from tidemark.outputs.model.digest import shard_of

ROWS, KEYS, BINDINGS = 200_000, 20_000, 4
WARM_UP = 10
T = 1_794_000_000_000_000
TYPES = {name: parse_type(name) for name in ("text", "decimal", "int", "timestamp")}
SCHEMA = CollectionSchema(
    (Column("id", TYPES["text"]),),
    (
        Column("owner", TYPES["text"]),
        Column("balance", TYPES["decimal"]),
        Column("visits", TYPES["int"]),
        Column("opened", TYPES["timestamp"]),
        Column("note", TYPES["text"]),
    ),
    shards=8,
)


def made_rows(seed: int) -> list[CollectionRow]:
    """Rows in the order of their messages: every key ten times, shuffled."""
    chance = random.Random(seed)
    encode = [PythonType(column.type).encode for column in SCHEMA.columns]
    keys = [number % KEYS for number in range(ROWS)]
    chance.shuffle(keys)
    found = []
    for number, key in enumerate(keys):
        cells = (f"account-{seed}-{key:08d}".encode(),)
        values = (
            f"owner {key}",
            Decimal(chance.randrange(10**8)) / 100,
            number,
            datetime.fromtimestamp(1_700_000_000 + number, UTC),
            f"message {number} of the account {key}, as a person wrote it",
        )
        t = T + (number * BINDINGS // ROWS) * 10**9
        data = tuple(one(value) for one, value in zip(encode, values, strict=True))
        shard = shard_of(key_bytes(cells), SCHEMA.shards)
        found.append(CollectionRow(cells, data, t, number, t + number, False, "accounts", 0, number, shard))
    return found


def seconds(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    began = time.monotonic()
    result = work(*arguments)
    return time.monotonic() - began, result


def new_tables(session: Any, name: str) -> CollectionTables:
    place = CollectionPlace("bench", "collection", "bench_collection", name, SCHEMA)
    create_collection(session, place)
    return CollectionTables.of(session, place)


def write_bare(tables: CollectionTables, rows: list[bytes], changed: list[bytes]) -> None:
    with tables.bulk() as bulk:
        for cells in rows:
            bulk.add(tables._insert_row, cells)
        for cells in changed:
            bulk.add(tables._insert_change, cells)


def write_bindings(tables: CollectionTables, rows: list[CollectionRow]) -> None:
    """As deliveries do it: binding by binding."""
    size = ROWS // BINDINGS
    for start in range(0, ROWS, size):
        write_rows(tables, rows[start : start + size])


def measure_writing(session: Any) -> CollectionTables:
    for number in range(WARM_UP):
        tables = new_tables(session, f"warm_{number % 2}")
        rows = made_rows(100 + number)
        taken, _ = seconds(write_rows, tables, rows)
        print(f"warming up: {ROWS / taken:,.0f} rows/s")
    rates: dict[str, list[float]] = {}
    for number in range(3):
        rows = made_rows(number)
        cells = [row_cells(row, key_bytes(row.key)) for row in rows]
        places = {(row.shard, row.t, row.key) for row in rows}
        changed = [change_cells(shard, t, key_bytes(key)) for shard, t, key in places]
        single = [one._replace(t=T) for one in rows]
        works: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
            "bare": (write_bare, (cells, changed)),
            "one binding": (write_rows, (single,)),
            "four bindings": (write_bindings, (rows,)),
            "bare, rows only": (write_bare, (cells, [])),
        }
        for way, (write, what) in works.items():
            name = way.replace(" ", "_").replace(",", "")
            taken, _ = seconds(write, new_tables(session, f"{name}_{number}"), *what)
            rates.setdefault(way, []).append(ROWS / taken)
        shown = {way: f"{found[-1]:,.0f}" for way, found in rates.items()}
        print(shown, f"{len(changed)} changes")
    for way, found in rates.items():
        print(
            f"write, {way}: {median(found):,.0f} rows/s, {median(found) / median(rates['bare']):.2f} of bare"
        )
    return new_tables(session, "four_bindings_0")


def to_tuples(session: Any, tables: CollectionTables, where: str, values: tuple[Any, ...]) -> int:
    table = tables.place.rows
    key = quoted(table.partition_key)
    names = quoted((*tables.place.key_columns, *tables.place.data_columns, "gone"))
    statement = session.prepare(
        f"SELECT {names} FROM {table.cql_name} WHERE token({key}) > ? AND token({key}) <= ? {where}"
    )
    profile = session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=tuple_factory)
    ranges = [(each.after, each.upto, *values) for each in whole_ring(session)]
    found = execute_concurrent_with_args(
        session, statement, ranges, concurrency=4, results_generator=True, execution_profile=profile
    )
    return sum(1 for result in found for _ in result.result_or_exc)


def in_the_client(session: Any, tables: CollectionTables, at: int) -> int:
    """The newest row of each key, found among all of them."""
    place = tables.place
    selected = Selected.of(place.rows, (*place.key_columns, "t", *place.data_columns, "gone"))
    up_to = [Restriction("t", CqlOperator.LESS_OR_EQUAL, at)]
    newest: dict[Any, int] = {}
    for batch in scan(session, selected, whole_ring(session), restrictions=up_to):
        for key in pc.unique(batch.column("id")).to_pylist():
            newest[key] = 1
    return len(newest)


def measure_reading(session: Any, tables: CollectionTables) -> None:
    reader, at = CollectionReader(tables), T + 2 * 10**9
    newest = "AND t <= ? PER PARTITION LIMIT 1 ALLOW FILTERING"
    ways: dict[str, Callable[[], int]] = {
        "rows(at)": lambda: sum(batch.num_rows for batch in reader.rows(at)),
        "bare, the same query": lambda: to_tuples(session, tables, newest, (at,)),
        "bare, every row": lambda: to_tuples(session, tables, "", ()),
        "every row, newest in the client": lambda: in_the_client(session, tables, at),
        "stored(at)": lambda: sum(1 for _ in reader.stored(at)),
    }
    for round_ in range(5):
        for way, read in ways.items():
            taken, count = seconds(read)
            if round_ > 2:
                print(f"{way}: {count} rows in {taken:.2f} s, {count / taken:,.0f} rows/s")


def measure_keys(session: Any, tables: CollectionTables) -> None:
    reader, at = CollectionReader(tables), T + 2 * 10**9
    chance = random.Random(1)
    keys = [f"account-0-{chance.randrange(KEYS):08d}" for _ in range(3_000)]
    profile = session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=tuple_factory)

    def bare(key: str) -> Any:
        return session.execute(reader._select, (key, at), execution_profile=profile).one()

    for way, read in {"warm": bare, "get": lambda key: reader.get({"id": key}, at), "bare": bare}.items():
        times = sorted(seconds(read, key)[0] * 1e6 for key in keys)
        print(f"{way}: p50 {times[1500]:.0f} µs, p99 {times[2970]:.0f} µs")
    raw = [(f"account-0-{number:08d}".encode(),) for number in range(KEYS)]
    for _ in range(3):
        taken, found = seconds(lambda: key_origins(tables, 2**62, raw))
        print(f"key_origins: {len(found) / taken:,.0f} keys/s")
    for _ in range(3):
        taken, count = seconds(lambda: sum(1 for _ in changes(tables, at)))
        print(f"changes: {count} differences in {taken:.2f} s")
        taken, digests = seconds(lambda: digest_of_stored(tables, at))
        print(f"digest of {digests.total.count} rows in {taken:.2f} s")


if __name__ == "__main__":
    session = connect(CassandraConnection(hosts=("127.0.0.1",), port=int(sys.argv[1])))
    session.execute("DROP KEYSPACE IF EXISTS bench_collection", timeout=60)
    written = measure_writing(session)
    measure_reading(session, written)
    measure_keys(session, written)
    session.execute("DROP KEYSPACE bench_collection", timeout=60)
    disconnect_all()
