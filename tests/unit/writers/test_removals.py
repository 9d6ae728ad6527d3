"""The place of a rendition of every kind: what a removal finds there, what it refuses, and what it drops.

Cassandra is a set of tables here, with the topics that they tell of.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.faults import Killed, kill_at

from tidemark.cassandra.schema import removal as schema_removal
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.faults import FaultPoint
from tidemark.kafka.errors import KafkaFailure
from tidemark.pipeline.model import Pipeline
from tidemark.writers.collection import removal as collection_removal
from tidemark.writers.journal import removal as journal_removal
from tidemark.writers.kafka import removal as kafka_removal
from tidemark.writers.kafka.removal import TopicNotDeleted
from tidemark.writers.removal import DropOption, PlaceRemoval, removal_of

pytestmark = pytest.mark.unit

JOURNAL = {"name": "tables", "kind": "journal", "keyspace": "journal_2"}
KAFKA = {"name": "copy", "kind": "kafka", "topic": "copies"}
ACCOUNTS = {"name": "accounts", "kind": "collection", "envelope": "append", "columns": {"owner": "text"}}
CONNECTIONS = Connections(
    kafka=KafkaConnection(servers="kafka:9092"),
    cassandra={"cassandra_default": CassandraConnection(hosts=("cassandra",))},
    kafka_targets={"kafka_default": KafkaConnection(servers="kafka:9092")},
)
TABLES = {"journal", "metajournal", "pointer2", "setting", "locks"}


@dataclass
class Keyspace:
    """One keyspace behind a session."""

    tables: set[str] = field(default_factory=set)
    topics: tuple[str, ...] = ()
    dropped: list[str] = field(default_factory=list)
    locked: int = 0
    cluster: Any = field(default_factory=lambda: SimpleNamespace(refresh_keyspace_metadata=lambda name: None))

    def execute(self, statement: str, values: tuple[str, ...] = ()) -> Any:
        if "system_schema.columns" in statement:
            column = SimpleNamespace(
                column_name="id", type="text", kind="partition_key", position=0, clustering_order="none"
            )
            return SimpleNamespace(all=lambda: [column] if values[1] in self.tables else [])
        if "system_schema.types" in statement:
            return []
        return [SimpleNamespace(topic=topic) for topic in self.topics]

    def execute_async(self, statement: str, timeout: float) -> Any:
        table = re.fullmatch(r"DROP TABLE IF EXISTS \w+\.(\w+)", statement)
        assert table
        self.tables.discard(table[1])
        self.dropped.append(table[1])
        return SimpleNamespace(result=lambda: None, is_schema_agreed=True)


@pytest.fixture
def cassandra(monkeypatch: pytest.MonkeyPatch) -> Keyspace:
    keyspace = Keyspace()

    @contextmanager
    def lock(*_: Any) -> Iterator[Any]:
        keyspace.locked += 1
        yield lambda: None

    monkeypatch.setattr(schema_removal, "schema_lock", lock)
    for module in (collection_removal, journal_removal):
        monkeypatch.setattr(module, "connect", lambda connection: keyspace)
    return keyspace


def removal(writer: dict[str, Any], *topics: str) -> PlaceRemoval:
    declared = {"name": "orders", "source": {"kafka": {"topics": ["orders"]}}, "writers": [writer]}
    pipeline = Pipeline.model_validate(declared, context={"TIDEMARK_HOME": "/home"})
    found = removal_of(pipeline, CONNECTIONS, pipeline.writers[0], topics)
    assert found is not None
    return found


# Collections


def test_both_tables_of_a_collection_are_dropped_and_nothing_else(cassandra):
    cassandra.tables = {"accounts", "accounts_changes", "accounts_r2", "locks"}
    one = removal(ACCOUNTS)
    assert (one.option, one.look().is_there, one.look().foreign) == (None, True, None)
    assert one.look().what == "tables collections.accounts and collections.accounts_changes"
    one.drop()
    assert (cassandra.tables, cassandra.locked) == ({"accounts_r2", "locks"}, 1)


def test_dropping_again_does_nothing_and_takes_no_lock(cassandra):
    one = removal(ACCOUNTS)
    one.drop()
    assert (one.look().is_there, cassandra.dropped, cassandra.locked) == (False, [], 0)


def test_a_keyspace_without_the_table_of_the_lock_needs_none(cassandra):
    cassandra.tables = {"accounts", "accounts_changes"}
    removal(ACCOUNTS).drop()
    assert (cassandra.tables, cassandra.locked) == (set(), 0)


@pytest.mark.parametrize("time", [1, 2])
def test_a_drop_that_was_killed_between_two_tables_is_continued(cassandra, monkeypatch, time):
    cassandra.tables = {"accounts", "accounts_changes"}
    reached = kill_at(monkeypatch, FaultPoint.TABLE_DROPPED, time)
    with pytest.raises(Killed):
        removal(ACCOUNTS).drop()
    assert len(reached) == time
    removal(ACCOUNTS).drop()
    assert (cassandra.tables, cassandra.dropped) == (set(), ["accounts", "accounts_changes"])


# Journals


def test_a_journals_tables_need_an_option_and_its_pointers_go_first(cassandra):
    cassandra.tables, cassandra.topics = {*TABLES, "others"}, ("orders",)
    one = removal(JOURNAL, "orders")
    assert (one.option, one.look().foreign) == (DropOption.TABLES, None)
    one.drop()
    assert cassandra.dropped == ["pointer2", "metajournal", "journal", "setting"]
    assert cassandra.tables == {"others", "locks"}


def test_tables_with_topics_of_another_pipeline_are_named(cassandra):
    cassandra.tables, cassandra.topics = set(TABLES), ("orders", "refunds")
    found = removal(JOURNAL, "orders").look()
    assert found.foreign == "they hold topics that this pipeline never read: refunds"


def test_of_many_topics_some_are_named(cassandra):
    cassandra.tables, cassandra.topics = set(TABLES), tuple("abcdefg")
    assert str(removal(JOURNAL).look().foreign).endswith("a, b, c, d, e and 2 more")


# Topics


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    there = {"copies", "others"}

    def delete(connection: KafkaConnection, topic: str) -> None:
        if topic == "others":
            raise KafkaFailure("topic others was not deleted: not allowed.")
        there.discard(topic)

    monkeypatch.setattr(kafka_removal, "delete_topic", delete)
    monkeypatch.setattr(
        kafka_removal, "missing_topics", lambda pipeline, connection, names: [*({*names} - there)]
    )
    return there


def test_a_topic_needs_an_option(topics):
    one = removal(KAFKA)
    assert (one.option, one.look().what, one.look().is_there) == (DropOption.TOPIC, "topic copies", True)
    one.drop()
    one.drop()
    assert (topics, one.look().is_there) == ({"others"}, False)


def test_a_topic_that_kafka_does_not_delete_is_an_error_with_the_next_step(topics):
    with pytest.raises(TopicNotDeleted, match=r"orders/copy: topic others .*not allowed.*same command again"):
        removal({**KAFKA, "topic": "others"}).drop()
