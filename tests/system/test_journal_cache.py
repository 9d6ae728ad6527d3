"""The cache of Kafka's tail on real services: what is kept is never older than what Kafka has."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition
from tests.support.services.client_world import appended, fill
from tests.support.services.journal_runs import given_topic, make_again

from tidemark import Event, Journal
from tidemark.cassandra.session import connect
from tidemark.client.errors import TailLost
from tidemark.connections import Connections
from tidemark.consensus.lightweight import create_schema
from tidemark.journal.codec.record import write_action
from tidemark.kafka.consumer import PartitionReader

pytestmark = pytest.mark.system


@pytest.fixture
def connections(services: Any) -> Connections:
    return Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})


@pytest.fixture
def ends(connections: Connections) -> dict[str, Any]:
    """Where journals are whose events are all in Kafka."""
    return {"kafka": connections.kafka, "cassandra": connections.control, "keyspace": "none"}


@pytest.fixture
def topic(connections: Connections) -> Iterator[str]:
    with given_topic(connections, f"cache-{uuid4().hex[:8]}", 1) as topic:
        yield topic


def texts(first: int, last: int) -> list[Event]:
    return [Event.text(number, f"event {number}") for number in range(first, last + 1)]


def numbers(journal: Journal, key: str) -> list[int]:
    return [event.seq_nr for event in journal.read(key)]


def test_reads_after_the_first_one_read_what_was_sent_since(
    topic: str, connections: Connections, ends: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_out: list[int] = []
    until = PartitionReader.until

    def counted(reader: PartitionReader, end: int) -> Iterator[Any]:
        for record in until(reader, end):
            handed_out.append(record.offset)
            yield record

    with Journal(topic, **ends) as journal, Journal(topic, cache_bytes=0, **ends) as plain:
        journal.append("mine", texts(1, 2))
        fill(connections.kafka, topic, 20_000)
        assert numbers(journal, "mine") == [1, 2]
        monkeypatch.setattr(PartitionReader, "until", counted)
        assert numbers(journal, "mine") == [1, 2]
        assert list(journal.read("other-7")) == list(plain.read("other-7"))
        held = journal.cache_info()
        assert (held.hits, held.misses, held.records) == (2, 1, 20_001)
        plain.append("mine", texts(3, 3))
        plain.delete("mine", 1)
        del handed_out[:]
        assert numbers(journal, "mine") == [2, 3]
        assert len(handed_out) < 10


def test_a_transaction_that_is_aborted_or_committed_after_it_was_seen(
    topic: str, connections: Connections, ends: dict[str, Any]
) -> None:
    producer = Producer({"bootstrap.servers": connections.kafka.servers, "transactional.id": topic})
    producer.init_transactions(20)
    with Journal(topic, **ends) as journal:
        journal.append("k", texts(1, 1))
        assert numbers(journal, "k") == [1]
        for is_committed in (False, True):
            producer.begin_transaction()
            record = write_action(appended("k", 2))
            producer.produce(topic, record.value, record.key, headers=list(record.headers))
            producer.flush(20)
            (producer.commit_transaction if is_committed else producer.abort_transaction)(20)
            assert numbers(journal, "k") == ([1, 2] if is_committed else [1])
        assert journal.cache_info().misses == 1


def test_records_that_kafka_has_removed_are_not_read_from_memory(
    topic: str, connections: Connections, ends: dict[str, Any]
) -> None:
    with Journal(topic, **ends) as journal:
        journal.append("k", texts(1, 1))
        end = journal.append("k", texts(2, 2)).offset
        assert numbers(journal, "k") == [1, 2]
        with KafkaAdminClient(**connections.kafka.client_options()) as admin:
            admin.delete_records({TopicPartition(topic, 0): end})
        with pytest.raises(TailLost):
            numbers(journal, "k")


def test_another_topic_of_the_name_has_nothing_of_the_old_one(
    topic: str, connections: Connections, ends: dict[str, Any]
) -> None:
    control = connections.control
    create_schema(connect(control), control.control_replication)  # where no pipeline has bound the topic
    with Journal(topic, **ends) as journal:
        journal.append("k", texts(1, 3))
        assert numbers(journal, "k") == [1, 2, 3]
        make_again(connections, topic, 1)
        with Journal(topic, **ends) as others:
            others.append("k", texts(7, 7))
            fill(connections.kafka, topic, 100)
        with Journal(topic, **ends) as fresh:
            expected = numbers(fresh, "k")
        assert (expected, numbers(journal, "k")) == ([7], [7])
        assert journal.cache_info().discarded == 1


def test_threads_share_what_one_of_them_has_read(
    topic: str, connections: Connections, ends: dict[str, Any]
) -> None:
    fill(connections.kafka, topic, 5_000)
    with Journal(topic, **ends) as journal, ThreadPoolExecutor(8) as threads:
        keys = [f"other-{number}" for number in range(40)]
        found = list(threads.map(lambda key: numbers(journal, key), keys))
        assert found == [list(range(1, 51))] * 40
        assert journal.cache_info().misses == 1


def test_a_forked_process_has_clients_of_its_own(topic: str, ends: dict[str, Any]) -> None:
    with Journal(topic, **ends) as journal:
        journal.append("k", texts(1, 2))
        assert numbers(journal, "k") == [1, 2]
        if not (child := os.fork()):
            status = 1
            try:
                journal.append("k", texts(3, 3))
                status = 0 if numbers(journal, "k") == [1, 2, 3] else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert numbers(journal, "k") == [1, 2, 3]
