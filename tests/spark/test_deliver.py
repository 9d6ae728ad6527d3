"""deliver: binding by binding, the position moved after each; a failure keeps what was finished."""

import json
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Stage:
    """A pipeline with its log and a folder for its writer."""

    consensus: RememberingConsensus
    root: Path

    @property
    def control(self) -> LogControl:
        return LogControl(self.consensus, "orders")

    @property
    def positions(self) -> Positions:
        return Positions(self.consensus, "orders")

    @property
    def folder(self) -> LogFolder:
        return LogFolder("orders", str(self.root / "log"))

    @property
    def log(self) -> Log:
        return Log(self.control, read_log(self.control, self.folder), str(self.root / "log"))

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    def deliver(self, spark: "SparkSession", **keys: object) -> Delivered:
        """Deliver to the files writer, with some of its settings different."""
        return deliver_to(spark, writer(self.archive, **keys), self.log, self.positions)


def given_stage(root: Path) -> Stage:
    """Three published bindings, nine messages in eleven ids."""
    stage = Stage(RememberingConsensus(), root)
    publish_all(stage.control, stage.folder, LOG)
    return stage


@pytest.fixture
def stage(tmp_path) -> Stage:
    return given_stage(tmp_path)


@pytest.fixture(scope="module")
def finished(spark, tmp_path_factory) -> tuple[Stage, Delivered]:
    """A writer that came to the end of the log."""
    stage = given_stage(tmp_path_factory.mktemp("finished"))
    return stage, stage.deliver(spark)


@pytest.fixture(scope="module")
def stopped(spark, tmp_path_factory) -> tuple[Stage, Delivered]:
    """A writer that could not write the second binding."""
    stage = given_stage(tmp_path_factory.mktemp("stopped"))
    place_something_else(stage.archive, SECOND_FILE)
    return stage, stage.deliver(spark)


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


def test_a_writer_comes_to_the_end_of_the_log(finished):
    stage, delivered = finished
    assert delivered == Delivered(10, Written(written=9))
    assert stage.positions.load("archive").position == 10


def test_every_message_is_delivered_in_order(finished):
    assert values(finished[0].archive) == [b"a", b"b", b"c", b"x", b"y", b"d", b"e", b"f", b"g"]


def test_the_position_moves_binding_by_binding(finished):
    moved = [json.loads(head)["position"] for head in finished[0].consensus.committed]
    assert moved == [-1, 4, 6, 10]


def test_what_is_kept_out_is_counted_and_finished_with(spark, stage):
    assert stage.deliver(spark, namespaces="^refunds$") == Delivered(10, Written(written=2, filtered=7))


def test_delivering_again_does_nothing(spark, stage):
    stage.deliver(spark)
    before = stage.positions.load("archive")
    assert stage.deliver(spark) == Delivered(10, Written())
    assert stage.positions.load("archive") == before


def test_a_new_binding_is_delivered_alone(spark, stage):
    stage.deliver(spark)
    fourth = given_binding(4_000, 11, ("orders", 0, 9, 10), run_id="run-4")
    publish_all(stage.control, stage.folder, {fourth: {("orders", 0): {9: b"h"}}})
    assert stage.deliver(spark) == Delivered(11, Written(written=1))


def test_what_is_not_published_is_not_delivered(spark, stage):
    fourth = given_binding(4_000, 11, ("orders", 0, 9, 10), run_id="run-4")
    add_binding(stage.control, fourth)
    capture(stage.folder, fourth, {("orders", 0): {9: b"h"}})
    assert stage.deliver(spark).position == 10


def test_a_log_without_bindings_registers_the_writer_and_nothing_more(spark, tmp_path):
    empty = Stage(RememberingConsensus(), tmp_path)
    assert empty.deliver(spark) == Delivered(-1, Written())
    assert empty.positions.load("archive").position == -1


def test_a_binding_without_messages_moves_the_position(spark, tmp_path):
    stage = Stage(RememberingConsensus(), tmp_path)
    publish_all(stage.control, stage.folder, {FIRST: {}})
    assert stage.deliver(spark) == Delivered(4, Written())


# Failures


def test_a_writer_that_fails_keeps_what_it_has_finished(stopped):
    stage, delivered = stopped
    assert (delivered.position, delivered.total) == (4, Written(written=5))
    assert stage.positions.load("archive").position == 4


def test_a_writer_that_fails_does_not_go_past_its_failure(stopped):
    assert not (stopped[0].archive / THIRD_FILE).exists()


def test_a_failure_names_the_id_and_the_cause(stopped):
    stage, delivered = stopped
    assert delivered.failure.startswith("stopped after id 4: ")
    assert f"orders/archive: log file {stage.archive / SECOND_FILE} is damaged" in delivered.failure
    assert "\n" not in delivered.failure


def test_a_failure_of_another_kind_names_its_cause_too(spark, stage):
    stage.archive.write_bytes(b"")
    failure = stage.deliver(spark).failure
    assert failure.startswith("stopped after id -1: ")
    assert str(stage.archive) in failure
    assert "\n" not in failure


def test_delivering_again_after_the_repair_finishes(spark, stage):
    wrong = place_something_else(stage.archive, SECOND_FILE)
    stage.deliver(spark)
    wrong.unlink()
    assert stage.deliver(spark) == Delivered(10, Written(written=4))
    assert values(stage.archive) == [b"a", b"b", b"c", b"x", b"y", b"d", b"e", b"f", b"g"]


def test_a_missing_log_file_stops_the_writer_by_name(spark, stage):
    lost = stage.root / "log" / stage.log.manifest.files_at(2_000)[0].path
    lost.unlink()
    delivered = stage.deliver(spark)
    assert delivered.position == 4
    assert f"orders: {lost} is missing" in delivered.failure


def test_a_changed_shape_stops_this_writer_only(spark, stage):
    """It is this writer's failure to report: an exception would keep the other writers from their turn."""
    stage.deliver(spark)
    delivered = stage.deliver(spark, format="jsonl")
    assert delivered.position == 10
    assert "format was 'parquet' and is now 'jsonl'" in delivered.failure


def test_the_log_of_a_failure_does_not_spell_out_variables(spark, stage, capfd):
    """A frame of the driver, of a client or of ours may hold a password."""

    class FailingWriter(FilesWriter):
        def prepare(self) -> None:
            password = "-".join(("hunter2", "marker"))
            raise ConnectionError(f"no answer after {len(password)} attempts")

    declared = FilesDeclaration(name="archive", kind="files", path="/nowhere")
    delivered = deliver_to(spark, FailingWriter("orders", declared), stage.log, stage.positions)
    assert delivered.failure == "stopped after id -1: ConnectionError: no answer after 14 attempts"
    assert "hunter2-marker" not in "".join(capfd.readouterr())


def test_failures_of_several_writers_are_told_together():
    error = WritersFailed("orders", {"archive": "stopped after id 4: a", "journal": "stopped after id -1: b"})
    assert error.failures == {"archive": "stopped after id 4: a", "journal": "stopped after id -1: b"}
    assert str(error).startswith(
        "orders: not everything was delivered. "
        "archive: stopped after id 4: a; journal: stopped after id -1: b."
    )
