"""Offset logs counted on Spark, and the application that compacts those with something to gain."""

import runpy
from argparse import Namespace
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ObjectKey, ObjectKind
from tidemark.delivery.state.offset_log import OffsetsNotCompacted
from tidemark.delivery.state.offset_log_plan import ack_row
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind
from tidemark.settings import ROOT
from tidemark.spark.jobs.compact_offsets import OffsetLogSize, collect_counts, count_entries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "kind string, name string, row string, body string"
ROWS = [
    ("writer", "orders/archive", "head", "{}"),
    ("writer", "orders/archive", "ns/orders", "4"),
    ("writer", "orders/archive", "acknowledged/00000000000000000004", "{}"),
    ("writer", "orders/archive", ack_row(2), "{}"),
    ("writer", "orders/archive", ack_row(3), '"ß"'),
    ("writer", "orders/cassandra", ack_row(2), "{}"),
    ("writer", "orders/new", "head", "{}"),
    ("writer", "invoices/archive", ack_row(2), "{}"),
    ("log", "orders/archive", ack_row(2), "{}"),
]


@pytest.fixture(scope="module")
def objects(spark: "SparkSession") -> "DataFrame":
    return spark.createDataFrame(ROWS, SCHEMA)


def test_entries_and_bytes_are_counted_per_writer(objects):
    names = ["orders/archive", "orders/cassandra", "orders/new"]
    assert collect_counts(count_entries(objects, names)) == [
        OffsetLogSize("orders/archive", 2, 2 * len(ack_row(1)) + 2 + 4),
        OffsetLogSize("orders/cassandra", 1, len(ack_row(1)) + 2),
    ]


def test_no_writer_is_counted_that_was_not_asked_for(objects):
    assert collect_counts(count_entries(objects, [])) == []


# The application


@pytest.fixture
def consensus() -> MemoryConsensus:
    """Three writers of ``orders`` with 3, 1 and no entries; one of another pipeline with 2."""
    made = MemoryConsensus()
    for pipeline, writer, count in (
        ("orders", "archive", 3),
        ("orders", "cassandra", 1),
        ("orders", "new", 0),
        ("invoices", "archive", 2),
    ):
        positions = Positions(made, pipeline)
        state = positions.register(writer, {})
        for position in range(count):
            entry = OffsetEntry(OffsetEntryKind.COMMIT, position, 1_000, "run-1")
            state = positions.commit(state, position, entry)
    return made


@pytest.fixture
def run(spark: "SparkSession", consensus: MemoryConsensus) -> Any:
    """The application on a control plane in memory; Spark sees the same rows in a DataFrame."""

    def run_application(execute: bool = False, every: bool = False) -> dict[str, Any]:
        compact = runpy.run_path(str(ROOT / "spark_apps" / "compact_offsets.py"))["compact"]
        rows = [
            (ObjectKind.WRITER.value, name, row, body)
            for name in consensus.names(ObjectKind.WRITER)
            for row, body in consensus.scan(ObjectKey(ObjectKind.WRITER, name), "").rows.items()
        ]
        compact.__globals__.update(
            look_at_control=lambda _: consensus,
            spark_session=lambda _: nullcontext(spark),
            read_objects=lambda *_: spark.createDataFrame(rows, SCHEMA),
        )
        job = SimpleNamespace(
            pipeline=SimpleNamespace(name="orders"),
            connections=SimpleNamespace(control=None),
            arguments=Namespace(execute=execute, every=every),
        )
        return compact(job)

    return run_application


def lengths(consensus: MemoryConsensus) -> list[int]:
    names = [name.split("/") for name in consensus.names(ObjectKind.WRITER)]
    return [len(Positions(consensus, pipeline).history(writer)) for pipeline, writer in names]


def test_the_application_only_plans_unless_it_is_told_to_do_it(run, consensus):
    summary = run()
    assert [(one["writer"], one["rows_before"], one["rows_after"]) for one in summary["writers"]] == [
        ("archive", 3, 1)
    ]
    assert [(one["writer"], one["rows"]) for one in summary["counted"]] == [
        ("orders/archive", 3),
        ("orders/cassandra", 1),
    ]
    assert (summary["executed"], lengths(consensus)) == (False, [2, 3, 1, 0])


def test_the_application_compacts_its_pipeline_s_writers(run, consensus):
    summary = run(execute=True)
    assert [(one["pipeline"], one["executed"]) for one in summary["writers"]] == [("orders", True)]
    assert lengths(consensus) == [2, 1, 1, 0]


def test_the_application_compacts_every_pipeline_s_writers(run, consensus):
    summary = run(execute=True, every=True)
    assert [one["pipeline"] for one in summary["writers"]] == ["invoices", "orders"]
    assert lengths(consensus) == [1, 1, 1, 0]


def test_the_application_fails_where_a_log_is_wrong_and_compacts_the_others(run, consensus):
    positions = Positions(consensus, "invoices")
    positions.commit(positions.load("archive"), 7, None)
    assert [bool(one["failure"]) for one in run(every=True)["writers"]] == [True, False]
    with pytest.raises(OffsetsNotCompacted, match=r"invoices/archive: it is at 7"):
        run(execute=True, every=True)
    assert lengths(consensus) == [2, 1, 1, 0]


def test_without_any_writer_there_is_nothing_to_count(run, consensus):
    consensus._objects.clear()
    assert run() == {"executed": False, "counted": [], "writers": []}
