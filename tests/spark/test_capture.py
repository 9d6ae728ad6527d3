"""capture: Kafka's records become the log's messages, with ids that every run computes alike."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from tests.support.log_samples import given_binding

from tidemark.kafka.source_topics import SourceTopics
from tidemark.log.capture import check_files, write_files
from tidemark.log.errors import RecordsMissing
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.audit_result import Judgement
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured
from tidemark.log.model.manifest import LogFile
from tidemark.spark.jobs.capture import add_ids, write_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 0, 0, 2), ("orders", 1, 7, 9))

RECORD_SCHEMA = pa.schema(
    [
        LOG_SCHEMA.field(name)
        for name in LOG_SCHEMA.names
        if name not in ("id", "t", "write_time", "namespace")
    ]
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


def given_records(
    spark: "SparkSession", records: dict[tuple[str, int], list[tuple[int, bytes | None]]]
) -> "DataFrame":
    """Records as Spark's Kafka source gives them: one partition of the DataFrame per Kafka partition."""
    parts = [
        [given_record(*place, offset, value) for offset, value in values] for place, values in records.items()
    ]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield pa.RecordBatch.from_pylist(parts[number], RECORD_SCHEMA)

    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(read, from_arrow_schema(RECORD_SCHEMA))


@dataclass(frozen=True)
class RecordsEngine:
    """The engine of a capture whose records do not come from Kafka."""

    records: "DataFrame"

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        return write_records(self.records, binding, area)

    def audit(self, captured: Captured) -> Sequence[Judgement]:
        return ()


def write_all(
    records: "DataFrame",
    folder: Path,
    slices: Sequence[Slice] = BINDING.slices,
    is_declared: Callable[[str], bool] = lambda namespace: True,
) -> Captured:
    return write_files(LogFolder("orders", str(folder)), BINDING, slices, RecordsEngine(records), is_declared)


def write(
    spark: "SparkSession",
    folder: Path,
    records: dict[tuple[str, int], list[tuple[int, bytes | None]]] = RECORDS,
    slices: Sequence[Slice] = BINDING.slices,
) -> Captured:
    """Capture these records."""
    return write_all(given_records(spark, records), folder, slices)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@dataclass(frozen=True)
class Capture:
    """A folder, and what a capture into it has answered."""

    folder: Path
    answer: Captured

    @property
    def files(self) -> tuple[LogFile, ...]:
        return self.answer.files


