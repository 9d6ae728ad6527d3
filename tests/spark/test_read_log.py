"""The log as a DataFrame: the same messages that pyarrow reads, and the same refusals."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.log_samples import (
    SEGMENT_BYTES,
    capture,
    captured_of,
    given_binding,
    given_messages,
    write_file,
)

from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.model.captured import Captured
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.log.read import Selection, select
from tidemark.spark.application import cause_of
from tidemark.spark.jobs.read_log import read_messages, read_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIRST = given_binding(1_000, 0, ("orders", 0, 0, 4), ("refunds", 0, 0, 2))
EMPTY = given_binding(2_000, 6, ("orders", 0, 4, 6), run_id="run-2")
"""Published without a message."""
THIRD = given_binding(3_000, 8, ("orders", 0, 6, 10), run_id="run-3")


@dataclass(frozen=True)
class Log:
    """A published log in a folder."""

    root: Path
    manifest: Manifest

    def select(self, **keys: Any) -> Selection:
        return select(self.manifest, str(self.root), **keys)

    def path(self, file: LogFile) -> Path:
        return self.root / file.path


def given_log(root: Path) -> Log:
    """Ids 2, 6, 7 and 11 are holes; the log ends at 11."""
    folder = LogFolder("orders", str(root))
    captures = [
        capture(
            folder, FIRST, {("orders", 0): {0: b"a", 1: None, 3: b"d"}, ("refunds", 0): {0: b"x", 1: b"y"}}
        ),
        capture(folder, EMPTY, {}),
        with_headers(folder, THIRD),
    ]
    manifest = Manifest("orders")
    for binding, captured in zip((FIRST, EMPTY, THIRD), captures, strict=True):
        manifest = manifest.with_binding(binding.t, binding.end, captured.files, SEGMENT_BYTES)
    return Log(root, manifest)


def with_headers(folder: LogFolder, binding: Binding) -> Captured:
    """Messages without a key, with headers of which one has no value."""
    values = {6: b"e", 7: b"\xff\x00", 8: b""}
    messages = given_messages(binding, "orders", 0, values, key=None, headers=[("h", b"\x01"), ("h", None)])
    return captured_of(binding, write_file(folder, binding, binding.slices[0], [messages]))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Never changed."""
    return given_log(tmp_path_factory.mktemp("log"))


def rows(spark: "SparkSession", selection: Selection) -> list[dict[str, Any]]:
    """What Spark reads, in id order."""
    return [row.asDict(recursive=True) for row in read_messages(spark, selection).orderBy("id").collect()]


@pytest.mark.parametrize(
    ("keys", "ids"),
    [
        pytest.param({}, [0, 1, 3, 4, 5, 8, 9, 10], id="everything"),
        pytest.param({"first_id": 1, "last_id": 4}, [1, 3, 4], id="by id"),
        pytest.param({"first_id": 2, "last_id": 8}, [3, 4, 5, 8], id="begins in a hole"),
        pytest.param({"first_id": -5, "last_id": 0}, [0], id="before the beginning"),
        pytest.param({"t": 1_000}, [0, 1, 3, 4, 5], id="by binding"),
        pytest.param({"namespaces": ["refunds"]}, [4, 5], id="by namespace"),
        pytest.param({"namespaces": ["it's", "refunds"]}, [4, 5], id="by namespaces, one with a quote"),
        pytest.param({"first_id": 1, "t": 1_000, "namespaces": ["orders"]}, [1, 3], id="by everything"),
    ],
)
def test_spark_reads_what_pyarrow_reads(spark, log, keys, ids):
    found = rows(spark, log.select(**keys))
    assert [row["id"] for row in found] == ids
    assert found == [row for batch in log.select(**keys).batches() for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({"t": 2_000}, id="a binding without messages"),
        pytest.param({"first_id": 6, "last_id": 7}, id="nothing but holes"),
        pytest.param({"first_id": 12}, id="right after the end"),
        pytest.param({"namespaces": ["order"]}, id="a namespace that does not exist"),
    ],
)
def test_a_selection_without_messages_is_an_empty_table_with_all_columns(spark, log, keys):
    messages = read_messages(spark, log.select(**keys))
    assert messages.columns == LOG_SCHEMA.names
    assert messages.collect() == []


def test_an_empty_log_is_an_empty_table(spark, tmp_path):
    assert read_messages(spark, select(Manifest("orders"), str(tmp_path))).collect() == []


def test_a_damaged_file_is_refused_by_name(spark, tmp_path):
    log = given_log(tmp_path)
    path = log.path(list(log.manifest.files)[1])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(Exception, match="is damaged") as refused:
        read_messages(spark, log.select())
    assert f"orders: log file {path} is damaged" in cause_of(refused.value)


def test_a_missing_file_is_refused_by_name(spark, tmp_path):
    log = given_log(tmp_path)
    path = log.path(list(log.manifest.files)[2])
    path.unlink()
    with pytest.raises(Exception, match="is missing") as refused:
        read_messages(spark, log.select())
    assert f"orders: {path} is missing" in cause_of(refused.value)


def test_a_file_that_is_not_needed_is_not_opened(spark, tmp_path):
    log = given_log(tmp_path)
    log.path(list(log.manifest.files)[1]).unlink()
    assert [row["id"] for row in rows(spark, log.select(first_id=8))] == [8, 9, 10]


@pytest.mark.parametrize("name", ["a b", "a%20b", "a[b]", "a{b,c}", "a*b", "a\\b"])
def test_a_folder_may_have_any_name(spark, tmp_path, name):
    log = given_log(tmp_path / name)
    assert read_messages(spark, log.select(t=3_000)).count() == 3


def test_a_folder_s_name_is_no_pattern_for_others(spark, tmp_path):
    given_log(tmp_path / "axb")
    log = given_log(tmp_path / "a*b")
    paths = [str(log.path(file)) for file in log.manifest.files_of(THIRD)]
    assert read_parquet(spark, paths).count() == 3
