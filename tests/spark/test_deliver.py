"""A delivery through Spark's tasks: what parts answer travels back, whatever came of them."""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.support.log_samples import given_binding, publish_all

from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.deliver import Delivered, deliver_again, deliver_to
from tidemark.delivery.published_log import LogUnreadable, PublishedLog
from tidemark.delivery.state.lease import LeaseLost, take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.writer import Part, Writing, Written
from tidemark.log.files.parquet import LogFolder
from tidemark.log.state.control import LogControl
from tidemark.spark.jobs.deliver import write_parts_with
from tidemark.writers.files.kind import FilesDeclaration
from tidemark.writers.files.writer import FilesWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIRST = given_binding(1_000, 0, ("orders", 0, 0, 3), ("refunds", 0, 0, 2))
SECOND = given_binding(2_000, 5, ("orders", 0, 3, 5), run_id="run-2")
THIRD = given_binding(3_000, 7, ("orders", 0, 5, 9), run_id="run-3")
"""Its last offsets are holes."""
LOG = {
    FIRST: {
        ("orders", 0): {0: b'{"n":0}', 1: b'{"n":1}', 2: b'{"n":2}'},
        ("refunds", 0): {0: None, 1: b"{}"},
    },
    SECOND: {("orders", 0): {3: b'{"n":3}', 4: b"not json"}},
    THIRD: {("orders", 0): {5: b'{"n":5}', 6: b'{"n":6}'}},
}
SECOND_FILE = "00000000000000000005-00000000000000000006.parquet"


@dataclass(frozen=True)
class Stage:
    """A pipeline with its log of three bindings and a folder for its writer."""

    root: Path
    consensus: MemoryConsensus = field(default_factory=MemoryConsensus)

    @property
    def control(self) -> LogControl:
        return LogControl(self.consensus, "orders")

    @property
    def positions(self) -> Positions:
        return Positions(self.consensus, "orders")

    @property
    def log(self) -> PublishedLog:
        return PublishedLog.open(self.control, str(self.root / "log"))

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    def writer(self, kind: type[FilesWriter] = FilesWriter, **keys: Any) -> FilesWriter:
        declared = {"name": "archive", "kind": "files", "path": str(self.archive)} | keys
        return kind("orders", FilesDeclaration.model_validate(declared, context={}))

    def deliver(self, spark: "SparkSession", writer: FilesWriter) -> Delivered:
        return deliver_to(
            writer,
            self.log,
            self.positions,
            "run-1",
            write_parts_with(spark),
            limit=1_000,
            reload=partial(self.positions.load, writer.name),
        )


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    publish_all(stage.control, LogFolder("orders", str(tmp_path / "log")), LOG)
    return stage


def values(archive: Path) -> list[bytes | None]:
    """The values of all files, in the order of their names."""
    files = sorted(path for path in archive.iterdir() if path.is_file())
    return [value for path in files for value in pq.read_table(path)["value"].to_pylist()]


def test_every_message_is_delivered_in_order(spark, stage):
    assert stage.deliver(spark, stage.writer()) == Delivered(10, Written(written=9))
    assert values(stage.archive) == [
        *(b'{"n":0}', b'{"n":1}', b'{"n":2}', None, b"{}"),
        *(b'{"n":3}', b"not json", b'{"n":5}', b'{"n":6}'),
    ]


def test_a_bad_message_travels_back_with_its_place(spark, stage):
    delivered = stage.deliver(spark, stage.writer(transforms=[{"omit": {"fields": ["x"]}}]))
    assert (delivered.position, delivered.closed_now) == (5, True)
    assert (delivered.gate.cause, delivered.gate.first_id, delivered.gate.through) == (Cause.MESSAGE, 6, 6)
    assert "orders/archive: orders/0, offset 4 (id 6)" in delivered.gate.reason


def test_a_failure_of_the_target_travels_back_in_its_own_words(spark, stage):
    stage.archive.mkdir()
    (stage.archive / SECOND_FILE).write_bytes(b"somebody's")
    delivered = stage.deliver(spark, stage.writer())
    gate = delivered.gate
    assert (delivered.position, gate.cause, gate.first_id, gate.last_id) == (4, Cause.TARGET, 5, 6)
    assert f"{stage.archive / SECOND_FILE} is damaged" in gate.reason
    assert "\n" not in gate.reason


def test_a_log_that_cannot_be_read_closes_no_gate(spark, stage):
    lost = stage.root / "log" / stage.log.manifest.files_of(SECOND)[0].path
    lost.unlink()
    with pytest.raises(LogUnreadable, match=f"orders: {lost} is missing"):
        stage.deliver(spark, stage.writer())
    state = stage.positions.load("archive")
    assert (state.position, state.gate) == (4, None)


def test_what_was_delivered_is_delivered_again_without_moving_anything(spark, stage):
    stage.deliver(spark, stage.writer())
    (stage.archive / SECOND_FILE).unlink()
    again = deliver_again(
        stage.writer(),
        stage.log,
        stage.positions,
        "backfill",
        write_parts_with(spark),
        from_t=2_000,
        to_t=3_000,
        reload=partial(stage.positions.load, "archive"),
    )
    assert again == Delivered(10, Written(written=2, ignored=2))  # the other file is there and kept
    assert len(values(stage.archive)) == 9


class Overtaken(FilesWriter):
    """Is asked to write for a holder that has lost its lease."""

    def write(self, part: Part, writing: Writing) -> Written:
        expired = replace(writing.lease.lease, deadline=0)
        replace(writing.lease, lease=expired).check()
        raise AssertionError("a stale lease was good enough")


def test_a_task_of_a_holder_that_lost_its_lease_writes_nothing(spark, stage):
    with pytest.raises(LeaseLost, match="has lost this writer"):
        stage.deliver(spark, stage.writer(Overtaken))
    assert not stage.archive.exists()
    assert stage.positions.load("archive").position == -1


class Untouched(FilesWriter):
    """Must not be asked to write."""

    def write(self, part: Part, writing: Writing) -> Written:
        raise AssertionError("a part was written")


def test_a_part_reads_the_lease_anew_before_it_writes(spark, stage):
    """The attempt was killed and its operation lives on; the same holder has taken the lease again."""
    stage.deliver(spark, stage.writer())
    positions, writer = stage.positions, stage.writer(Untouched)
    old = take(positions, positions.load("archive"), "run-1").ticket(partial(positions.load, "archive"))
    take(positions, positions.load("archive"), "run-1")
    parts = [Part(FIRST, tuple(stage.log.manifest.files_of(FIRST)))]
    with pytest.raises(LeaseLost) as lost:
        write_parts_with(spark)(writer, parts, stage.log.folder, (), old)
    assert (lost.value.pipeline, lost.value.writer, lost.value.holder) == ("orders", "archive", "run-1")


def test_the_writer_is_free_again_after_a_delivery(spark, stage):
    stage.deliver(spark, stage.writer())
    assert take(stage.positions, stage.positions.load("archive"), "somebody else").state.token == 2
