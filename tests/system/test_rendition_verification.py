"""Renditions on real Kafka, Cassandra and Spark: compared with the active one, explained, and outdated.

In this ring because rows, heads and messages are read as their own databases give them, here and in tasks.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import given_topic, send
from tests.support.services.log_runs import LogRuns, declare_log, publish_here, spark_environ
from tests.support.services.rendition_runs import RenditionRuns

from tidemark.cassandra.session import connect
from tidemark.cli.journal.verify import pipeline_spark
from tidemark.connections import Connections
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.outputs.model.handover import NotVerified
from tidemark.outputs.model.rendition import RenditionState
from tidemark.spark.jobs.renditions import SparkEngine
from tidemark.verification.renditions.record import read_last
from tidemark.verification.renditions.report import RenditionReport

pytestmark = pytest.mark.system

EXACT, EXPLAINED = VerificationMode
ACCOUNTS = (
    "name: accounts, kind: collection, keyspace: {name}, envelope: upsert, key: {{id: text}}, "
    "columns: {{owner: text, balance: decimal, tags: set<text>}}, shards: %d, transforms: [%s], expect: [%s]"
)
COPIES = "name: copies, kind: kafka, topic: {name}-copies, transforms: [%s], expect: [%s]"
JOURNAL = "name: tables, kind: journal, keyspace: {name}, segment_size: %d, expect: [%s]"
NO_CAROL = '{{skip: {{field: owner, operator: "=~", match: "^(ann|bob)"}}}}'
CAROL = '{{rows: missing, where: "owner == carol", reason: carol is a test account}}'


class Bank:
    """A pipeline with one writer, whose file can be written anew."""

    def __init__(self, name: str, root: Path, connections: Connections, patch: pytest.MonkeyPatch) -> None:
        self.name, self.root, self.connections, self.patch = name, root, connections, patch
        self.count = 0

    def declare(self, writer: str) -> RenditionRuns:
        source = f'topics: ["{self.name}"], format: json'
        place = self.root, self.name, self.connections, self.patch
        runs = declare_log(*place, source, writer=writer)
        return RenditionRuns(runs, writer.split(",")[0].removeprefix("name: "))

    def send(self, runs: LogRuns, accounts: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Send accounts, and publish them."""
        with KafkaProducer(**self.connections.kafka.client_options()) as producer:
            for id_, account in accounts.items():
                value = None if account is None else json.dumps(account).encode()
                producer.send(self.name, key=id_.encode(), value=value)
        self.count += 1
        publish_here(runs, f"run-{self.count}")


def account(owner: str, balance: float) -> dict[str, Any]:
    return {"owner": owner, "balance": balance, "tags": ["b", "a"]}


@pytest.fixture
def connections(services: Any) -> Connections:
    return Connections(
        kafka=services.kafka,
        cassandra={"cassandra_default": services.cassandra},
        kafka_targets={"kafka_default": services.kafka},
    )


@pytest.fixture
def bank(
    services: Any, connections: Connections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bank]:
    name = f"bank_{uuid4().hex[:8]}"
    services.create_topic(name, partitions=3)
    yield Bank(name, tmp_path, connections, monkeypatch)
    connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


def last_report(of: RenditionRuns) -> RenditionReport | None:
    return read_last(of.runs.name, of.runs.pipeline.log.path, of.writer, 2)


def test_a_collection_is_the_same_with_other_shards_until_something_changes(
    bank: Bank, services: Any
) -> None:
    # Given: accounts at two times, and a rendition with other shards.
    accounts = bank.declare(ACCOUNTS % (4, "", ""))
    bank.send(accounts.runs, {f"a{n}": account("ann", n + 0.5) for n in range(60)})
    bank.send(accounts.runs, {"a1": account("bob", 7), "a2": None})
    accounts.begin()
    accounts = bank.declare(ACCOUNTS % (16, "", ""))
    assert accounts.build() == 2

    # When: it is verified.
    report = accounts.verify(EXACT)

    # Then: nothing differs, and the report is kept.
    assert (report.is_clean, report.looked_at) == (True, {"rows": 59, "bindings": 2})
    assert last_report(accounts) == report
    assert accounts.output.rendition(2).state is RenditionState.VERIFIED

    # And: what is delivered afterwards revokes it, for both.
    bank.send(accounts.runs, {"a3": account("ann", 1)})
    accounts.deliver(1)
    assert accounts.output.rendition(2).state is RenditionState.BUILDING
    with pytest.raises(NotVerified):
        accounts.hand_over()
    accounts.deliver(2)
    assert accounts.verify(EXACT).is_clean

    # And: a row that is lost in its table is found, and readers are not handed over.
    session = connect(services.cassandra)
    session.execute(f"DELETE FROM {bank.name}.accounts_r2 WHERE id = 'a5'")
    found = accounts.verify(EXACT)
    assert found.changes == {"missing": 1}
    assert found.samples[0].said[0].startswith("id a5 at ")
    assert "owner ann, balance 5.5, tags ['a', 'b']" in found.samples[0].said[0]


