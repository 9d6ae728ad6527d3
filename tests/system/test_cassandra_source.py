"""Tables through Spark and back: every value, every row once, and only what was asked for."""

import json
import re
import urllib.request
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from queue import SimpleQueue
from typing import Any
from uuid import UUID

import pytest
from cassandra import ConsistencyLevel
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.util import Date, Duration, Time
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count
from pyspark.sql.types import StructType
from tests.support.services.cassandra_tables import Keyspace
from tests.support.services.marked_connections import MARKER

from tidemark.cassandra.scan.raw_pages import raw_session
from tidemark.settings import ROOT
from tidemark.spark.application import cause_of
from tidemark.spark.source.query_table import query_table

pytestmark = pytest.mark.system

FIRST_TIMEUUID, LAST_TIMEUUID = "00000000-0000-1000-8080-808080808080", "ffffffff-ffff-1fff-bf7f-7f7f7f7f7f7f"
TYPES = {
    "plain": "text",
    "latin": "ascii",
    "tiny": "tinyint",
    "small": "smallint",
    "number": "int",
    "large": "bigint",
    "yes": "boolean",
    "single": "float",
    "twice": "double",
    "bytes": "blob",
    "record": "uuid",
    "timed": "timeuuid",
    "moment": "timestamp",
    "day": "date",
    "hour": "time",
    "after": "duration",
    "address": "inet",
    "amount": "decimal",
    "count": "varint",
    "tags": "set<text>",
    "numbers": "list<int>",
    "headers": "map<text, text>",
    "days": "map<date, frozen<set<uuid>>>",
    "frozen": "frozen<list<text>>",
    "home": "address",
    "old_homes": "list<frozen<address>>",
    "pair": "tuple<int, text>",
    "place": "vector<float, 3>",
    "words": "vector<text, 2>",
}
LOWEST = {
    "plain": "",
    "latin": "",
    "tiny": -(2**7),
    "small": -(2**15),
    "number": -(2**31),
    "large": -(2**63),
    "yes": False,
    "single": float("-inf"),
    "twice": -0.0,
    "bytes": b"",
    "record": UUID(int=0),
    "timed": UUID(FIRST_TIMEUUID),
    "moment": -((2**63 - 1) // 1000),
    "day": Date(-(2**31)),
    "hour": Time(0),
    "after": Duration(-(2**31) + 1, -(2**31) + 1, -(2**63) + 1),
    "address": "0.0.0.0",
    "amount": Decimal("-99999999999999999999.999999999999999999"),
    "count": -(10**38) + 1,
    "frozen": [],
    "home": (None, 0),
    "old_homes": [(None, None)],
    "pair": (None, ""),
    "place": [float("-inf"), -0.0, 0.0],
    "words": ["", ""],
}
HIGHEST = {
    "plain": "žluťoučký 🐎\x00\n" + "x" * 100_000,
    "latin": "\x7f~",
    "tiny": 2**7 - 1,
    "small": 2**15 - 1,
    "number": 2**31 - 1,
    "large": 2**63 - 1,
    "yes": True,
    "single": 3.4028234663852886e38,
    "twice": 1.7976931348623157e308,
    "bytes": bytes(range(256)),
    "record": UUID(int=2**128 - 1),
    "timed": UUID(LAST_TIMEUUID),
    "moment": (2**63 - 1) // 1000,
    "day": Date(2**31 - 1),
    "hour": Time(86_399_999_999_999),
    "after": Duration(2**31 - 1, 2**31 - 1, 2**63 - 1),
    "address": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "amount": Decimal("99999999999999999999.999999999999999999"),
    "count": 10**38 - 1,
    "tags": {"", "ž", "a" * 70_000},
    "numbers": [2**31 - 1, -(2**31), 0, 0],
    "headers": {"": "", "ž": "🐎"},
    "days": {Date(0): {UUID(int=0), UUID(int=1)}, Date(1): set()},
    "frozen": ["", "b", "a"],
    "home": ("ž" * 1_000, 2**31 - 1),
    "old_homes": [("a", 1), ("b", None)],
    "pair": (2**31 - 1, "x" * 1_000),
    "place": [1.5, 2.5, 3.4028234663852886e38],
    "words": ["a" * 200, "🐎"],
}


@pytest.fixture(scope="module")
def typed(keyspace: Keyspace) -> Keyspace:
    """Two tables with all types; the first has rows that another client wrote."""
    keyspace.execute("CREATE TYPE $.address (street text, number int)")
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    for table in ("written", "copied"):
        keyspace.execute(f"CREATE TABLE $.{table} (id text PRIMARY KEY, {columns})")
    names = list(TYPES)
    markers = ", ".join("?" * len(names))
    insert = keyspace.session.prepare(
        f"INSERT INTO {keyspace.name}.written (id, {', '.join(names)}) VALUES (?, {markers})"
    )
    for id_, row in (("lowest", LOWEST), ("highest", HIGHEST), ("nothing", {})):
        keyspace.session.execute(insert, (id_, *(row.get(name) for name in names)))
    return keyspace


ROWS = 1_000
PARTITIONS = 40
EVENTS = [
    (
        f"shop-{n % 8}",
        2020 + n % PARTITIONS // 8,
        n,
        f"of {n % PARTITIONS}",
        None if n % 7 == 0 else f"note {n % 13}",
    )
    for n in range(ROWS)
]


@pytest.fixture(scope="module")
def events(keyspace: Keyspace) -> DataFrame:
    """A table with a key of three columns, and rows in several pages of a partition."""
    keyspace.execute(
        "CREATE TABLE $.events (shop text, year int, seq bigint, shared text static, note text, "
        "PRIMARY KEY ((shop, year), seq))"
    )
    insert = keyspace.session.prepare(
        f"INSERT INTO {keyspace.name}.events (shop, year, seq, shared, note) VALUES (?, ?, ?, ?, ?)"
    )
    execute_concurrent_with_args(keyspace.session, insert, EVENTS, concurrency=32)
    return keyspace.read("events")


def in_cassandra(keyspace: Keyspace, table: str) -> set[tuple[bytes | None, ...]]:
    """Rows as bytes: the driver has no dates for the extremes."""
    found: SimpleQueue[Any] = SimpleQueue()
    raw = raw_session(keyspace.session)
    statement = raw.prepare(
        f"SELECT id, {', '.join(TYPES)} FROM {keyspace.name}.{table}", ConsistencyLevel.ONE
    )
    raw.ask(statement, (), 100, None, lambda page, error: found.put(page or error))
    return set(map(tuple, found.get().rows))


def refusal(work: Any) -> str:
    with pytest.raises(Exception, match="tidemark") as refused:
        work()
    return cause_of(refused.value)


def test_a_copy_through_spark_is_the_same_in_every_value(typed: Keyspace) -> None:
    typed.write(typed.read("written"), "copied")
    original = in_cassandra(typed, "written")
    assert len(original) == 3
    assert in_cassandra(typed, "copied") == original


def test_values_are_what_spark_users_expect(typed: Keyspace) -> None:
    columns = (
        "tiny,large,record,after,amount,count,tags,headers,frozen,hour,address,bytes,old_homes,pair,place"
    )
    highest, nothing = (
        typed.read("written", columns=f"id,{columns}").where("id <> 'lowest'").orderBy("id").collect()
    )
    assert highest.asDict(recursive=True) == {
        "id": "highest",
        "tiny": 127,
        "large": 2**63 - 1,
        "record": "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "after": {"months": 2**31 - 1, "days": 2**31 - 1, "nanoseconds": 2**63 - 1},
        "amount": Decimal("99999999999999999999.999999999999999999"),
        "count": Decimal(10**38 - 1),
        "tags": sorted(HIGHEST["tags"]),
        "headers": {"": "", "ž": "🐎"},
        "frozen": ["", "b", "a"],
        "hour": 86_399_999_999_999,
        "address": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "bytes": bytes(range(256)),
        "old_homes": [{"street": "a", "number": 1}, {"street": "b", "number": None}],
        "pair": {"_1": 2**31 - 1, "_2": "x" * 1_000},
        "place": [1.5, 2.5, 3.4028234663852886e38],
    }
    assert set(nothing.asDict().values()) == {"nothing", None}


def test_a_moment_and_a_day_are_what_they_say(keyspace: Keyspace) -> None:
    keyspace.execute("CREATE TABLE $.times (id int PRIMARY KEY, moment timestamp, day date)")
    keyspace.execute(
        "INSERT INTO $.times (id, moment, day) VALUES (1, '2026-05-28 20:26:40.123Z', '1969-12-31')"
    )
    found = keyspace.read("times").selectExpr("unix_millis(moment) AS moment", "day").first()
    assert tuple(found) == (1_780_000_000_123, date(1969, 12, 31))


def test_a_table_without_rows_is_an_empty_frame_with_its_columns(keyspace: Keyspace) -> None:
    keyspace.execute('CREATE TABLE $."Empty" ("Id" int PRIMARY KEY, "select" text)')
    table = keyspace.read("Empty")
    assert (table.columns, table.collect()) == (["Id", "select"], [])


@pytest.mark.parametrize("fetch_rows", [1, 125, 1000], ids=lambda rows: f"pages of {rows}")
def test_every_row_comes_once_whatever_the_pages_are(
    events: DataFrame, keyspace: Keyspace, fetch_rows: int
) -> None:
    options = {
        "spark.cassandra.input.fetch.sizeInRows": str(fetch_rows),
        "spark.cassandra.input.split.count": "1",
    }
    found = keyspace.read("events", columns="seq", **options)
    assert sorted(row.seq for row in found.collect()) == list(range(ROWS))
    assert {row.place for row in found.selectExpr("spark_partition_id() AS place").collect()} == {0}


def test_a_static_column_comes_with_every_row(events: DataFrame) -> None:
    assert events.where("shared = concat('of ', seq % 40)").count() == ROWS


FILTERS: dict[str, Callable[[str, int, int, str | None], bool]] = {
    "shop = 'shop-3' AND year IN (2021, 2024, 1999)": lambda shop, year, seq, note: (
        shop == "shop-3" and year in (2021, 2024)
    ),
    "shop IN ('shop-1', 'shop-2', 'none') AND year IN (2020, 2020, 2021)": lambda shop, year, seq, note: (
        shop in ("shop-1", "shop-2") and year in (2020, 2021)
    ),
    "shop <=> 'shop-3' AND year <=> 2021 AND seq > 500": lambda shop, year, seq, note: (
        (shop, year) == ("shop-3", 2021) and seq > 500
    ),
    "shop = 'shop-3' AND shop IN ('shop-3', 'shop-4') AND year = 2021": lambda shop, year, seq, note: (
        (shop, year) == ("shop-3", 2021)
    ),
    "seq IN (3, 5, 700, 5000)": lambda shop, year, seq, note: seq in (3, 5, 700),
    "seq >= 100 AND seq < 200 AND year = 2021": lambda shop, year, seq, note: (
        100 <= seq < 200 and year == 2021
    ),
    "shop = 'shop-3' AND year = 2021 AND seq <= 500 AND note IS NOT NULL": lambda shop, year, seq, note: (
        (shop, year) == ("shop-3", 2021) and seq <= 500 and note is not None
    ),
    "shop = 'shop-3' AND year = 2021 AND note IS NULL": lambda shop, year, seq, note: (
        (shop, year, note) == ("shop-3", 2021, None)
    ),
    "shop = 'shop-3'": lambda shop, year, seq, note: shop == "shop-3",
    "shop = 'shop-3' AND year = 2021 OR shop = 'shop-4'": lambda shop, year, seq, note: (
        (shop, year) == ("shop-3", 2021) or shop == "shop-4"
    ),
    "NOT (shop = 'shop-3') AND year = 2021": lambda shop, year, seq, note: shop != "shop-3" and year == 2021,
    "shop LIKE 'shop-1%' AND year = 2020": lambda shop, year, seq, note: shop == "shop-1" and year == 2020,
    "year > 2023 AND note = 'note 5'": lambda shop, year, seq, note: year > 2023 and note == "note 5",
}


@pytest.mark.parametrize("condition", FILTERS)
def test_a_filter_leaves_the_rows_that_it_is_true_for(events: DataFrame, condition: str) -> None:
    expected = [row[2] for row in EVENTS if FILTERS[condition](row[0], row[1], row[2], row[4])]
    assert sorted(row.seq for row in events.where(condition).collect()) == expected


def requests(keyspace: Keyspace, table: str) -> tuple[int, int]:
    """How many partitions and how many ranges Cassandra was asked for so far."""
    query = "SELECT count FROM system_views.{} WHERE keyspace_name = %s AND table_name = %s"
    found = (
        keyspace.execute(query.format(view), keyspace.name, table).one()
        for view in ("coordinator_read_latency", "coordinator_scan_latency")
    )
    partitions, ranges = (int(row.count) if row else 0 for row in found)
    return partitions, ranges


@pytest.mark.parametrize(
    ("condition", "partitions", "scans"),
    [
        ("shop = 'shop-3' AND year = 2021", 1, False),
        ("shop IN ('shop-1', 'shop-2') AND year IN (2020, 2021, 2022)", 6, False),
        ("shop = 'shop-3'", 0, True),
    ],
)
def test_only_the_partitions_that_are_named_are_read(
    events: DataFrame, keyspace: Keyspace, condition: str, partitions: int, scans: bool
) -> None:
    before = requests(keyspace, "events")
    events.where(condition).collect()
    after = requests(keyspace, "events")
    assert (after[0] - before[0], after[1] > before[1]) == (partitions, scans)


def rows_read(frame: DataFrame) -> int:
    """How many rows came out of the source, before Spark's own filters."""
    plan = frame._jdf.queryExecution().executedPlan()
    frame._jdf.queryExecution().toRdd().count()
    return int(plan.collectLeaves().head().metrics().apply("numOutputRows").value())


@pytest.mark.parametrize(
    ("condition", "rows", "pushed"),
    [
        ("seq >= 990", 10, "GreaterThanOrEqual(seq,990)"),
        (
            "shop = 'shop-3' AND year = 2021 AND seq IN (11, 51, 90)",
            2,
            "EqualTo(shop,shop-3), EqualTo(year,2021), In(seq, [11,51,90])",
        ),
        ("note = 'note 5'", ROWS, ""),
    ],
)
def test_clustering_filters_are_cassandra_s_and_explain_shows_them(
    events: DataFrame, capsys: Any, condition: str, rows: int, pushed: str
) -> None:
    """Item 25."""
    filtered = events.where(condition)
    assert rows_read(filtered) == rows
    filtered.explain("formatted")
    said = capsys.readouterr().out
    assert f"PushedFilters: [{pushed}]" in said if pushed else "PushedFilters" not in said.replace("[]", "")


def test_a_frame_is_used_with_several_filters_at_once_and_in_turn(events: DataFrame) -> None:
    """Spark alone would give every scan of a frame the filters that were pushed down last."""
    one, other, late = (
        events.where("shop = 'shop-3' AND year = 2021"),
        events.where("shop = 'shop-4' AND year = 2022"),
        events.where("seq >= 990"),
    )
    one.explain()
    assert one.count() == other.count() == 25
    assert events.count() == ROWS
    assert {row.shop for row in one.union(other).collect()} == {"shop-3", "shop-4"}
    assert one.union(late).union(events).count() == 25 + 10 + ROWS
    assert events.join(late.select("seq"), "seq").count() == 10
    assert len(one.collect()) == 25


def test_a_query_reads_the_columns_that_it_needs(keyspace: Keyspace, events: DataFrame, capsys: Any) -> None:
    """Item 25."""
    found = query_table(
        keyspace.spark,
        lambda table: table.where("seq < 100 AND shop = 'shop-1'").groupBy("year").agg(count("note")),
        keyspace=keyspace.name,
        table="events",
    )
    found.explain("formatted")
    said = capsys.readouterr().out
    assert "ReadSchema: struct<shop:string,year:int,seq:bigint,note:string>" in said
    assert "PushedFilters: [LessThan(seq,100)]" in said
    expected = [row for row in EVENTS if row[2] < 100 and row[0] == "shop-1" and row[4] is not None]
    assert dict(map(tuple, found.collect())) == {
        year: sum(1 for row in expected if row[1] == year) for year in range(2020, 2025)
    }
    counted = query_table(
        keyspace.spark, lambda table: table.groupBy().count(), keyspace=keyspace.name, table="events"
    )
    assert counted.first() == (ROWS,)


def test_counters_are_read_and_not_written(keyspace: Keyspace) -> None:
    """Item 25."""
    keyspace.execute("CREATE TABLE $.visits (page text PRIMARY KEY, visits counter)")
    keyspace.execute("UPDATE $.visits SET visits = visits + 3 WHERE page = 'home'")
    table = keyspace.read("visits")
    assert table.collect() == [("home", 3)]
    assert "is a table of counters" in refusal(lambda: keyspace.write(table, "visits"))


def test_a_uuid_is_looked_up_however_it_is_spelled(typed: Keyspace) -> None:
    typed.execute("CREATE TABLE $.spelled (id uuid PRIMARY KEY)")
    text = "6a1c4f9e-3d3b-4c8e-9d59-0d1b6a3f2e11"
    typed.execute(f"INSERT INTO $.spelled (id) VALUES ({text})")
    table = typed.read("spelled")
    conditions = (
        f"id = '{text}'",
        f"id = '{text.upper()}'",
        f"id IN ('{text}', '{text.upper()}')",
        "id = 'x'",
    )
    assert [table.where(condition).count() for condition in conditions] == [1, 0, 1, 0]


def test_columns_are_those_that_are_named(events: DataFrame, keyspace: Keyspace) -> None:
    assert keyspace.read("events", columns="note, seq").schema == StructType(
        [events.schema["note"], events.schema["seq"]]
    )


def test_a_schema_of_one_s_own_chooses_columns_and_precision(typed: Keyspace) -> None:
    table = (
        typed.spark.read.format("cassandra")
        .schema("count decimal(38, 0), id string not null")
        .options(keyspace=typed.name, table="written")
        .load()
    )
    assert table.where("id = 'lowest'").collect() == [(Decimal(-(10**38) + 1), "lowest")]


def test_null_leaves_a_column_as_it_is_or_removes_what_it_has(
    keyspace: Keyspace, spark: SparkSession
) -> None:
    keyspace.execute("CREATE TABLE $.nulls (id int PRIMARY KEY, note text, tags set<text>)")
    keyspace.execute("INSERT INTO $.nulls (id, note, tags) VALUES (1, 'kept', {'a'})")
    rows = spark.createDataFrame([(1, None, ["b"])], "id int, note string, tags array<string>")
    keyspace.write(rows, "nulls")
    assert tuple(keyspace.execute("SELECT id, note, tags FROM $.nulls").one()) == (1, "kept", {"b"})
    keyspace.write(rows, "nulls", **{"spark.cassandra.output.ignoreNulls": "false"})
    assert tuple(keyspace.execute("SELECT id, note, tags FROM $.nulls").one()) == (1, None, {"b"})


def test_rows_have_the_write_time_and_the_life_they_are_given(
    keyspace: Keyspace, spark: SparkSession
) -> None:
    keyspace.execute("CREATE TABLE $.lives (id int PRIMARY KEY, note text)")
    rows = spark.createDataFrame(
        [(1, "a", 5, 900), (2, "b", 6, None)], "id int, note string, at long, life int"
    )
    keyspace.write(rows, "lives", writetime="at", ttl="life")
    keyspace.write(rows.where("id = 1").selectExpr("id + 2 AS id", "note"), "lives", writetime="7", ttl="800")
    found = keyspace.execute("SELECT id, WRITETIME(note) AS at, TTL(note) AS life FROM $.lives")
    assert {row.id: (row.at, row.life and round(row.life, -2)) for row in found} == {
        1: (5, 900),
        2: (6, None),
        3: (7, 800),
    }


def test_many_rows_arrive_in_batches(keyspace: Keyspace, spark: SparkSession) -> None:
    keyspace.execute("CREATE TABLE $.many (id bigint PRIMARY KEY, note text)")
    rows = spark.range(20_000).selectExpr("id", "repeat('x', id % 100) AS note")
    keyspace.write(rows, "many")
    found = keyspace.read("many")
    assert found.selectExpr("count(*)", "sum(id)", "sum(length(note))").first() == (
        20_000,
        199_990_000,
        990_000,
    )


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            ["shop", "year", "string(seq) AS seq"],
            "column `seq` is a bigint, which is bigint in Spark, not string",
        ),
        (["shop", "nullif(year, 2021) AS year", "seq"], "a row has null for column `year` (int)"),
    ],
)
def test_rows_that_cannot_be_written_are_refused(
    keyspace: Keyspace, events: DataFrame, spark: SparkSession, columns: list[str], said: str
) -> None:
    rows = spark.createDataFrame([("shop-3", 2021, 1, "n")], "shop string, year int, seq long, note string")
    assert said in refusal(lambda: keyspace.write(rows.selectExpr(*columns), "events"))


