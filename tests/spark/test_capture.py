"""capture: Kafka's records become the log's messages, with ids that every run computes alike."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from tests.unit.log.samples import given_binding

from tidemark.log.binding import Binding
from tidemark.log.errors import RecordsMissing
from tidemark.log.files import LOG_SCHEMA, LogFolder
from tidemark.log.manifest import LogFile
from tidemark.spark.capture import add_ids, check_ranges, write_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 0, 0, 2), ("orders", 1, 7, 9))

KAFKA_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))),
    ]
)
SPARK_SCHEMA = (
    "topic string, partition int, offset long, timestamp long, timestamp_type int, key binary, value binary, "
    "headers array<struct<name: string, value: binary>>"
)
"""The columns that ``read_bound`` produces."""

RECORDS = {
    ("invoices", 0): [(10, b"i10"), (12, b"i12")],
    ("orders", 0): [(0, b"o0"), (1, None)],
    ("orders", 1): [(7, b"o7")],
}


def given_record(topic: str, partition: int, offset: int, value: bytes | None) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": 1_700_000_000_000 + offset,
        "timestamp_type": 1,
        "key": b"k",
        "value": value,
        "headers": [{"name": "trace", "value": b"\x01"}] if offset % 2 else None,
    }


def given_batch(topic: str, partition: int, *offsets: int) -> pa.RecordBatch:
    rows = [given_record(topic, partition, offset, b"v%d" % offset) for offset in offsets]
    return pa.RecordBatch.from_pylist(rows, schema=KAFKA_SCHEMA)


def given_records(
    spark: "SparkSession", records: dict[tuple[str, int], list[tuple[int, bytes | None]]]
) -> "DataFrame":
    """Records as Spark's Kafka source gives them: one partition of the DataFrame per Kafka partition."""
    parts = [
        [tuple(given_record(*place, offset, value).values()) for offset, value in values]
        for place, values in records.items()
    ]
    rows = spark.sparkContext.parallelize(parts, len(parts)).flatMap(lambda part: part)
    return spark.createDataFrame(rows, SPARK_SCHEMA)


@dataclass(frozen=True)
class Capture:
    """A folder, and what a capture into it has answered."""

    folder: Path
    files: list[LogFile]


