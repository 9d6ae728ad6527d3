"""What the data source does with Spark alone: no Cassandra takes part."""

import pickle
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    In,
    IsNotNull,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from tests.support.cql_samples import USER_TYPES
from tests.support.table_samples import ORDERS

from tidemark.cassandra.bulk.statements import RowStatement
from tidemark.cassandra.bulk.writer import BulkCounts
from tidemark.cassandra.cql_types import CqlKind, arrow_type, parse_type
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.partition_keys import PartitionKey
from tidemark.cassandra.table import Column, Role, Table
from tidemark.cassandra.token_ranges import HIGHEST, LOWEST
from tidemark.connections import CassandraConnection
from tidemark.spark.application import cause_of
from tidemark.spark.source import cassandra as cassandra_source
from tidemark.spark.source import own_scans
from tidemark.spark.source import reader as cassandra_reader
from tidemark.spark.source.cassandra import PUSHDOWN, REDACTED, register_cassandra
from tidemark.spark.source.errors import (
    BatchIncomplete,
    CompleteModeRefused,
    OverwriteRefused,
    SchemaRefused,
    WorkersRefused,
)
from tidemark.spark.source.options import CassandraOptions
from tidemark.spark.source.reader import CassandraReader, PushingReader, Split
from tidemark.spark.source.writer import CassandraStreamWriter, RowWriting, WrittenRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

pytestmark = pytest.mark.spark

ONLY_APPLICATION = pytest.mark.parametrize("spark", ["application"], indirect=True)

NOWHERE = CassandraConnection(hosts=("127.0.0.1",), port=1, user="joe", password="hunter2-marker-7f3a")
NESTED = (CqlKind.LIST, CqlKind.SET, CqlKind.MAP, CqlKind.TUPLE, CqlKind.USER_TYPE, CqlKind.VECTOR)
TYPES = [kind.value for kind in CqlKind if kind not in NESTED]
COLLECTIONS = [
    "tuple<int, text>",
    "address",
    "vector<float, 3>",
    "list<int>",
    "set<uuid>",
    "map<text, timestamp>",
    "map<date, frozen<list<decimal>>>",
]


@pytest.mark.parametrize("name", [*TYPES, *COLLECTIONS])
def test_arrow_s_type_is_the_one_that_spark_has_for_the_same(name: str) -> None:
    schema = pa.schema([("column", arrow_type(parse_type(name, USER_TYPES)))])
    assert to_arrow_schema(from_arrow_schema(schema), timezone="UTC").equals(schema)


def test_registering_switches_on_what_reads_need(spark: "SparkSession") -> None:
    register_cassandra(spark, NOWHERE)
    register_cassandra(spark, NOWHERE)
    assert spark.conf.get(PUSHDOWN) == "true"
    assert {"url", "password"} <= set(str(spark.conf.get(REDACTED)).removeprefix("(?i)").split("|"))


def refusal(reader: "DataFrameReader") -> str:
    """Why a read is refused: by the time its schema is known, which a Connect session learns on demand."""
    with pytest.raises(Exception, match="tidemark") as refused:
        reader.load().schema  # noqa: B018
    return cause_of(refused.value)


def test_a_registered_connection_is_used_and_its_password_is_not_told(spark: "SparkSession") -> None:
    register_cassandra(spark, NOWHERE)
    said = refusal(spark.read.format("cassandra").options(keyspace="shop", table="orders"))
    assert "Cassandra does not answer at 127.0.0.1:1 " in said
    assert "hunter2" not in said


def test_options_say_otherwise(spark: "SparkSession") -> None:
    register_cassandra(spark, NOWHERE)
    options = {"keyspace": "shop", "table": "orders", "spark.cassandra.connection.port": "2"}
    assert "does not answer at 127.0.0.1:2 " in refusal(spark.read.format("cassandra").options(**options))


def test_the_session_s_configuration_says_where_cassandra_is(spark: "SparkSession") -> None:
    spark.conf.set("spark.cassandra.connection.port", "3")
    try:
        register_cassandra(spark)
    finally:
        spark.conf.unset("spark.cassandra.connection.port")
    said = refusal(spark.read.format("cassandra").options(keyspace="shop", table="orders"))
    assert "does not answer at 127.0.0.1:3 " in said


def test_an_option_that_is_not_known_is_refused(spark: "SparkSession") -> None:
    register_cassandra(spark, NOWHERE)
    options = {"keyspace": "shop", "table": "orders", "colunms": "number"}
    assert "Did you mean `columns`?" in refusal(spark.read.format("cassandra").options(**options))


def reader(**options: str) -> PushingReader:
    read = CassandraOptions.read({"keyspace": "shop", "table": "orders", **options})
    return PushingReader(NOWHERE, read, Selected.of(ORDERS), cores=2)


