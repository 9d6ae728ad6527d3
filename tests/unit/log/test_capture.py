"""capture: Kafka's records become files of the log, counted next to what was bound."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.support.given_reader import GivenCapture, GivenReader, Records
from tests.support.log_samples import given_binding

from tidemark.kafka.source_topics import SourceTopics
from tidemark.log.capture import check_files, write_files, write_or_find_recorded
from tidemark.log.errors import FileMissing, RecordsMissing
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.binding import Slice
from tidemark.log.model.captured import Captured
from tidemark.log.model.manifest import LogFile

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 0, 0, 2), ("orders", 1, 7, 9))

RECORDS: Records = {
    ("invoices", 0): {10: b"i10", 12: b"i12"},
    ("orders", 0): {0: b"o0", 1: None},
    ("orders", 1): {7: b"o7"},
}


def write(
    folder: Path,
    records: Records = RECORDS,
    slices: Sequence[Slice] = BINDING.slices,
    is_declared: Callable[[str], bool] = lambda namespace: True,
) -> Captured:
    """Capture these records."""
    engine = GivenCapture(None, partial(GivenReader, records))
    return write_files(LogFolder("orders", str(folder)), BINDING, slices, engine, is_declared)


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
def captured(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """All records, captured once."""
    folder = tmp_path_factory.mktemp("log")
    return Capture(folder, write(folder))


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


def test_capturing_again_keeps_the_files(captured):
    inodes = [(captured.folder / file.path).stat().st_ino for file in captured.files]
    assert write(captured.folder) == captured.answer
    assert [(captured.folder / file.path).stat().st_ino for file in captured.files] == inodes


def test_another_capture_makes_the_same_bytes(tmp_path, captured):
    assert write(tmp_path) == captured.answer


def test_a_file_has_the_log_s_columns_and_is_compressed_with_zstd(captured):
    stored = pq.ParquetFile(captured.folder / captured.files[0].path)
    columns = [stored.metadata.row_group(0).column(i) for i in range(stored.metadata.num_columns)]
    assert stored.schema_arrow.names == LOG_SCHEMA.names
    assert {column.compression for column in columns} == {"ZSTD"}


def test_no_attempt_leaves_anything_but_its_files(captured):
    assert sorted(str(path.relative_to(captured.folder)) for path in files_in(captured.folder)) == [
        file.path for file in captured.files
    ]


def test_a_partition_without_records_makes_no_file(tmp_path):
    files = write(tmp_path, RECORDS | {("orders", 0): {}}).files
    assert [(file.topic, file.partition) for file in files] == [("invoices", 0), ("orders", 1)]


def test_a_record_that_the_binding_does_not_own_is_refused(tmp_path):
    records = {("orders", 1): {7: b"o7", 9: b"too far"}}
    with pytest.raises(
        RecordsMissing, match="orders: orders/1 was bound from offset 7 up to 9, but capture found"
    ):
        write(tmp_path, records, [Slice("orders", 1, 7, 9)])
    assert files_in(tmp_path) == []


def test_what_is_left_of_a_slice_is_a_file_of_its_own_name(tmp_path):
    (file,) = write(tmp_path, {("invoices", 0): {12: b"i12"}}, [Slice("invoices", 0, 11, 13)]).files
    assert (file.path, file.first_id) == ("files/00000000000000000101-00000000000000000102.parquet", 102)


def test_a_staged_file_that_is_gone_without_another_capture_is_missing(tmp_path):
    class SweptFolder(LogFolder):
        def files_in(self, area: str) -> list[str]:
            return [*super().files_in(area), f"{area}/swept.parquet"]

    engine = GivenCapture(None, partial(GivenReader, RECORDS))
    with pytest.raises(FileMissing, match=r"swept\.parquet is missing"):
        write_or_find_recorded(
            SweptFolder("orders", str(tmp_path)), BINDING, BINDING.slices, engine, lambda _: True
        )


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


def test_topics_that_the_pipeline_does_not_declare_are_counted(tmp_path):
    declared = SourceTopics("orders", ["orders"], [], "read_committed").declares
    captured = write(tmp_path, is_declared=declared)
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
