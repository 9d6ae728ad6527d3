"""Pieces of work, each done in a Spark task of its own, on either engine.

Used where Python does the work in the tasks: files of the log, ranges of a Cassandra table, parts of a
delivery. Spark only distributes the numbers of the pieces. Functions and pieces are pickled; the library is
not, the tasks import it: a task refuses to begin with other code than its driver's.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import structlog

from tidemark.cassandra.session import connect
from tidemark.cassandra.size import ring_tokens
from tidemark.cassandra.token_ranges import TokenRange, cut_ring, deal
from tidemark.connections import CassandraConnection
from tidemark.errors import TidemarkError
from tidemark.spark.code_digests import CodeDigests
from tidemark.spark.session_facts import core_count, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_A_CORE = 2
"""More than one, because pieces of work differ in size."""
RANGES_A_TASK = 8
"""Several, so that a task reads some concurrently and none takes long."""
_ANSWERS = pa.schema([("number", pa.int64()), ("answer", pa.binary())])

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def task_count(spark: "SparkSession", per_core: int = TASKS_A_CORE) -> int:
    """The number of tasks that keeps every core of the session busy."""
    return per_core * core_count(spark)


def run_tasks(
    spark: "SparkSession", tasks: int, work: Callable[[int], Iterable[pa.RecordBatch]], schema: pa.Schema
) -> "DataFrame":
    """A lazy DataFrame of what ``work`` returns for the numbers from 0 to ``tasks`` - 1, one task each."""
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = from_arrow_schema(schema)
    if not tasks:
        return spark.createDataFrame([], columns)
    return spark.range(0, tasks, 1, tasks).mapInArrow(_Tasks(_Checked(work, CodeDigests.loaded())), columns)


def call_in_tasks(
    spark: "SparkSession",
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    modules: Iterable[str] = (),
) -> list[Answer]:
    """What ``work`` returns for each item, in their order; each is computed in a Spark task of its own.

    ``modules``: further modules that ``work`` runs, which must be the same here and there. A
    ``TidemarkError`` of a task is raised here as it was there; of several, that of the first item. Other
    errors are Spark's: it repeats the task where it is configured to, and raises an error of its own.
    """
    if not items:
        return []
    from pyspark.sql.pandas.types import from_arrow_schema

    calls = _Calls(work, tuple(pickle.dumps(item) for item in items), CodeDigests.loaded(modules))
    numbers = spark.range(0, len(items), 1, len(items))
    found = numbers.mapInArrow(_Tasks(calls), from_arrow_schema(_ANSWERS))
    answers = {row.number: pickle.loads(bytes(row.answer)) for row in found.collect()}
    for number in range(len(items)):
        if isinstance(answers[number], _Raised):
            raise answers[number].error
    return [answers[number] for number in range(len(items))]


@contextmanager
def tagged(spark: "SparkSession", tag: str) -> Iterator[None]:
    """Tag the operations of the block, so that they can be interrupted; also by it when it fails.

    An operation on a Connect server outlives the client that waits for it; one of an application does not.
    """
    if not is_connect(spark):
        yield
        return
    spark.addTag(tag)
    try:
        yield
    except BaseException:
        interrupt(spark, tag)
        raise
    finally:
        spark.removeTag(tag)


def interrupt(spark: "SparkSession", tag: str) -> None:
    """Interrupt the session's operations with this tag. A server that is gone has none."""
    from pyspark.errors import PySparkException

    if not is_connect(spark):
        return
    try:
        spark.interruptTag(tag)
    except PySparkException as error:
        # The reason why the block failed is the one to tell.
        structlog.get_logger().info("operations not interrupted", tag=tag, cause=str(error)[:200])


def split_ring(connection: CassandraConnection, tasks: int) -> list[list[TokenRange]]:
    """The whole token ring of a cluster, cut into the ranges of each task."""
    return deal(cut_ring(ring_tokens(connect(connection)), tasks * RANGES_A_TASK), tasks)


@dataclass(frozen=True)
class _Tasks:
    """The function that Spark calls with the numbers of a task. Its class is pickled by reference."""

    work: Callable[[int], Iterable[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from self.work(number)


@dataclass(frozen=True)
class _Checked:
    """Work that is not begun with other code than the driver's."""

    work: Callable[[int], Iterable[pa.RecordBatch]]
    code: CodeDigests

    def __call__(self, number: int) -> Iterable[pa.RecordBatch]:
        self.code.require()
        return self.work(number)


@dataclass(frozen=True)
class _Calls:
    """The work of ``call_in_tasks``. Items are pickled one by one: a task unpickles its own."""

    work: Callable[[Any], Any]
    items: tuple[bytes, ...]
    code: CodeDigests

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        answer: Any
        try:
            self.code.require()
            answer = self.work(pickle.loads(self.items[number]))
        except TidemarkError as error:
            answer = _Raised(error)
        columns = [pa.array([number], pa.int64()), pa.array([pickle.dumps(answer)], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, schema=_ANSWERS)


@dataclass(frozen=True)
class _Raised:
    """An error of the library, on its way to the driver with its fields."""

    error: TidemarkError