ANN, BOTH, YEAR = EqualTo(("customer",), "ann"), In(("customer",), ("ann", "bob")), EqualTo(("year",), 2026)


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        pytest.param([ANN, YEAR], [("ann", 2026)], id="equal"),
        pytest.param([YEAR, BOTH], [("ann", 2026), ("bob", 2026)], id="one of several"),
        pytest.param([EqualNullSafe(("customer",), "ann"), YEAR], [("ann", 2026)], id="equal or both null"),
        pytest.param([BOTH, ANN, YEAR], [("ann", 2026)], id="the narrower of two"),
        pytest.param([In(("customer",), (None,)), YEAR], [], id="null is no partition"),
    ],
)
def test_a_whole_partition_key_is_looked_up(filters: list[Filter], keys: list[Any]) -> None:
    read = reader()
    read.pushFilters(filters)
    parts = [part for split in read.partitions() for part in split.parts]
    assert parts == [PartitionKey(each) for each in keys]


@pytest.mark.parametrize(
    "filters",
    [
        pytest.param([], id="nothing"),
        pytest.param([ANN], id="part of the key"),
        pytest.param([ANN, GreaterThan(("year",), 2020)], id="greater"),
        pytest.param([ANN, Not(YEAR)], id="not equal"),
        pytest.param([StringStartsWith(("customer",), "a"), YEAR], id="a prefix"),
        pytest.param([EqualTo(("customer", "name"), "ann"), YEAR], id="something inside a column"),
        pytest.param([In(("customer",), tuple(map(str, range(10_001)))), YEAR], id="too many"),
    ],
)
def test_other_filters_are_spark_s_to_do(filters: list[Filter], monkeypatch: pytest.MonkeyPatch) -> None:
    live_nowhere(monkeypatch)
    read = reader()
    assert list(read.pushFilters(filters)) == filters
    assert covered(read) == (LOWEST, HIGHEST)


def test_what_is_settled_is_not_given_back() -> None:
    note = IsNotNull(("Note",))
    assert list(reader().pushFilters([ANN, note, YEAR])) == [note]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("6a1c4f9e-3d3b-4c8e-9d59-0d1b6a3f2e11", 1, id="as it is read"),
        pytest.param("6A1C4F9E-3D3B-4C8E-9D59-0D1B6A3F2E11", 0, id="as no row has it"),
    ],
)
def test_a_text_that_may_be_spelled_in_several_ways_is_equal_in_one(text: str, parts: int) -> None:
    table = Table("shop", "records", (Column("id", "uuid", Role.PARTITION_KEY),))
    read = PushingReader(NOWHERE, reader()._options, Selected.of(table), cores=2)
    assert list(read.pushFilters([EqualTo(("id",), text)])) == []
    assert len(read.partitions()[0].parts) == parts


def test_filters_may_be_pushed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    live_nowhere(monkeypatch)
    read = reader()
    read.pushFilters([ANN, YEAR])
    read.pushFilters([])
    assert covered(read) == (LOWEST, HIGHEST)


def asked(read: CassandraReader, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The restrictions that every task's statements have."""
    calls: list[Any] = []
    monkeypatch.setattr(cassandra_reader, "connect", lambda connection: None)
    monkeypatch.setattr(cassandra_reader, "scan", lambda *given: calls.append(given[4]) or [])
    # As it travels to the task.
    list(pickle.loads(pickle.dumps(read)).read(Split((PartitionKey(("ann", 2026)),))))
    return [(str(each), each.value) for each in calls[0]]


OVER, UNDER = GreaterThan(("number",), 5), LessThanOrEqual(("number",), 9)


@pytest.mark.parametrize(
    ("filters", "restrictions"),
    [
        pytest.param([EqualTo(("number",), 5)], [("number = ?", 5)], id="equal"),
        pytest.param([EqualNullSafe(("number",), 5)], [("number = ?", 5)], id="equal or both null"),
        pytest.param([In(("number",), (5, 6))], [("number IN ?", [5, 6])], id="one of several"),
        pytest.param(
            [OVER, UNDER, IsNotNull(("number",))], [("number > ?", 5), ("number <= ?", 9)], id="a range"
        ),
        pytest.param([ANN, YEAR, OVER], [("number > ?", 5)], id="inside a partition"),
    ],
)
def test_clustering_columns_are_cassandra_s_to_filter(
    monkeypatch: pytest.MonkeyPatch, filters: list[Filter], restrictions: list[Any]
) -> None:
    """Item 25."""
    read = reader()
    left = list(read.pushFilters(filters))
    assert left == [each for each in filters if isinstance(each, IsNotNull)]
    assert asked(read, monkeypatch) == restrictions


def test_rows_whose_clustering_column_is_empty_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are null, and to Cassandra they lie below every number."""
    batch = pa.RecordBatch.from_pylist([{"number": 1}, {"number": None}], pa.schema([("number", pa.int64())]))
    monkeypatch.setattr(cassandra_reader, "connect", lambda connection: None)
    monkeypatch.setattr(cassandra_reader, "scan", lambda *given: [batch])
    read = reader()
    assert list(read.pushFilters([UNDER])) == []
    found = list(read.read(Split((PartitionKey(("ann", 2026)),))))
    assert [row for each in found for row in each.to_pylist()] == [{"number": 1}]


@pytest.mark.parametrize("is_installed", [True, False])
def test_filters_are_pushed_down_only_where_each_scan_has_its_own_plan(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    monkeypatch.setattr(own_scans, "install", lambda spark, source: is_installed)
    register_cassandra(spark, NOWHERE)
    source = cassandra_source._registered[spark]
    monkeypatch.setattr(source, "_table", lambda self: ORDERS)
    read = source({"keyspace": "shop", "table": "orders"}).reader(
        from_arrow_schema(Selected.of(ORDERS).schema)
    )
    assert (type(read).pushFilters is DataSourceReader.pushFilters) is not is_installed


@ONLY_APPLICATION
def test_the_rule_for_scans_is_installed_once(spark: "SparkSession") -> None:
    assert own_scans.install(spark, "cassandra")
    assert own_scans.install(spark, "cassandra")
    rules = spark._jsparkSession.experimental().extraOptimizations()
    assert [rules.apply(n).ruleName() for n in range(rules.size())].count(own_scans.CLASS) == 1


@ONLY_APPLICATION
def test_a_spark_that_the_rule_is_not_for_has_no_pushdown(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_scans, "CLASS", "tidemark.NoSuchRule")
    assert own_scans.install(spark, "cassandra") is False


def test_rows_without_a_value_are_spark_s_to_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that has static columns only is a row with null for its clustering columns."""
    without = EqualNullSafe(("number",), None)
    read = reader()
    assert list(read.pushFilters([without])) == [without]
    assert asked(read, monkeypatch) == []


def test_clustering_filters_that_exclude_each_other_read_nothing() -> None:
    read = reader()
    read.pushFilters([EqualTo(("number",), 1), EqualTo(("number",), 2)])
    assert [split.parts for split in read.partitions()] == [()]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([WrittenRows(BulkCounts(), 7), None], "a task did not say what it has written"),
        ([WrittenRows(BulkCounts(), 7), WrittenRows(BulkCounts(), 6)], "a task has written rows of batch 6"),
    ],
)
def test_a_batch_of_a_stream_is_committed_whole_or_not(messages: list[Any], said: str) -> None:
    writing = RowWriting(NOWHERE, reader()._options, RowStatement(ORDERS, (), ""))
    writer = CassandraStreamWriter(writing)
    writer.commit([WrittenRows(BulkCounts(rows=5), 7), WrittenRows(BulkCounts(), 7)], 7)
    with pytest.raises(BatchIncomplete, match=f"shop.orders: batch 7 of the stream .* {said}"):
        writer.commit(messages, 7)


