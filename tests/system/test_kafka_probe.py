"""Item 4 and 20 on a real broker: what a probe tries, what it leaves, and dead letters in topics."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from tests.support.leases import FakeLease

from tidemark.delivery.dead_letters.store import DeadLetter
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.writers.kafka.dead_letter_topic import DeadLetterTopic, LettersNotSent
from tidemark.writers.kafka.kind import KafkaDeclaration
from tidemark.writers.kafka.output import OutputPartition
from tidemark.writers.kafka.target import NoTargetTopic, TargetFailed
from tidemark.writers.kafka.writer import KafkaWriter

pytestmark = pytest.mark.system


@pytest.fixture
def writer(services: Any) -> KafkaWriter:
    topic = f"probe-{uuid4().hex}"
    services.create_topic(topic, partitions=2)
    declared = KafkaDeclaration.model_validate({"name": "out", "kind": "kafka", "topic": topic}, context={})
    return KafkaWriter(f"p-{uuid4().hex}", declared, services.kafka)


def records(services: Any, topic: str, isolation: str = "read_uncommitted") -> list[Any]:
    """Every record of a topic."""
    options = {"group.id": uuid4().hex, "enable.partition.eof": True, "isolation.level": isolation}
    consumer = Consumer({**services.kafka.librdkafka_options(), **options})
    try:
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        return list(_until_the_end(consumer, len(partitions)))
    finally:
        consumer.close()


def _until_the_end(consumer: Consumer, ends: int) -> Iterator[Any]:
    while ends:
        message = consumer.poll(10)
        assert message is not None
        if message.error() is None:
            yield message
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ends -= 1


def ends(services: Any, topic: str) -> list[int]:
    consumer = Consumer({**services.kafka.librdkafka_options(), "group.id": uuid4().hex})
    try:
        places = [TopicPartition(topic, number) for number in range(2)]
        return [consumer.get_watermark_offsets(place, timeout=10)[1] for place in places]
    finally:
        consumer.close()


def message(id_: int, key: bytes | None = b"k", value: bytes = b"{}") -> dict[str, Any]:
    place = {"id": id_, "t": 1, "write_time": 1, "topic": "orders", "partition": 0, "offset": id_}
    rest = {"timestamp": 1_700_000_000_000, "timestamp_type": 0, "headers": [{"name": "h", "value": b"1"}]}
    batch = pa.RecordBatch.from_pylist(
        [place | rest | {"key": key, "value": value, "namespace": "orders"}], schema=LOG_SCHEMA
    )
    (one,) = batch.to_pylist()
    return dict(one)


def test_a_probe_leaves_nothing_that_any_consumer_could_see(services: Any, writer: KafkaWriter) -> None:
    writer.is_reachable()
    writer.is_reachable()
    assert (records(services, writer.declared.topic), ends(services, writer.declared.topic)) == ([], [0, 0])


def test_a_probe_fences_no_producer_at_work(services: Any, writer: KafkaWriter) -> None:
    output = OutputPartition(writer.target, 0)
    output.add(message(1), FakeLease())
    writer.is_reachable()
    output.commit(FakeLease())
    output.close()
    assert [one.value() for one in records(services, writer.declared.topic, "read_committed")] == [b"{}"]


def test_a_topic_that_is_gone_is_not_reachable(writer: KafkaWriter) -> None:
    declared = writer.declared.model_copy(update={"topic": f"gone-{uuid4().hex}"})
    with pytest.raises(NoTargetTopic):
        KafkaWriter(writer.pipeline, declared, writer.connection).is_reachable()


def test_a_topic_without_enough_replicas_is_not_reachable(services: Any) -> None:
    topic = f"probe-{uuid4().hex}"
    services.create_topic(topic, partitions=1, **{"min.insync.replicas": "2"})
    declared = KafkaDeclaration.model_validate({"name": "out", "kind": "kafka", "topic": topic}, context={})
    with pytest.raises(TargetFailed, match=r"1 replicas in sync, and min\.insync\.replicas is 2"):
        KafkaWriter("p", declared, services.kafka).is_reachable()


def test_a_redelivered_letter_is_sent_once_and_not_taken_for_the_last_id(
    services: Any, writer: KafkaWriter
) -> None:
    output = OutputPartition(writer.target, 0)
    output.add(message(9), FakeLease())
    output.commit(FakeLease())
    output.close()
    letter = message(3, key=None)
    mark = writer.mark_redelivery(letter)

    writer.redeliver(letter, mark, FakeLease())
    writer.redeliver(letter, mark, FakeLease())

    found = [dict(one.headers()) for one in records(services, writer.declared.topic, "read_committed")]
    assert [one.get("tidemark-redelivered-id") for one in found].count(b"3") == 1
    assert [one["h"] for one in found] == [b"1", b"1"]
    again = OutputPartition(writer.target, 0)
    assert again.last_id == 9
    again.close()
    assert mark["partition"] == 1


def test_dead_letters_come_to_their_topic_with_connects_headers(services: Any) -> None:
    topic = f"dead-{uuid4().hex}"
    services.create_topic(topic, partitions=1)
    letter = DeadLetter("shop", "archive", message(7), "it makes no sense", "a test record", "ann", 1)

    DeadLetterTopic("shop", topic, "kafka_default", services.kafka).keep([letter])

    (found,) = records(services, topic, "read_committed")
    headers = dict(found.headers())
    assert (found.key(), found.value(), found.timestamp()[1]) == (b"k", b"{}", 1_700_000_000_000)
    assert (headers["h"], headers["__connect.errors.topic"], headers["__connect.errors.offset"]) == (
        b"1",
        b"orders",
        b"7",
    )
    assert headers["__connect.errors.exception.message"] == b"it makes no sense"


def test_a_topic_for_dead_letters_that_is_missing_or_too_small_takes_nothing(services: Any) -> None:
    letter = DeadLetter("shop", "archive", message(7, value=b"x" * 50_000), "error", "why", "ann", 1)
    with pytest.raises(NoTargetTopic, match="Create it"):
        DeadLetterTopic("shop", f"gone-{uuid4().hex}", "kafka_default", services.kafka).keep([letter])
    topic = f"dead-{uuid4().hex}"
    services.create_topic(topic, partitions=1, **{"max.message.bytes": "1000"})
    with pytest.raises(LettersNotSent, match="Nothing was acknowledged"):
        DeadLetterTopic("shop", topic, "kafka_default", services.kafka).keep([letter])
    assert records(services, topic) == []