def test_overwriting_is_refused(keyspace: Keyspace, events: DataFrame) -> None:
    options = {"keyspace": keyspace.name, "table": "events"}
    said = refusal(lambda: events.write.format("cassandra").options(**options).mode("overwrite").save())
    assert "Use mode append" in said
    assert keyspace.execute("SELECT count(*) FROM $.events").one()[0] == ROWS


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ("event", {}, "Did you mean `events`?"),
        ("events", {"spark.cassandra.connection.port": "1"}, "Cassandra does not answer at 127.0.0.1:1"),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    events: DataFrame, keyspace: Keyspace, table: str, options: dict[str, str], said: str
) -> None:
    assert said in refusal(lambda: keyspace.read(table, **options))


def test_a_password_is_in_no_plan_and_on_no_page(
    keyspace: Keyspace, services: Any, spark: SparkSession, capsys: Any
) -> None:
    keyspace.execute("CREATE TABLE $.secrets (id int PRIMARY KEY)")
    options = {
        "spark.cassandra.connection.host": "127.0.0.1",
        "spark.cassandra.connection.port": str(services.cassandra.port),
        "spark.cassandra.auth.username": "reader",
        "spark.cassandra.auth.password": MARKER,
    }
    keyspace.write(spark.createDataFrame([(1,)], "id int"), "secrets", **options)
    table = keyspace.read("secrets", **options)
    assert table.where("id > 0").count() == 1
    table.where("id > 0").explain("extended")
    api = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    pages = [
        urllib.request.urlopen(f"{api}/{page}").read().decode()
        for page in (
            "sql?details=true&planDescription=true&length=1000",
            "environment",
            "stages?details=true",
        )
    ]
    assert len(json.loads(pages[0])) > 1
    assert MARKER not in capsys.readouterr().out + "".join(pages)


def test_the_examples_of_the_documentation_run_from_top_to_bottom(services: Any, spark: SparkSession) -> None:
    page = (ROOT / "docs" / "cassandra-data-source.md").read_text()
    examples = re.findall(
        r"```(python|sql)\n(.*?)```", page.replace("9042", str(services.cassandra.port)), re.S
    )
    names: dict[str, Any] = {}
    try:
        for language, text in examples:
            if language == "python":
                exec(text, names)
            else:
                for statement in filter(str.strip, text.split(";")):
                    services.session.execute(statement)
    finally:
        services.session.execute("DROP KEYSPACE IF EXISTS shop")
    assert len(examples) > 5