@ONLY_APPLICATION
def test_a_python_that_cannot_run_the_tasks_is_refused_in_a_sentence(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Item 25: what happens without PYSPARK_PYTHON."""
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python-7f3a")
    with pytest.raises(WorkersRefused, match=r"Spark starts `no-such-python-7f3a`.*set PYSPARK_PYTHON="):
        register_cassandra(spark, NOWHERE)


def test_many_keys_are_dealt_to_a_few_tasks() -> None:
    read = reader()
    read.pushFilters([In(("customer",), tuple(map(str, range(5_000)))), YEAR])
    assert sorted(len(split.parts) for split in read.partitions()) == [1_250] * 4


@pytest.mark.parametrize(
    ("size", "options", "splits"),
    [
        pytest.param(0, {}, 4, id="of unknown size: two a core"),
        pytest.param(10 * 2**30, {}, 20, id="as many as its size asks for"),
        pytest.param(10 * 2**30, {"spark.cassandra.input.split.sizeInMB": "1024"}, 10, id="larger ones"),
        pytest.param(10 * 2**30, {"spark.cassandra.input.split.count": "3"}, 3, id="as many as is said"),
    ],
)
def test_a_table_is_read_in_so_many_tasks(
    monkeypatch: pytest.MonkeyPatch, size: int, options: dict[str, str], splits: int
) -> None:
    live_nowhere(monkeypatch, size)
    assert len(reader(**options).partitions()) == splits


def live_nowhere(monkeypatch: pytest.MonkeyPatch, size: int = 0) -> None:
    """No Cassandra: planning finds a table of this size on one node."""
    monkeypatch.setattr(cassandra_reader, "connect", lambda connection: None)
    monkeypatch.setattr(cassandra_reader, "ring_tokens", lambda session: [0])
    monkeypatch.setattr(cassandra_reader, "estimated_bytes", lambda session, keyspace, table: size)


def covered(read: CassandraReader) -> tuple[int, int]:
    """From where to where the ranges go, without a gap."""
    ranges = [part for split in read.partitions() for part in split.parts]
    assert all(one.upto == other.after for one, other in pairwise(ranges))
    return ranges[0].after, ranges[-1].upto


def test_a_reader_and_its_splits_travel() -> None:
    read = pickle.loads(pickle.dumps(reader()))
    read.pushFilters([ANN, YEAR])
    assert pickle.loads(pickle.dumps(read.partitions())) == [Split((PartitionKey(("ann", 2026)),))]


@pytest.mark.parametrize(
    "error",
    [
        SchemaRefused("t", "c", "int", "int", "bigint"),
        OverwriteRefused("t"),
        CompleteModeRefused("t"),
        BatchIncomplete("t", 7, "of this"),
        WorkersRefused("python3", "python", "that is another"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_the_way_from_a_task(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
