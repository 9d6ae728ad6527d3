"""A random history of 20,000 actions, replicated in several ways: a reader cannot tell which one it was."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.engines import both_engines
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import (
    JournalRuns,
    differences,
    given_journal,
    given_topic,
    send,
    without_dates,
)

from tidemark.connections import Connections, SparkConnection
from tidemark.faults import FaultPoint

pytestmark = [pytest.mark.system, both_engines]

ACTIONS = 20_000
SEED = 6
FIVE_RUNS = {4_000: True, 8_000: False, 12_000: True, 16_000: False, 20_000: True}
"""After how many actions a run begins, and whether Spark delivers or one process does."""
DEATHS: dict[int, FaultPoint | float] = {
    7_000: 0.4,
    13_000: FaultPoint.DELIVER_PARTS_WRITTEN,
    20_000: FaultPoint.DELIVER_SETTLED,
}
"""After how many actions a run begins, and where its first delivery dies: halfway, or at a point."""


@dataclass(frozen=True)
class Replicated:
    """The same history in three keyspaces."""

    history: History
    bound_at: int
    """When it was bound in one run."""
    ways: dict[str, JournalRuns]


@pytest.fixture(scope="module")
def replicated(
    services: Any, spark_engine: SparkConnection | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replicated]:
    topic, history = f"history-{uuid4().hex[:8]}", History(SEED)
    cassandra = {"cassandra_default": services.cassandra}
    connections = Connections(kafka=services.kafka, cassandra=cassandra, spark=spark_engine)
    root = tmp_path_factory.mktemp("histories")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        stack.enter_context(given_topic(connections, topic))
        ways = {
            way: stack.enter_context(given_journal(root, connections, topic, f"{topic}-{way}", patch))
            for way in ("once", "often", "killed")
        }
        sent = 0
        for actions in sorted({*FIVE_RUNS, *DEATHS}):
            send(connections, topic, history.go_on(actions - sent))
            sent = actions
            if actions in FIVE_RUNS:
                ways["often"].replicate(f"after {actions}", with_spark=FIVE_RUNS[actions])
            if actions in DEATHS:
                ways["killed"].replicate(f"after {actions}", DEATHS[actions])
        binding = ways["once"].replicate("all")
        yield Replicated(history, binding.t, ways)


@pytest.mark.parametrize("way", ["once", "often", "killed"])
def test_every_entity_is_as_the_history_left_it(replicated: Replicated, way: str) -> None:
    assert replicated.ways[way].difference_to(replicated.history) == {}


@pytest.mark.parametrize("way", ["often", "killed"])
def test_a_reader_cannot_tell_how_it_was_replicated(replicated: Replicated, way: str) -> None:
    once, other = replicated.ways["once"], replicated.ways[way]
    assert differences(without_dates(other.visible), without_dates(once.visible)) == {}


def test_what_was_bound_at_once_expires_as_counted_from_then(replicated: Replicated) -> None:
    assert replicated.ways["once"].difference_to(replicated.history, replicated.bound_at) == {}


@pytest.mark.parametrize("way", ["often", "killed"])
def test_an_entity_that_expires_has_a_day_for_it(replicated: Replicated, way: str) -> None:
    visible = replicated.ways[way].visible
    halves = [
        key for key, one in visible.items() if (one["expire_on"] is None) != (one["expire_after"] is None)
    ]
    assert halves == []


def test_no_row_is_left_that_cannot_be_read(replicated: Replicated) -> None:
    for way, journal in replicated.ways.items():
        found = journal.session.execute(f"SELECT COUNT(*) AS rows FROM {journal.keyspace}.journal").one().rows
        readable = sum(len(entity["rows"]) for entity in journal.visible.values())
        assert (way, found) == (way, readable)
