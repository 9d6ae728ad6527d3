"""deliver: binding by binding, the position moved after each; a failure keeps what was finished."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.unit.log.samples import add_binding, capture, given_binding, publish_all
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.pipeline import FilesDeclaration
from tidemark.delivery.positions import Positions
from tidemark.log.control import LogControl
from tidemark.log.files import LogFolder
from tidemark.log.publish import read_log
from tidemark.spark.deliver import Delivered, Log, WritersFailed, deliver_to
from tidemark.writers.files import FilesWriter
from tidemark.writers.writer import Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIRST = given_binding(1_000, 0, ("orders", 0, 0, 3), ("refunds", 0, 0, 2))
SECOND = given_binding(2_000, 5, ("orders", 0, 3, 5), run_id="run-2")
THIRD = given_binding(3_000, 7, ("orders", 0, 5, 9), run_id="run-3")
"""Its last offsets are holes."""
LOG = {
    FIRST: {("orders", 0): {0: b"a", 1: b"b", 2: b"c"}, ("refunds", 0): {0: b"x", 1: b"y"}},
    SECOND: {("orders", 0): {3: b"d", 4: b"e"}},
    THIRD: {("orders", 0): {5: b"f", 6: b"g"}},
}
FIRST_FILE = "00000000000000000000-00000000000000000004.parquet"
SECOND_FILE = "00000000000000000005-00000000000000000006.parquet"
THIRD_FILE = "00000000000000000007-00000000000000000010.parquet"


class RememberingConsensus(MemoryConsensus):
    """Remembers every position that was committed, in order."""

    def __init__(self):
        super().__init__()
        self.committed: list[str] = []

    def commit(self, key, expected, change):
        version = super().commit(key, expected, change)
        if key.kind == "writer":
            self.committed.append(change.puts["head"])
        return version


@pytest.fixture
def consensus() -> RememberingConsensus:
    return RememberingConsensus()


@pytest.fixture
def control(consensus) -> LogControl:
    return LogControl(consensus, "orders")


@pytest.fixture
def positions(consensus) -> Positions:
    return Positions(consensus, "orders")


@pytest.fixture
def log(control, tmp_path) -> Log:
    """Three published bindings, seven messages in eleven ids."""
    folder = LogFolder("orders", str(tmp_path / "log"))
    publish_all(control, folder, LOG)
    return Log(control, read_log(control, folder), str(tmp_path / "log"))


@pytest.fixture
def archive(tmp_path) -> Path:
    return tmp_path / "archive"


def writer(path: Path, **keys: object) -> FilesWriter:
    declared = {"name": "archive", "kind": "files", "path": str(path)} | keys
    return FilesWriter("orders", FilesDeclaration.model_validate(declared, context={}))


def values(archive: Path) -> list[bytes]:
    """The values of all files, in the order of their names."""
    files = sorted(path for path in archive.iterdir() if path.is_file())
    return [value for path in files for value in pq.read_table(path)["value"].to_pylist()]


def place_something_else(archive: Path, name: str) -> Path:
    archive.mkdir(parents=True, exist_ok=True)
    (archive / name).write_bytes(b"somebody's")
    return archive / name


def test_a_writer_comes_to_the_end_of_the_log(spark: "SparkSession", log, positions, archive):
    assert deliver_to(spark, writer(archive), log, positions) == Delivered(10, Written(written=7))
    assert positions.load("archive").position == 10
    assert values(archive) == [b"a", b"b", b"c", b"x", b"y", b"d", b"e", b"f", b"g"][:7] + [b"f", b"g"][:2]


def test_the_position_moves_binding_by_binding(spark, log, positions, archive, consensus):
    deliver_to(spark, writer(archive), log, positions)
    moved = [text.split(",")[0] for text in consensus.committed]
    assert moved == ['{"position": -1', '{"position": 4', '{"position": 6', '{"position": 10']


def test_what_is_kept_out_is_counted_and_finished_with(spark, log, positions, archive):
    delivered = deliver_to(spark, writer(archive, namespaces="^refunds$"), log, positions)
    assert delivered == Delivered(10, Written(written=2, filtered=7))


def test_delivering_again_does_nothing(spark, log, positions, archive, consensus):
    deliver_to(spark, writer(archive), log, positions)
    before = positions.load("archive")
    assert deliver_to(spark, writer(archive), log, positions) == Delivered(10, Written())
    assert positions.load("archive") == before


def test_a_new_binding_is_delivered_alone(spark, log, positions, archive, control, tmp_path):
    deliver_to(spark, writer(archive), log, positions)
    folder = LogFolder("orders", log.root)
    fourth = given_binding(4_000, 11, ("orders", 0, 9, 10), run_id="run-4")
    publish_all(control, folder, {fourth: {("orders", 0): {9: b"h"}}})
    longer = Log(control, read_log(control, folder), log.root)
    assert deliver_to(spark, writer(archive), longer, positions) == Delivered(11, Written(written=1))


def test_what_is_not_published_is_not_delivered(spark, log, positions, archive, control):
    fourth = given_binding(4_000, 11, ("orders", 0, 9, 10), run_id="run-4")
    add_binding(control, fourth)
    capture(LogFolder("orders", log.root), fourth, {("orders", 0): {9: b"h"}})
    assert deliver_to(spark, writer(archive), log, positions).position == 10


def test_a_log_without_bindings_registers_the_writer_and_nothing_more(spark, control, positions, archive, tmp_path):
    empty = Log(control, read_log(control, LogFolder("orders", str(tmp_path))), str(tmp_path))
    assert deliver_to(spark, writer(archive), empty, positions) == Delivered(-1, Written())
    assert positions.load("archive").position == -1


def test_a_binding_without_messages_moves_the_position(spark, control, positions, archive, tmp_path):
    folder = LogFolder("orders", str(tmp_path / "log"))
    publish_all(control, folder, {FIRST: {}})
    log = Log(control, read_log(control, folder), str(tmp_path / "log"))
    assert deliver_to(spark, writer(archive), log, positions) == Delivered(4, Written())


# Failures


def test_a_writer_that_fails_keeps_what_it_has_finished(spark, log, positions, archive):
    place_something_else(archive, SECOND_FILE)
    delivered = deliver_to(spark, writer(archive), log, positions)
    assert (delivered.position, delivered.total) == (4, Written(written=5))
    assert positions.load("archive").position == 4


def test_a_writer_that_fails_does_not_go_past_its_failure(spark, log, positions, archive):
    place_something_else(archive, SECOND_FILE)
    deliver_to(spark, writer(archive), log, positions)
    assert not (archive / THIRD_FILE).exists()


def test_a_failure_names_the_id_and_the_cause(spark, log, positions, archive):
    wrong = place_something_else(archive, SECOND_FILE)
    failure = deliver_to(spark, writer(archive), log, positions).failure
    assert failure.startswith("stopped after id 4: ")
    assert f"orders/archive: log file {wrong} is damaged" in failure
    assert "\n" not in failure


def test_a_failure_of_another_kind_names_its_cause_too(spark, log, positions, tmp_path):
    (tmp_path / "taken").write_bytes(b"")
    failure = deliver_to(spark, writer(tmp_path / "taken" / "archive"), log, positions).failure
    assert failure.startswith("stopped after id -1: ")
    assert str(tmp_path / "taken") in failure
    assert "\n" not in failure


def test_delivering_again_after_the_repair_finishes(spark, log, positions, archive):
    wrong = place_something_else(archive, SECOND_FILE)
    deliver_to(spark, writer(archive), log, positions)
    wrong.unlink()
    assert deliver_to(spark, writer(archive), log, positions) == Delivered(10, Written(written=4))
    assert sorted(path.name for path in archive.iterdir() if path.is_file()) == [FIRST_FILE, SECOND_FILE, THIRD_FILE]


def test_a_missing_log_file_stops_the_writer_by_name(spark, log, positions, archive):
    lost = Path(log.root) / log.manifest.files_at(2_000)[0].path
    lost.unlink()
    delivered = deliver_to(spark, writer(archive), log, positions)
    assert delivered.position == 4
    assert f"orders: {lost} is missing" in delivered.failure


def test_a_changed_shape_stops_this_writer_only(spark, log, positions, archive):
    """It is this writer's failure to report: an exception would keep the other writers from their turn."""
    deliver_to(spark, writer(archive), log, positions)
    delivered = deliver_to(spark, writer(archive, format="jsonl"), log, positions)
    assert delivered.position == 10
    assert "format was 'parquet' and is now 'jsonl'" in delivered.failure


def test_failures_of_several_writers_are_told_together():
    error = WritersFailed("orders", {"archive": "stopped after id 4: a", "journal": "stopped after id -1: b"})
    assert error.failures == {"archive": "stopped after id 4: a", "journal": "stopped after id -1: b"}
    assert str(error).startswith(
        "orders: not everything was delivered. archive: stopped after id 4: a; journal: stopped after id -1: b."
    )
