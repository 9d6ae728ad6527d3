"""Work in Spark's tasks: answers and errors return as they were, and what is interrupted does not go on."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pytest
from tests.support.waiting import wait_until

from tidemark.log.errors import RangeWrong
from tidemark.spark import code_digests
from tidemark.spark.application import cause_of
from tidemark.spark.code_digests import CodeDigests, OtherCode
from tidemark.spark.jobs.tasks import call_in_tasks, interrupt, run_tasks, tagged, task_count
from tidemark.spark.session_facts import core_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_answers_come_in_the_order_of_the_items(spark: "SparkSession") -> None:
    assert call_in_tasks(spark, lambda item: (item, {item: b"x" * item}), [3, 1, 2]) == [
        (3, {3: b"xxx"}),
        (1, {1: b"x"}),
        (2, {2: b"xx"}),
    ]


def test_every_item_has_a_task_of_its_own(spark: "SparkSession") -> None:
    def task(item: int) -> int | None:
        from pyspark import TaskContext

        context = TaskContext.get()
        return context.partitionId() if context else None

    assert call_in_tasks(spark, task, ["a", "b", "c"]) == [0, 1, 2]


def test_nothing_to_do_starts_nothing() -> None:
    assert call_in_tasks(None, print, []) == []  # type: ignore[arg-type]


def refuse_odd(item: int) -> int:
    if item % 2:
        raise RangeWrong("orders", f"files/{item}", (0, 1, 2), (0, 1, item))
    return item


def test_an_error_of_the_library_returns_with_its_fields(spark: "SparkSession") -> None:
    with pytest.raises(RangeWrong) as raised:
        call_in_tasks(spark, refuse_odd, [2, 3, 5])
    assert (raised.value.path, raised.value.found) == ("files/3", (0, 1, 3))


def test_another_error_is_told_in_one_line(spark: "SparkSession") -> None:
    def fail(item: int) -> None:
        raise ZeroDivisionError("by an item")

    with pytest.raises(Exception, match="by an item") as raised:
        call_in_tasks(spark, fail, [1])
    assert cause_of(raised.value) == "ZeroDivisionError: by an item"


def test_the_cores_of_the_engine_are_counted_once(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    found = core_count(spark)
    assert 1 <= found <= 1_024
    monkeypatch.setattr(type(spark), "range", None)
    assert (core_count(spark), task_count(spark, 3)) == (found, 3 * found)


# Other code


def loaded_otherwise(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """This process has other code of a module than the engine's."""
    real = code_digests.loaded_digest
    monkeypatch.setattr(
        code_digests, "loaded_digest", lambda name: "0" * 16 if name == module else real(name)
    )


def test_other_code_of_the_library_is_refused(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded_otherwise(monkeypatch, "tidemark")
    with pytest.raises(OtherCode, match="Restart the engine") as raised:
        call_in_tasks(spark, lambda name: Path(tmp_path, name).touch(), ["written"])
    assert (raised.value.module, raised.value.wanted) == ("tidemark", "0" * 16)
    assert list(tmp_path.iterdir()) == []


def test_other_code_of_a_function_s_module_is_refused(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded_otherwise(monkeypatch, "structlog.stdlib")
    with pytest.raises(OtherCode) as raised:
        call_in_tasks(spark, str, [1], modules=["structlog.stdlib"])
    assert raised.value.module == "structlog.stdlib"


def test_tasks_of_a_dataframe_refuse_other_code_too(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded_otherwise(monkeypatch, "tidemark")

    def work(number: int) -> Iterator[pa.RecordBatch]:
        raise AssertionError("it was begun")

    with pytest.raises(Exception, match="runs another version of `tidemark`"):
        run_tasks(spark, 1, work, pa.schema([("n", pa.int64())])).collect()


def test_the_same_code_is_the_same_in_tasks(spark: "SparkSession") -> None:
    modules = ["structlog.stdlib"]
    here = CodeDigests.loaded(modules)
    assert call_in_tasks(spark, lambda _: CodeDigests.loaded(modules), [1], modules) == [here]


# Interrupted operations


@dataclass(frozen=True)
class Scribbling:
    """Work that writes its process's number into a file again and again, until another file appears."""

    folder: Path

    def __call__(self, name: str) -> str:
        while not (self.folder / "enough").exists():
            (self.folder / name).write_text(str(os.getpid()))
            Event().wait(0.01)
        return name

    @contextmanager
    def ended(self) -> Iterator["Scribbling"]:
        """So that no operation goes on after a test that failed."""
        try:
            yield self
        finally:
            (self.folder / "enough").touch()

    def pid(self, name: str) -> int | None:
        path = self.folder / name
        return int(path.read_text() or 0) or None if path.exists() else None


def begin(spark: "SparkSession", threads: ThreadPoolExecutor, work: Any, name: str) -> Future[list[Any]]:
    """An operation of a thread, tagged with its name."""

    def run() -> list[Any]:
        with tagged(spark, name):
            return call_in_tasks(spark, work, [name])

    return threads.submit(run)


ONLY_CONNECT = pytest.mark.parametrize("spark", ["connect"], indirect=True)
"""An application's operations end with it."""


@ONLY_CONNECT
def test_what_is_interrupted_stops_writing_and_touches_no_other_operation(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as threads, Scribbling(tmp_path).ended() as work:
        one, other = (begin(spark, threads, work, name) for name in ("orders-archive", "refunds-archive"))
        first = wait_until(lambda: work.pid("orders-archive"), 60, "the first operation")
        wait_until(lambda: work.pid("refunds-archive"), 60, "the second operation")

        interrupt(spark, "orders-archive")

        assert one.exception(60) is not None
        wait_until(lambda: not psutil.pid_exists(first), 60, "the end of the interrupted worker")
        (tmp_path / "enough").touch()
        assert other.result(60) == ["refunds-archive"]


@ONLY_CONNECT
def test_a_block_that_fails_interrupts_its_operations(spark: "SparkSession", tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads, Scribbling(tmp_path).ended() as work:
        running = begin(spark, threads, work, "orders-archive")
        pid = wait_until(lambda: work.pid("orders-archive"), 60, "the operation")
        with pytest.raises(KeyboardInterrupt), tagged(spark, "orders-archive"):
            raise KeyboardInterrupt
        assert running.exception(60) is not None
        wait_until(lambda: not psutil.pid_exists(pid), 60, "the end of the interrupted worker")
