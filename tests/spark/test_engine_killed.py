"""The engine is killed in the middle of a capture, a delivery and a compaction.

Its Python workers are suspended just before or after they have written a file. Those that do not end with the
engine go on when the next attempt, on a server that was started again, has finished: what they write then
must change nothing.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from tests.support.compaction_world import given_latest
from tests.support.connect_server import ConnectServer
from tests.support.given_reader import GivenCapture, GivenReader
from tests.support.log_samples import given_binding, publish_all
from tests.support.waiting import wait_until

from tidemark.compaction.compact import Compacted
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.deliver import Delivered, deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.faults import PAUSE, VARIABLE, FaultPoint
from tidemark.log.capture import write_files
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.captured import Captured
from tidemark.log.state.control import LogControl
from tidemark.spark import engine as engine_module
from tidemark.spark.engine import open_session
from tidemark.spark.errors import EngineUnavailable
from tidemark.spark.jobs.compact import SparkEngine
from tidemark.spark.jobs.deliver import write_parts_with
from tidemark.writers.files.kind import FilesDeclaration
from tidemark.writers.files.writer import FilesWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Attempt = Callable[["SparkSession"], Any]


@dataclass
class Engine:
    """A server of the module's own, and attempts at work on it."""

    server: ConnectServer
    patch: pytest.MonkeyPatch

    def attempt(self, work: Attempt) -> Any:
        with open_session("orders.killed", self.server.connection) as engine:
            return work(engine.spark)

    @contextmanager
    def killed_at(self, point: FaultPoint, work: Attempt) -> Iterator[None]:
        """Work whose engine dies when a worker has reached a point, and is started again.

        The workers, which are suspended there, go on at the end of the block.
        """
        self.patch.setenv(VARIABLE, f"{point}{PAUSE}")
        self.server.start()
        self.patch.delenv(VARIABLE)
        found: list[psutil.Process] = []
        try:
            with ThreadPoolExecutor(1) as threads:
                attempt = threads.submit(self.attempt, work)
                found = wait_until(self._suspended, 300, f"a worker at {point}")
                self.server.kill()
                with pytest.raises(EngineUnavailable):
                    attempt.result(300)
            self.server.start()
            yield
        finally:
            for worker in found:
                with suppress(psutil.NoSuchProcess):
                    worker.resume()
        psutil.wait_procs(found, 60)
        assert not [worker for worker in found if worker.is_running()]

    def _suspended(self) -> list[psutil.Process]:
        below = psutil.Process(self.server.pid).children(recursive=True)
        return [worker for worker in below if worker.status() == psutil.STATUS_STOPPED]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    home = tmp_path / "home"
    monkeypatch.setenv("TIDEMARK_HOME", str(home))
    monkeypatch.setattr(engine_module, "MOST_RETRIES", 2)  # it is certain that the server is gone
    engine = Engine(ConnectServer(home), monkeypatch)
    yield engine
    engine.server.stop()


FIRST = given_binding(1_000, 0, ("orders", 0, 0, 3), ("refunds", 0, 0, 2))
VALUES: dict[tuple[str, int], dict[int, bytes | None]] = {
    ("orders", 0): {0: b'{"n":0}', 1: b'{"n":1}', 2: b'{"n":2}'},
    ("refunds", 0): {0: None, 1: b"{}"},
}


def test_a_capture_is_finished_by_the_next_attempt(engine: Engine, tmp_path: Path) -> None:
    def capture(spark: "SparkSession") -> Captured:
        reader = partial(GivenReader, VALUES, FaultPoint.CAPTURE_FILE_STAGED)
        return write_files(LogFolder("orders", str(log)), FIRST, FIRST.slices, GivenCapture(spark, reader))

    log = tmp_path / "log"
    with engine.killed_at(FaultPoint.CAPTURE_FILE_STAGED, capture):
        captured = engine.attempt(capture)
    assert [file.count for file in captured.files] == [3, 2]
    named = {path.name for path in (log / "files").iterdir()}
    assert named == {Path(file.path).name for file in captured.files}
    for file in captured.files:
        LogFolder("orders", str(log)).verify(file)


def test_a_delivery_is_finished_by_the_next_attempt(engine: Engine, tmp_path: Path) -> None:
    consensus, folder = MemoryConsensus(), LogFolder("orders", str(tmp_path / "log"))
    control, positions = LogControl(consensus, "orders"), Positions(consensus, "orders")
    publish_all(control, folder, {FIRST: VALUES})
    archive = tmp_path / "archive"
    declared = {"name": "archive", "kind": "files", "path": str(archive), "format": "jsonl"}
    writer = FilesWriter("orders", FilesDeclaration.model_validate(declared, context={}))

    def deliver(spark: "SparkSession") -> Delivered:
        log = PublishedLog.open(control, folder.root)
        reload = partial(positions.load, "archive")
        return deliver_to(writer, log, positions, "run", write_parts_with(spark), limit=100, reload=reload)

    with engine.killed_at(FaultPoint.FILE_NAMED, deliver):
        state = positions.load("archive")
        assert state is not None
        assert state.position == -1
        delivered = engine.attempt(deliver)
        written = (archive / "00000000000000000000-00000000000000000004.jsonl").read_bytes()
    assert (delivered.position, delivered.gate) == (4, None)
    files = [path for path in archive.rglob("*") if path.is_file() and path.suffix == ".jsonl"]
    assert [path.read_bytes() for path in files] == [written]
    assert written.count(b"\n") == 5


def test_a_compaction_is_finished_by_the_next_attempt(engine: Engine, tmp_path: Path) -> None:
    world, undisturbed = (
        given_latest(tmp_path / name, "a b a b", "a a b c", "c b a") for name in ("log", "other")
    )

    def compact(spark: "SparkSession") -> object:
        world.engine = SparkEngine(lambda: spark)
        return world.compact("run")

    with engine.killed_at(FaultPoint.COMPACT_FILE_STAGED, compact):
        assert isinstance(engine.attempt(compact), Compacted)
    undisturbed.compact("run")
    assert world.ids() == undisturbed.ids()
    assert [(f.path, f.digest) for f in world.log.files] == [
        (f.path, f.digest) for f in undisturbed.log.files
    ]
