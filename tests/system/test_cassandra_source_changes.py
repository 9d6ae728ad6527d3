"""Through Spark into tables and out of them: deletes, streams, joins by key, write times (item 25)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from tests.support.services.cassandra_tables import Keyspace

from tidemark.spark.application import cause_of
from tidemark.spark.source.errors import JoinRefused
from tidemark.spark.source.join_by_key import join_by_key

pytestmark = pytest.mark.system

YEAR = 1_767_225_600_000_000
"""The beginning of 2026, in µs."""


@pytest.fixture
def orders(keyspace: Keyspace) -> Iterator[Keyspace]:
    """Two customers with three orders in each of two years, written at the beginning of 2026."""
    keyspace.execute(
        "CREATE TABLE IF NOT EXISTS $.orders (customer text, year int, number bigint, placed timestamp, "
        "note text, PRIMARY KEY ((customer, year), number))"
    )
    for customer in ("ann", "bob"):
        for year in (2025, 2026):
            for number in (1, 2, 3):
                keyspace.execute(
                    "INSERT INTO $.orders (customer, year, number, placed, note) VALUES (%s, %s, %s, %s, %s) "
                    f"USING TIMESTAMP {YEAR}",
                    *(customer, year, number, number * 1000, f"{customer} {number}"),
                )
    yield keyspace
    keyspace.execute("TRUNCATE $.orders")


def left(orders: Keyspace) -> set[tuple[str, int, int]]:
    return set(map(tuple, orders.execute("SELECT customer, year, number FROM $.orders")))


def refusal(work: Any) -> str:
    with pytest.raises(Exception, match="tidemark") as refused:
        work()
    return cause_of(refused.value)


def keys(orders: Keyspace, rows: list[Any], schema: str) -> DataFrame:
    return orders.spark.createDataFrame(rows, schema)


def test_rows_are_deleted_by_their_key(orders: Keyspace) -> None:
    before = left(orders)
    gone = [("ann", 2026, 2), ("bob", 2025, 1), ("eve", 2025, 1)]
    rows = keys(orders, gone, "customer string, year int, number long")
    orders.write(rows, "orders", operation="delete")
    assert left(orders) == before - set(gone)


def test_a_delete_with_a_time_leaves_what_is_newer(orders: Keyspace) -> None:
    before = left(orders)
    rows = keys(
        orders,
        [("ann", 2026, 1, YEAR - 1), ("ann", 2026, 2, YEAR)],
        "customer string, year int, number long, at long",
    )
    orders.write(rows, "orders", operation="delete", writetime="at")
    assert left(orders) == before - {("ann", 2026, 2)}


def test_whole_partitions_are_deleted_only_if_that_is_said(orders: Keyspace) -> None:
    before = left(orders)
    rows = keys(orders, [("ann", 2026)], "customer string, year int")
    assert "delete_ranges" in refusal(lambda: orders.write(rows, "orders", operation="delete"))
    assert left(orders) == before
    orders.write(rows, "orders", operation="delete_ranges")
    assert left(orders) == {row for row in before if row[:2] != ("ann", 2026)}


def test_write_times_and_lives_are_read_and_kept_by_a_copy(orders: Keyspace) -> None:
    orders.execute(
        "CREATE TABLE $.copies (customer text, year int, number bigint, note text, "
        "PRIMARY KEY ((customer, year), number))"
    )
    orders.execute(
        "UPDATE $.orders USING TTL 500 SET note = 'soon gone' "
        "WHERE customer = 'ann' AND year = 2026 AND number = 1"
    )
    table = orders.read(
        "orders", columns="customer,year,number,note", ttl_of="note", writetime_of="note"
    ).where("customer = 'ann' AND year = 2026")
    orders.write(table, "copies", writetime="note_writetime", ttl="note_ttl")
    query = (
        "SELECT number, note, writetime(note) AS at, ttl(note) AS life FROM $.{} "
        "WHERE customer = 'ann' AND year = 2026"
    )
    original, copy = (orders.execute(query.format(name)).all() for name in ("orders", "copies"))
    assert [row[:3] for row in copy] == [row[:3] for row in original]
    assert [bool(row.life) for row in copy] == [True, False, False]
    assert copy[1].at == YEAR


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [("ann", "x", 1, 1.0), ("ann", "x", 2, 2.0), ("ann", "x", 3, 3.0)]),
        (
            "left",
            [
                *(("ann", "x", number, float(number)) for number in (1, 2, 3)),
                ("eve", "y", None, None),
                (None, "z", None, None),
            ],
        ),
    ],
)
def test_a_frame_is_joined_by_partition_key(orders: Keyspace, how: str, expected: list[Any]) -> None:
    rows = keys(
        orders,
        [("ann", 2026, "x"), ("eve", 2026, "y"), (None, 2026, "z")],
        "buyer string, year int, mark string",
    ).repartition(2)
    found = join_by_key(
        rows,
        keyspace=orders.name,
        table="orders",
        on={"buyer": "customer", "year": "year"},
        columns=["number", "placed"],
        how=how,
    )
    assert found.columns == ["buyer", "year", "mark", "number", "placed"]
    seen = found.selectExpr("buyer", "mark", "number", "double(placed) AS placed").collect()
    assert sorted(map(tuple, seen), key=str) == sorted(expected, key=str)


def test_a_frame_is_joined_by_whole_key_without_reading_the_table(orders: Keyspace) -> None:
    rows = keys(orders, [("ann", 2026, 3), ("bob", 2025, 9)], "customer string, year int, number long")
    query = "SELECT count FROM system_views.{} WHERE keyspace_name = %s AND table_name = 'orders'"

    def requests(view: str) -> int:
        row = orders.execute(query.format(view), orders.name).one()
        return int(row.count) if row else 0

    views = ("coordinator_read_latency", "coordinator_scan_latency")
    before = [requests(view) for view in views]
    found = join_by_key(
        rows, keyspace=orders.name, table="orders", on=["customer", "year", "number"], columns=["note"]
    )
    assert found.collect() == [("ann", 2026, 3, "ann 3")]
    assert [requests(view) - count for view, count in zip(views, before, strict=True)] == [2, 0]


def test_a_join_that_would_read_the_table_is_refused(orders: Keyspace) -> None:
    rows = keys(orders, [("ann",)], "customer string")
    with pytest.raises(JoinRefused, match="the whole partition key"):
        join_by_key(rows, keyspace=orders.name, table="orders", on="customer")


def stream(orders: Keyspace, folder: Path, **options: str) -> Any:
    """A stream of JSON files into the table, which ends when it has read them all."""
    schema = "customer string, year int, number long, note string"
    rows = orders.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    if "writetime" in options:
        rows = rows.withColumn(options["writetime"], expr("unix_micros(current_timestamp())"))
    target = {"keyspace": orders.name, "table": "orders", "checkpointLocation": str(folder / "checkpoint")}
    query = (
        rows.writeStream.format("cassandra").options(**target, **options).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    return query


def put(folder: Path, name: str, *rows: str) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / name).write_text("\n".join(rows))


def times(orders: Keyspace) -> dict[int, tuple[str, int]]:
    query = "SELECT number, note, writetime(note) AS at FROM $.orders WHERE customer = 'sue' AND year = 2026"
    return {row.number: (row.note, row.at) for row in orders.execute(query)}


def test_a_stream_writes_each_batch_and_a_batch_again_is_the_same(orders: Keyspace, tmp_path: Path) -> None:
    """A crash between the sink's commit and Spark's note of it: the batch comes again with the same times."""
    put(tmp_path, "1.json", '{"customer": "sue", "year": 2026, "number": 1, "note": "a"}')
    stream(orders, tmp_path, writetime="at")
    put(
        tmp_path,
        "2.json",
        '{"customer": "sue", "year": 2026, "number": 1, "note": "b"}',
        '{"customer": "sue", "year": 2026, "number": 2, "note": "c"}',
    )
    stream(orders, tmp_path, writetime="at")
    before = times(orders)
    assert {number: note for number, (note, _) in before.items()} == {1: "b", 2: "c"}
    for noted in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        noted.unlink()
    orders.execute("TRUNCATE $.orders")
    again = stream(orders, tmp_path, writetime="at")
    assert again.lastProgress["batchId"] == 1
    assert times(orders) == before


def test_a_stream_may_delete(orders: Keyspace, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"customer": "ann", "year": 2026}')
    before = left(orders)
    rows = orders.spark.readStream.schema("customer string, year int").json(str(tmp_path / "in"))
    target = {"keyspace": orders.name, "table": "orders", "operation": "delete_ranges"}
    query = (
        rows.writeStream.format("cassandra")
        .options(**target, checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert left(orders) == {row for row in before if row[:2] != ("ann", 2026)}


def test_a_stream_that_would_have_to_empty_the_table_is_refused(orders: Keyspace, tmp_path: Path) -> None:
    put(tmp_path, "1.json", '{"customer": "sue", "year": 2026, "number": 1}')
    before = left(orders)
    rows = orders.spark.readStream.schema("customer string, year int, number long").json(str(tmp_path / "in"))
    counts = rows.groupBy("customer", "year").count().withColumnRenamed("count", "number")
    query = (
        counts.writeStream.format("cassandra")
        .options(keyspace=orders.name, table="orders", checkpointLocation=str(tmp_path / "checkpoint"))
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    assert "Use mode append" in refusal(query.awaitTermination)
    assert left(orders) == before
