"""The comparison of a dump with objects in Spark: the join, and the files that it writes."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidemark.oplog.sync.dump.reader import opened_dump
from tidemark.oplog.sync.file_columns import CURRENT
from tidemark.oplog.sync.run_files import DiffSummary, DumpSummary, SyncFiles
from tidemark.spark.jobs.oplog.sync_objects import find_differences, read_dump
from tidemark.spark.jobs.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

T = 1_000
START = 12_000
X10 = {"type": "video", "id": "x", "timestamp": "1970-01-01T00:00:10Z", "parents": ["user/u"]}


@pytest.fixture
def files(tmp_path: Path) -> SyncFiles:
    return SyncFiles("events", str(tmp_path))


def dump_of(files: SyncFiles, *lines: dict[str, Any]) -> DumpSummary:
    path = Path(files.root, "dump.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with opened_dump(str(path), print) as reader:
        return files.keep_dump(reader, str(path), START, may_be_empty=True)


def current(id_: str, at: int, *parents: str, deleted: bool = False, type_: str = "video") -> dict[str, Any]:
    place = {"partition": 1, "offset": 7}
    return {"type": type_, "id": id_, "deleted": deleted, "timestamp": at, "parents": list(parents), **place}


def compare(
    spark: "SparkSession", files: SyncFiles, dump: DumpSummary, *objects: dict[str, Any]
) -> tuple[dict[str, int], int, set[tuple[str, str, int]]]:
    """Outcomes, objects that are there, and the corrections as (event, object, timestamp)."""
    batch = pa.RecordBatch.from_pylist(list(objects), CURRENT)
    found = find_differences(
        read_dump(spark, files, dump), run_tasks(spark, 1, lambda number: [batch], CURRENT), files, dump, T
    )
    diff = DiffSummary(dump.key, T, "oplog", "", {0: 0, 1: 0}, found.outcomes, found.live, found.files)
    operations = {(one.event.value, f"{one.type}/{one.id}", one.timestamp) for one in files.corrections(diff)}
    return found.outcomes, found.live, operations


def test_every_row_of_the_table_at_once(spark, files):
    lines = [{**X10, "id": id_} for id_ in ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "P")]
    objects = [
        current("S2", 10_000, "user/u"),
        current("S3", 9_000, "user/u"),
        current("S4", 11_000, "user/u"),
        current("S5", 9_000, deleted=True),
        current("S6", 11_000, deleted=True),
        current("S7", 13_000, deleted=True),
        current("S8", 9_000),
        current("S9", 13_000),
        current("S10", 9_000, deleted=True),
        current("P", 10_000, "user/v"),
    ]
    outcomes, live, operations = compare(spark, files, dump_of(files, *lines), *objects)
    assert outcomes == {
        "insert": 1,
        "insert_deleted": 2,
        "update": 1,
        "update_parents": 1,
        "delete": 1,
        "same": 1,
        "newer": 1,
        "deleted_since": 1,
        "inserted_since": 1,
        "gone": 1,
    }
    assert live == 6
    assert operations == {
        ("insert", "video/S1", 10_000),
        ("update", "video/S3", 10_000),
        ("insert", "video/S5", 10_000),
        ("insert", "video/S6", 10_000),
        ("delete", "video/S8", 11_999),
        ("update", "video/P", 10_000),
    }


def test_S13_S14_S18_the_same_object_is_the_same_however_the_dump_writes_it(spark, files):
    line = {**X10, "type": "Video", "timestamp": "1970-01-01T01:00:10.167456+01:00"}
    outcomes, _, _ = compare(spark, files, dump_of(files, line), current("x", 10_167, "user/u"))
    assert outcomes == {"same": 1}


@pytest.mark.parametrize("times", [("09", "10"), ("10", "09")])
def test_S16_the_newest_line_of_an_object_counts(spark, files, times):
    lines = [{**X10, "timestamp": f"1970-01-01T00:00:{second}Z"} for second in times]
    _, _, operations = compare(spark, files, dump_of(files, *lines))
    assert operations == {("insert", "video/x", 10_000)}


def test_S17_an_object_without_parents_has_none(spark, files):
    lines = [X10, {**X10, "id": "y", "parents": None}]
    outcomes, _, _ = compare(
        spark, files, dump_of(files, *lines), current("x", 10_000, "user/u"), current("y", 10_000)
    )
    assert outcomes == {"same": 2}


def test_S11_an_empty_dump_deletes_what_is_older(spark, files):
    _, live, operations = compare(spark, files, dump_of(files), current("x", 9_000), current("y", 13_000))
    assert (live, operations) == (2, {("delete", "video/x", 11_999)})


def test_H12_without_any_object_everything_is_inserted(spark, files):
    lines = [{**X10, "id": f"x{number}"} for number in range(3_000)]
    outcomes, live, operations = compare(spark, files, dump_of(files, *lines))
    assert (outcomes, live, len(operations)) == ({"insert": 3_000}, 0, 3_000)


def test_a_correction_knows_the_place_of_the_newest_operation(spark, files):
    dump = dump_of(files, X10, {**X10, "id": "new"})
    batch = pa.RecordBatch.from_pylist([current("x", 9_000)], CURRENT)
    objects = run_tasks(spark, 1, lambda number: [batch], CURRENT)
    found = find_differences(read_dump(spark, files, dump), objects, files, dump, T)
    diff = DiffSummary(dump.key, T, "oplog", "", {}, found.outcomes, found.live, found.files)
    assert files.stored(diff) == {b"video/x": (1, 7), b"video/new": None}
