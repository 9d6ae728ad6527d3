"""The topic of the operations in Kafka: what is asked of the clients, and what is said of their failures."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from tests.support.fake_kafka import NOWHERE, FakeConsumer, FakeProducer, message
from tests.support.operation_topic import TOPIC_ID, operation

from tidemark.kafka import consumer, producer
from tidemark.kafka.partitioning import key_hash
from tidemark.log.model.binding import Available, Offsets
from tidemark.log.model.fixed_partitions import FixedPartitions, FixedTopic
from tidemark.operations.corrections import Correction
from tidemark.oplog.sync.errors import OperationsGone, OplogTopicChanged, SyncUnanswered
from tidemark.oplog.sync.kafka_operations import (
    KafkaOperations,
    TopicState,
    partition_of,
    refuse_changed,
    topic_state,
)
from tidemark.oplog.sync.sending import Outgoing

pytestmark = pytest.mark.unit

X = Outgoing(operation("x", "insert", 10), 1, Correction("run", 7, TOPIC_ID))


@pytest.fixture(autouse=True)
def _clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "Producer", FakeProducer)
    monkeypatch.setattr(consumer, "Consumer", FakeConsumer)
    monkeypatch.setattr(FakeProducer, "acknowledges", 100)


def operations() -> KafkaOperations:
    return KafkaOperations("events", "orders", 2, NOWHERE, "read_committed", patience=1)


def test_a_correction_goes_to_the_partition_of_its_object():
    with operations() as topic:
        places = topic.send([X])
    (sent,) = FakeProducer.produced
    assert places == [(0, 101)]  # what the cluster has answered
    assert (sent["partition"], sent["key"]) == (1, b"video/x")
    assert sent["headers"] == [("correction", X.header.to_header())]


def test_objects_are_where_java_s_hash_of_their_keys_says():
    assert partition_of("video", "x", 4) == key_hash(b"video/x") % 4


def test_corrections_without_an_acknowledgement_may_be_in_the_topic(monkeypatch):
    monkeypatch.setattr(FakeProducer, "acknowledges", 1)
    with operations() as topic, pytest.raises(SyncUnanswered, match="1 of 2 corrections were acknowledged"):
        topic.send([X, X])


def test_every_partition_is_read_to_its_end():
    with operations() as topic:
        assert topic.ends() == {0: 9, 1: 9}


def test_records_are_read_from_several_partitions(monkeypatch):
    found = [message(4, topic="orders", partition=0), message(8, topic="orders", partition=1)]
    monkeypatch.setattr(FakeConsumer, "messages", found)
    with operations() as topic:
        read = [(number, record.offset) for number, record in topic.records({0: (4, 5), 1: (8, 9)})]
    assert read == [(0, 4), (1, 8)]


def test_operations_that_kafka_has_no_longer_are_named():
    with operations() as topic:
        topic.ends()
        with pytest.raises(OperationsGone) as gone:
            list(topic.records({1: (0, 9)}))
    assert (gone.value.partition, gone.value.first) == (1, 0)


def test_a_cluster_that_does_not_answer_is_named(monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    monkeypatch.setattr(FakeConsumer, "get_watermark_offsets", fail)
    with operations() as topic, pytest.raises(SyncUnanswered, match="could not be read"):
        topic.ends()


NOW = TopicState("oplog", TOPIC_ID, 2, {0: 0, 1: 0}, {0: 5, 1: 5})


@pytest.mark.parametrize(
    ("topic_id", "starts", "problem"),
    [
        ("another", {0: 0, 1: 0}, "made again"),
        (TOPIC_ID, {0: 0, 1: 0, 2: 0}, "2 partitions instead of 3"),
        (TOPIC_ID, {0: 0, 1: 6}, "lost the end of partition 1, from offset 5 on"),
    ],
)
def test_another_topic_than_the_one_that_was_compared_is_refused(topic_id, starts, problem):
    with pytest.raises(OplogTopicChanged, match=problem):
        refuse_changed("events", NOW, topic_id, starts)


def kafka_has(partitions: int, topic_id: str = TOPIC_ID) -> Available:
    return Available({("oplog", number): Offsets(0, 5) for number in range(partitions)}, {"oplog": topic_id})


FIXED = {"oplog": FixedPartitions(2, 2)}
RECORDED = FixedTopic("oplog", TOPIC_ID, 2)


@pytest.mark.parametrize("recorded", [RECORDED, None])
def test_a_topic_as_it_was_recorded_or_that_was_not_recorded_yet(recorded):
    assert topic_state("events", "oplog", kafka_has(2), FIXED if recorded else {}, recorded) == NOW


def test_partitions_that_an_operator_has_accepted_are_left_out():
    accepted = {"oplog": FixedPartitions(2, 3)}
    assert topic_state("events", "oplog", kafka_has(3), accepted, RECORDED) == NOW


@pytest.mark.parametrize(
    ("found", "problem"),
    [(kafka_has(3), "3 partitions instead of 2"), (kafka_has(2, "another"), "not accepted")],
)
def test_a_topic_that_changed_and_was_not_accepted_is_refused(found, problem):
    with pytest.raises(OplogTopicChanged, match=problem):
        topic_state("events", "oplog", found, FIXED, RECORDED)