def test_the_differences_of_a_collection_are_explained_by_rules(bank: Bank) -> None:
    # Given: a test account that a new transform leaves out.
    accounts = bank.declare(ACCOUNTS % (4, "", ""))
    bank.send(accounts.runs, {"a": account("ann", 1), "b": account("bob", 2), "c": account("carol", 3)})
    bank.send(accounts.runs, {"a": account("ann", 4), "c": account("carol", 5)})
    accounts.begin()
    accounts = bank.declare(ACCOUNTS % (4, NO_CAROL, ""))
    accounts.build()

    # When: it is compared with and without a rule.
    exact, without = accounts.verify(EXACT), accounts.verify(EXPLAINED)
    accounts = bank.declare(ACCOUNTS % (4, NO_CAROL, CAROL))
    explained = accounts.verify(EXPLAINED)

    # Then: only the rule explains them, and readers may be handed over.
    assert (exact.is_clean, exact.changes, without.is_clean) == (False, {"missing": 2}, False)
    assert (explained.is_clean, explained.differences, explained.explained) == (True, 2, 2)
    assert "2 explained by missing rows where owner == carol" in "\n".join(explained.to_lines())
    assert accounts.hand_over().rendition == 2
    assert accounts.output.active.number == 2


def test_topics_are_compared_message_by_message(bank: Bank, connections: Connections) -> None:
    # Given: a copy, and one of another number of partitions without a test account.
    copies = bank.declare(COPIES % ("", ""))
    with KafkaAdminClient(**connections.kafka.client_options()) as admin:
        topics = [(f"{bank.name}-copies", 2), (f"{bank.name}-copies.r2", 3)]
        admin.create_topics([NewTopic(topic, partitions, 1) for topic, partitions in topics])
    bank.send(copies.runs, {f"a{n}": account("ann", n) for n in range(30)} | {"c": account("carol", 1)})
    copies.begin()
    copies = bank.declare(COPIES % (NO_CAROL, CAROL.replace("owner", "value.owner")))
    copies.build()

    # When: it is verified in both modes.
    exact, explained = copies.verify(EXACT), copies.verify(EXPLAINED)

    # Then: only the message of the account is missing; the others were written anew, with the same fields.
    assert (exact.changes, exact.columns) == ({"missing": 1, "changed": 30}, {"value": 30})
    assert exact.looked_at == {"messages": 31, "partitions": 5}
    assert explained.is_clean


def test_a_journal_is_the_same_until_a_head_and_a_pointer_are_lost(
    services: Any, connections: Connections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a journal, and a rendition of it.
    topic = f"journal_{uuid4().hex[:8]}"
    place = tmp_path, topic, connections, monkeypatch, f'topics: ["{topic}"]', "default"
    with given_topic(connections, topic):
        try:
            runs = declare_log(*place, JOURNAL % (10, ""))
            send(connections, topic, History(7, 40).go_on(600))
            publish_here(runs, "run-1")
            tables = RenditionRuns(runs, "tables")
            tables.begin()
            tables.build()

            # When and then: both are the same, read by key and in Spark's tasks.
            for name, value in spark_environ().items():
                monkeypatch.setenv(name, value)
            here = tables.verify(EXACT)
            with pipeline_spark(tables.opened, "rendition") as spark:
                in_tasks = tables.verify(EXACT, SparkEngine(spark))
            assert (here.is_clean, here.looked_at) == (True, in_tasks.looked_at)
            assert here.looked_at["entities"] > 30
            assert tables.output.rendition(2).state is RenditionState.VERIFIED

            # And: a head and a pointer that are lost are found.
            session = connect(services.cassandra)
            head = session.execute(f"SELECT topic, segment, id FROM {topic}_r2.metajournal LIMIT 1").one()
            gone = f"DELETE FROM {topic}_r2.metajournal WHERE topic = %s AND segment = %s AND id = %s"
            session.execute(gone, head)
            session.execute(f"DELETE FROM {topic}_r2.pointer2 WHERE topic = %s AND partition = 0", (topic,))
            found = tables.verify(EXACT)
            assert found.changes == {"missing": 1, "changed": 1}
            assert found.columns == {"pointer2": 1}
            assert tables.output.rendition(2).state is RenditionState.BUILDING
        finally:
            for keyspace in (topic, f"{topic}_r2"):
                connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)