@pytest.fixture(scope="module")
def captured(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """All records, captured once."""
    folder = tmp_path_factory.mktemp("log")
    return Capture(folder, write(spark, folder))


# Ids


def messages(spark: "SparkSession", topic: str, partition: int, *offsets: int) -> list[dict[str, Any]]:
    """What becomes of these records."""
    records = {(topic, partition): [(offset, b"v%d" % offset) for offset in offsets]}
    return [row.asDict(recursive=True) for row in add_ids(given_records(spark, records), BINDING).collect()]


def test_ids_and_write_times_come_from_the_binding(spark):
    found = messages(spark, "orders", 1, 7, 8)
    assert [(row["id"], row["t"], row["write_time"], row["offset"]) for row in found] == [
        (105, 1_000_000, 1_000_005, 7),
        (106, 1_000_000, 1_000_006, 8),
    ]


def test_holes_in_the_offsets_are_holes_in_the_ids(spark):
    assert [row["id"] for row in messages(spark, "invoices", 0, 10, 12)] == [100, 102]


def test_the_rest_of_a_record_is_kept_as_it_is(spark):
    (message,) = messages(spark, "orders", 0, 1)
    record = given_record("orders", 0, 1, b"v1")
    assert {name: message[name] for name in record} == record


def test_the_namespace_is_the_topic(spark):
    assert [row["namespace"] for row in messages(spark, "invoices", 0, 10)] == ["invoices"]


# Files


def test_every_kafka_partition_is_a_file_in_id_order(captured):
    assert [(f.path, f.topic, f.partition, f.first_id, f.last_id, f.count) for f in captured.files] == [
        ("files/00000000000000000100-00000000000000000102.parquet", "invoices", 0, 100, 102, 2),
        ("files/00000000000000000103-00000000000000000104.parquet", "orders", 0, 103, 104, 2),
        ("files/00000000000000000105-00000000000000000106.parquet", "orders", 1, 105, 105, 1),
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
    assert write(spark, captured.folder) == captured.answer
    assert [(captured.folder / file.path).stat().st_ino for file in captured.files] == inodes


def test_another_capture_makes_the_same_bytes(spark, tmp_path, captured):
    assert write(spark, tmp_path) == captured.answer


def test_a_file_has_the_log_s_columns_and_is_compressed_with_zstd(captured):
    stored = pq.ParquetFile(captured.folder / captured.files[0].path)
    columns = [stored.metadata.row_group(0).column(i) for i in range(stored.metadata.num_columns)]
    assert stored.schema_arrow.names == LOG_SCHEMA.names
    assert {column.compression for column in columns} == {"ZSTD"}


def test_no_attempt_leaves_anything_but_its_files(captured):
    assert sorted(str(path.relative_to(captured.folder)) for path in files_in(captured.folder)) == [
        file.path for file in captured.files
    ]


def test_a_partition_without_records_makes_no_file(spark, tmp_path):
    files = write(spark, tmp_path, RECORDS | {("orders", 0): []}).files
    assert [(file.topic, file.partition) for file in files] == [("invoices", 0), ("orders", 1)]


def test_a_record_that_the_binding_does_not_own_is_refused(spark, tmp_path):
    records = {("orders", 1): [(7, b"o7"), (9, b"too far")]}
    with pytest.raises(
        RecordsMissing, match="orders: orders/1 was bound from offset 7 up to 9, but capture found"
    ):
        write(spark, tmp_path, records)
    assert files_in(tmp_path) == []


def test_what_is_left_of_a_slice_is_a_file_of_its_own_name(spark, tmp_path):
    (file,) = write(spark, tmp_path, {("invoices", 0): [(12, b"i12")]}, [Slice("invoices", 0, 11, 13)]).files
    assert (file.path, file.first_id) == ("files/00000000000000000101-00000000000000000102.parquet", 102)


def test_a_task_with_records_of_two_partitions_is_refused(spark, tmp_path):
    records = given_records(spark, RECORDS).coalesce(1)
    with pytest.raises(RecordsMissing, match="was bound from offset 10 up to 13, but capture found"):
        write_all(records, tmp_path)
    assert files_in(tmp_path) == []


# Statistics


def test_every_file_is_counted_next_to_what_was_bound(captured):
    assert [
        (s.topic, s.partition, s.lower, s.upper, s.first_offset, s.last_offset, s.rows_written)
        for s in captured.answer.statistics
    ] == [
        ("invoices", 0, 10, 13, 10, 12, 2),
        ("orders", 0, 0, 2, 0, 1, 2),
        ("orders", 1, 7, 9, 7, 7, 1),
    ]


def test_records_are_counted_where_they_are_read(captured):
    assert captured.answer.rows_read == 5


def test_a_right_capture_has_nothing_to_complain_about(captured):
    assert {(s.disorder, s.misnumbered, s.strangers) for s in captured.answer.statistics} == {(0, 0, 0)}


def test_messages_without_a_value_are_counted(captured):
    assert [(s.null_keys, s.null_values) for s in captured.answer.statistics] == [(0, 0), (0, 1), (0, 0)]


def test_topics_that_the_pipeline_does_not_declare_are_counted(spark, tmp_path):
    declared = SourceTopics("orders", ["orders"], [], "read_committed").declares
    records = given_records(spark, RECORDS)
    captured = write_all(records, tmp_path, is_declared=declared)
    assert [s.strangers for s in captured.statistics] == [2, 0, 0]


# Ranges


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param([0, 1, 2], id="everything"),
        pytest.param([2, 0], id="in any order, a slice without records"),
        pytest.param([], id="no record at all"),
    ],
)
def test_files_of_the_slices_are_taken(captured, chosen):
    check_files([captured.files[i] for i in chosen], BINDING.slices, "orders")


def test_a_file_that_no_slice_asked_for_is_refused(captured):
    with pytest.raises(RecordsMissing) as refusal:
        check_files([captured.files[0], replace(captured.files[1], partition=7)], BINDING.slices, "orders")
    assert (refusal.value.topic, refusal.value.partition) == ("orders", 7)


def test_a_slice_in_two_files_is_refused(captured):
    said = "orders/1 was bound from offset 7 up to 9, but capture gave 2 files of it"
    with pytest.raises(RecordsMissing, match=said):
        check_files([captured.files[2], replace(captured.files[2], path="files/7")], BINDING.slices, "orders")