@pytest.fixture(scope="module")
def captured(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """All records, captured once."""
    folder = tmp_path_factory.mktemp("log")
    return Capture(folder, write_files(given_records(spark, RECORDS), BINDING, "orders", str(folder)))


# Ids


def test_ids_and_write_times_come_from_the_binding():
    batch = add_ids(given_batch("orders", 1, 7, 8), BINDING)
    assert batch.select(["id", "t", "write_time", "offset"]).to_pylist() == [
        {"id": 105, "t": 1_000_000, "write_time": 1_000_005, "offset": 7},
        {"id": 106, "t": 1_000_000, "write_time": 1_000_006, "offset": 8},
    ]


def test_holes_in_the_offsets_are_holes_in_the_ids():
    assert add_ids(given_batch("invoices", 0, 10, 12), BINDING)["id"].to_pylist() == [100, 102]


def test_a_message_has_the_log_s_columns():
    assert add_ids(given_batch("orders", 0, 0), BINDING).schema.equals(LOG_SCHEMA)


def test_the_rest_of_a_record_is_kept_as_it_is():
    (message,) = add_ids(given_batch("orders", 0, 1), BINDING).to_pylist()
    record = given_record("orders", 0, 1, b"v1")
    assert {name: message[name] for name in record} == record


def test_the_namespace_is_the_topic():
    assert add_ids(given_batch("invoices", 0, 10), BINDING)["namespace"].to_pylist() == ["invoices"]


def test_records_of_a_partition_that_is_not_bound_have_no_ids():
    with pytest.raises(KeyError):
        add_ids(given_batch("orders", 5, 0), BINDING)


# Files


def test_every_kafka_partition_is_a_file_in_id_order(captured):
    assert [(f.path, f.topic, f.partition, f.first_id, f.last_id, f.count) for f in captured.files] == [
        ("files/00000000000000000100.parquet", "invoices", 0, 100, 102, 2),
        ("files/00000000000000000103.parquet", "orders", 0, 103, 104, 2),
        ("files/00000000000000000105.parquet", "orders", 1, 105, 105, 1),
    ]


def test_the_files_hold_the_records(captured):
    tables = [pq.read_table(captured.folder / file.path) for file in captured.files]
    assert [row for table in tables for row in table.select(["id", "value", "headers"]).to_pylist()] == [
        {"id": 100, "value": b"i10", "headers": None},
        {"id": 102, "value": b"i12", "headers": None},
        {"id": 103, "value": b"o0", "headers": None},
        {"id": 104, "value": None, "headers": [{"name": "trace", "value": b"\x01"}]},
        {"id": 105, "value": b"o7", "headers": [{"name": "trace", "value": b"\x01"}]},
    ]


def test_what_is_answered_is_what_is_on_disk(captured):
    for file in captured.files:
        assert file.bytes == (captured.folder / file.path).stat().st_size
        LogFolder("orders", str(captured.folder)).verify(file)


def test_capturing_again_keeps_the_files(spark, captured):
    inodes = [(captured.folder / file.path).stat().st_ino for file in captured.files]
    again = write_files(given_records(spark, RECORDS), BINDING, "orders", str(captured.folder))
    assert again == captured.files
    assert [(captured.folder / file.path).stat().st_ino for file in again] == inodes


def test_other_batches_make_the_same_files(spark, tmp_path, captured):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    try:
        other = write_files(given_records(spark, RECORDS), BINDING, "orders", str(tmp_path))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert other == captured.files


def test_a_partition_without_records_makes_no_file(spark, tmp_path):
    records = RECORDS | {("orders", 0): []}
    files = write_files(given_records(spark, records), BINDING, "orders", str(tmp_path))
    assert [(file.topic, file.partition) for file in files] == [("invoices", 0), ("orders", 1)]


def test_a_record_that_the_binding_does_not_own_is_refused(spark, tmp_path):
    records = {("orders", 1): [(7, b"o7"), (9, b"too far")]}
    with pytest.raises(
        PythonException, match="orders: orders/1 was bound from offset 7 up to 9, but capture found"
    ):
        write_files(given_records(spark, records), BINDING, "orders", str(tmp_path))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# Ranges


def given_file(binding: Binding, index: int) -> LogFile:
    """The file of a slice that lost no record."""
    s = binding.slices[index]
    first = binding.id_of(s.topic, s.partition, s.lower)
    return LogFile(
        path=f"files/{first:020d}.parquet",
        t=binding.t,
        topic=s.topic,
        partition=s.partition,
        first_id=first,
        last_id=first + s.width - 1,
        count=s.width,
        bytes=1,
        digest="d",
    )


INVOICES, ORDERS_0, ORDERS_1 = (given_file(BINDING, i) for i in range(3))


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([INVOICES, ORDERS_0, ORDERS_1], id="everything"),
        pytest.param([ORDERS_1, INVOICES], id="in any order, a slice without records"),
        pytest.param([], id="no record at all"),
        pytest.param([replace(INVOICES, first_id=101, last_id=101, count=1)], id="holes on both sides"),
    ],
)
def test_what_a_binding_owns_is_taken(files):
    check_ranges(files, BINDING, "orders")


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(replace(ORDERS_0, first_id=102), id="an id before the slice"),
        pytest.param(replace(ORDERS_0, last_id=105), id="an id after the slice"),
        pytest.param(replace(ORDERS_0, first_id=104, last_id=103), id="ids that go back"),
        pytest.param(replace(ORDERS_0, count=3), id="more records than offsets"),
    ],
)
def test_what_a_binding_does_not_own_is_refused_by_the_slice(file):
    with pytest.raises(RecordsMissing) as refusal:
        check_ranges([INVOICES, file, ORDERS_1], BINDING, "orders")
    error = refusal.value
    assert (error.pipeline, error.topic, error.partition) == ("orders", "orders", 0)
    assert (error.lower, error.upper) == (0, 2)
    assert f"capture found ids {file.first_id} to {file.last_id} ({file.count} records)" in str(error)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            [INVOICES, replace(ORDERS_0, partition=7, path="files/7")], id="a partition that is not bound"
        ),
        pytest.param([INVOICES, INVOICES], id="a slice twice"),
    ],
)
def test_files_that_no_slice_asked_for_are_refused(files):
    with pytest.raises(RecordsMissing):
        check_ranges(files, BINDING, "orders")
