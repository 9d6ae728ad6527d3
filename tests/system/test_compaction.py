"""Compaction against real services: a journal rebuilt from a compacted log, and one run of the DAG."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import differences, read_pointers, read_visible
from tests.support.services.journal_world import (
    PIPELINE,
    WRITER,
    CassandraJournalWorld,
    Record,
    given_keyspace,
)
from tests.support.services.log_runs import LogRuns, deliver_here, publish_here
from tests.support.waiting import wait_until

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.compaction.compact import Compacted, Compaction
from tidemark.compaction.engine import InProcess
from tidemark.compaction.inputs import CompactionSettings, Questions
from tidemark.connections import Connections
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.journal.action import Delete, append
from tidemark.journal.events import EncodedEvent, Events
from tidemark.pipeline.model import JournalDeclaration
from tidemark.writers.journal.writer import JournalWriter

pytestmark = pytest.mark.system

ACTIONS, BINDINGS, SEED, TOPIC = 20_000, 20, 8, "history"
SEGMENT_SIZE = 10


@pytest.fixture
def keyspaces(services: Any) -> Iterator[tuple[str, str]]:
    with (
        given_keyspace(services.cassandra, "whole") as whole,
        given_keyspace(services.cassandra, "rebuilt") as rebuilt,
    ):
        yield whole, rebuilt


def test_a_journal_rebuilt_from_a_compacted_log_is_the_same(
    services: Any, keyspaces: tuple[str, str], tmp_path: Path
) -> None:
    whole, rebuilt = keyspaces
    house = CassandraJournalWorld(tmp_path, services.cassandra, whole, SEGMENT_SIZE, segment_bytes=1)
    history, offsets = History(SEED), Counter[int]()
    for number in range(BINDINGS):
        house.publish((number + 1) * 86_400_000_000, records(history.go_on(ACTIONS // BINDINGS), offsets))
    house.deliver()
    before = house.log.manifest

    done = compact(house)

    assert isinstance(done, Compacted)
    assert done.plan.dropped > ACTIONS // 10
    assert house.log.manifest.count == before.count - done.plan.dropped
    other = rebuilder(house, rebuilt)
    deliver_to(
        other, house.log, house.positions, "rebuild", write_parts_here, limit=10**9, reload=lambda: None
    )
    found, expected = (read_visible(services.session, keyspace, TOPIC) for keyspace in (rebuilt, whole))
    assert differences(found, expected) == {}
    pointers = [read_pointers(services.session, keyspace, TOPIC) for keyspace in (rebuilt, whole)]
    assert pointers[0] == pointers[1] == history.pointers


def records(sent: list[Any], offsets: Counter[int]) -> Iterator[Record]:
    """What was sent, where Kafka would have put it."""
    for one in sent:
        yield Record(
            TOPIC, one.partition, offsets[one.partition], one.key, one.value, one.timestamp, one.headers
        )
        offsets[one.partition] += 1


def compact(house: CassandraJournalWorld) -> object:
    settings = CompactionSettings("journal", 0, 0, 10**6, (WRITER,))
    questions = Questions(house.control, house.positions, str(house.root), settings)
    return Compaction(questions, InProcess()).run("test")


def rebuilder(house: CassandraJournalWorld, keyspace: str) -> JournalWriter:
    """A writer with a keyspace of its own, which begins at the beginning."""
    keys = {"name": "rebuilt", "kind": "journal", "keyspace": keyspace, "segment_size": SEGMENT_SIZE}
    return JournalWriter(
        PIPELINE, JournalDeclaration.model_validate(keys, context={}), house.connection, house.zone
    )


def test_a_run_of_the_dag_compacts_the_log(services: Any, tmp_path: Path) -> None:
    # Given: three bindings, of which the second makes most of the first obsolete.
    name = "condensed"
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    runs = LogRuns(name, tmp_path, connections)
    services.create_topic(name, partitions=1)
    appends = [append("a", number, Events((EncodedEvent(number),))) for number in range(1, 6)]
    for number, actions in enumerate(
        (appends, [Delete("a", 6, 5)], [append("b", 1, Events((EncodedEvent(1),)))])
    ):
        services.send(name, list(actions))
        publish_here(runs, f"run-{number}")
    deliver_here(OpenPipeline(runs.pipeline, connections), "archive")
    head = runs.control.bindings_head()
    runs.control.advance_upper(head, head.upper + 2_000_000)

    # When: it is compacted, first only on paper, then when a person has approved it.
    planned = begin_compaction(services, name, dry_run=True)
    wait_for_success(services, name, planned)
    done = begin_compaction(services, name, dry_run=False, approve=True)
    services.answer(f"{name}.compact_log", done, "approve", "Approve")
    wait_for_success(services, name, done)

    # Then: what the plan said has happened.
    airflow, dag_id = services.airflow, f"{name}.compact_log"
    plan = airflow.returned(dag_id, planned, "plan")
    assert (plan["dropped"], plan["policy"], plan["held_back_by"]) == (4, "journal", "archive")
    published = airflow.returned(dag_id, done, "publish")
    assert (published["messages_before"], published["messages_after"]) == (7, 3)
    assert "watermark: messages below id 6 may go" in services.task_logs(dag_id, planned)
    assert runs.control.log_head().compacted_below == 6


def test_a_run_for_a_log_that_is_never_compacted_removes_old_versions_alone(services: Any) -> None:
    name = "shortened"
    done = begin_compaction(services, name, dry_run=False)
    wait_for_success(services, name, done)
    states = {one.task_id: one.state for one in services.airflow.tasks(f"{name}.compact_log", done)}
    assert states.pop("trim") == "success"
    assert set(states.values()) == {"skipped"}
    assert "nothing was delivered yet" in services.task_logs(f"{name}.compact_log", done)


def begin_compaction(services: Any, name: str, **conf: Any) -> str:
    airflow, dag_id = services.airflow, f"{name}.compact_log"
    wait_until(lambda: airflow.has_dag(dag_id), what=f"{dag_id} known to Airflow")
    airflow.unpause(dag_id)
    run_id: str = airflow.trigger(dag_id, conf)
    return run_id


def wait_for_success(services: Any, name: str, run_id: str) -> None:
    dag_id = f"{name}.compact_log"
    assert services.wait_for_run(dag_id, run_id) == "success", services.task_logs(dag_id, run_id)
