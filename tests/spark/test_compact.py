"""Compaction through Spark's tasks gives what one process gives, to the byte."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.compaction_samples import (
    JOURNAL,
    LATEST,
    OPLOG,
    PROGRESS,
    Sent,
    added,
    deleted,
    marked,
    operated,
    purged,
)
from tests.support.compaction_world import HOUR, World

from tidemark.compaction import survey
from tidemark.compaction.engine import InProcess
from tidemark.log.verify import LogVerifier
from tidemark.spark.jobs.compact import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KEYS = 40


def in_partition(message: Sent, partition: int) -> Sent:
    return replace(message, partition=partition)


def given_world(root, policy, engine) -> World:
    """Four bindings of two topics: whole lives, purges, marks, a hot key, irregular histories."""
    world = World(root, policy, engine=engine)
    for number in range(4):
        messages = []
        for key in range(KEYS):
            name, partition = f"k{key}", key % 2
            first = 3 * number + 1
            own = [added(first, key=name), added(first + 1, first + 2, key=name), marked(name)]
            if key % 3 == 0:
                own.append(deleted(first + 1, name))
            if key % 5 == 0 and number == 2:
                own = [purged(name)]
            if key == 7:
                own.append(added(1, key=name))
            messages += [in_partition(one, partition) for one in own]
        hot = [added(50 * number + n + 1, key="hot") for n in range(50)]
        messages += [*hot, deleted(50 * number + 40, "hot")]
        messages += [Sent(b"x", None if n % 2 else b"v", topic="refunds") for n in range(3)]
        world.publish(*messages)
    world.publish(Sent(b"z"))
    world.move(world.control.log_head().end)
    upper = world.control.bindings_head().upper
    world.control.advance_upper(world.control.bindings_head(), upper + 2 * HOUR)
    return world


def given_operations(root, engine) -> World:
    """Four bindings of operations in two partitions: updates, deletes, and corrections, void and valid."""
    world = World(root, OPLOG, engine=engine, topic_ids=(("orders", "first"),))
    for number in range(4):
        messages = []
        for key in range(KEYS):
            looked_at = (key % 7) * 20 * number // 4
            kinds = ["+", "~", f"@{looked_at}", f"~@{looked_at + 30}", "", "?"]
            messages.append(operated(f"k{key}{kinds[(key + number) % 6]}", partition=key % 2))
        world.publish(*messages)
    world.publish(operated("end"))
    world.move(world.control.log_head().end)
    upper = world.control.bindings_head().upper
    world.control.advance_upper(world.control.bindings_head(), upper + 2 * HOUR)
    return world


def test_operations_are_compacted_by_spark_as_by_one_process(spark: "SparkSession", tmp_path) -> None:
    alone = given_operations(tmp_path / "alone", InProcess())
    spread = given_operations(tmp_path / "spread", SparkEngine(lambda: spark))
    plans = [world.compact("run").plan for world in (alone, spread)]
    assert plans[0].dropped > 0
    assert plans[1] == plans[0]
    assert spread.stored_messages() == alone.stored_messages()


@pytest.mark.parametrize("policy", [JOURNAL, LATEST, PROGRESS])
def test_G7_G16_spark_and_one_process_write_the_same_bytes(spark: "SparkSession", tmp_path, policy) -> None:
    alone = given_world(tmp_path / "alone", policy, InProcess())
    spread = given_world(tmp_path / "spread", policy, SparkEngine(lambda: spark))

    plans = [world.compact("run").plan for world in (alone, spread)]

    assert plans[0].dropped > 0
    assert plans[1] == plans[0]
    assert spread.stored_messages() == alone.stored_messages()
    verifier = LogVerifier(spread.control, spread.folder)
    assert [file.path for file in verifier.files()] == [file.path for file in spread.log.files]
    assert verifier.conclude().problems == ()


def test_G16_more_keys_than_fit_into_memory_are_gathered_in_pieces(tmp_path, monkeypatch) -> None:
    """In one process, where the bound can be lowered; the merge is the same."""
    whole = given_world(tmp_path / "whole", JOURNAL, InProcess())
    whole.compact("run")
    monkeypatch.setattr(survey, "MOST_ROWS", 3)
    pieces = given_world(tmp_path / "pieces", JOURNAL, InProcess())
    pieces.compact("run")
    assert pieces.stored_messages() == whole.stored_messages()


def test_G13_a_second_run_starts_no_spark(spark: "SparkSession", tmp_path) -> None:
    world = given_world(tmp_path, JOURNAL, SparkEngine(lambda: spark))
    world.compact("run")

    def refuse() -> "SparkSession":
        raise AssertionError("a session was asked for")

    world.engine = SparkEngine(refuse)
    assert world.compact("run").is_empty
