"""capture in Spark's tasks: the slices of a binding become files, the same ones whatever the engine."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.given_reader import GivenCapture, GivenReader, Records
from tests.support.log_samples import given_binding

from tidemark.kafka.errors import KafkaFailure
from tidemark.log.capture import write_files
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Slice
from tidemark.log.model.captured import Captured
from tidemark.spark.jobs.capture import deal_slices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 0, 0, 2), ("orders", 1, 7, 9))

RECORDS: Records = {
    ("invoices", 0): {10: b"i10", 12: b"i12"},
    ("orders", 0): {0: b"o0", 1: None},
    ("orders", 1): {7: b"o7"},
}


def write(spark: "SparkSession", folder: Path, records: Records = RECORDS) -> Captured:
    """Capture these records."""
    engine = GivenCapture(spark, partial(GivenReader, records))
    return write_files(LogFolder("orders", str(folder)), BINDING, BINDING.slices, engine)


def test_the_tasks_write_one_file_a_slice(spark, tmp_path):
    captured = write(spark, tmp_path)
    assert [(f.path, f.topic, f.partition, f.first_id, f.last_id, f.count) for f in captured.files] == [
        ("files/00000000000000000100-00000000000000000102.parquet", "invoices", 0, 100, 102, 2),
        ("files/00000000000000000103-00000000000000000104.parquet", "orders", 0, 103, 104, 2),
        ("files/00000000000000000105-00000000000000000106.parquet", "orders", 1, 105, 105, 1),
    ]
    assert captured.rows_read == 5
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")) == [
        file.path for file in captured.files
    ]


def test_capturing_again_keeps_the_files(spark, tmp_path):
    captured = write(spark, tmp_path)
    inodes = [(tmp_path / file.path).stat().st_ino for file in captured.files]
    assert write(spark, tmp_path) == captured
    assert [(tmp_path / file.path).stat().st_ino for file in captured.files] == inodes


def test_a_process_captures_the_same_bytes_as_tasks(spark, tmp_path):
    here = GivenCapture(None, partial(GivenReader, RECORDS))
    in_process = write_files(LogFolder("orders", str(tmp_path / "1")), BINDING, BINDING.slices, here)
    assert write(spark, tmp_path / "2") == in_process


def test_an_error_of_a_task_is_the_capture_s(spark, tmp_path):
    with pytest.raises(KafkaFailure, match="orders/1 does not answer"):
        write(spark, tmp_path, {place: RECORDS[place] for place in RECORDS if place != ("orders", 1)})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("widths", "shares", "dealt"),
    [
        pytest.param([5, 1, 1, 1, 1, 1], 2, [[0], [1, 2, 3, 4, 5]], id="a wide slice alone"),
        pytest.param([3, 2, 1], 8, [[0], [1], [2]], id="no more shares than slices"),
        pytest.param([], 4, [], id="nothing"),
    ],
)
def test_slices_are_dealt_by_their_offsets(widths, shares, dealt):
    slices = [Slice("orders", number, 0, width) for number, width in enumerate(widths)]
    found = deal_slices(slices, shares)
    assert [[one.partition for one in share] for share in found] == dealt
