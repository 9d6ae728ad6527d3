"""What is asked of Kafka's clients, and what is made of their answers."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from tests.support.expiry_world import day
from tests.support.fake_kafka import EOF, NOWHERE, FakeConsumer, FakeProducer, message

from tidemark.expiry.errors import KafkaFailed
from tidemark.expiry.purge_sender import PipelineTail, PurgeSender
from tidemark.expiry.run_record import Intended
from tidemark.kafka import consumer, producer
from tidemark.log.model.binding import Offsets

pytestmark = pytest.mark.unit

PURGED = {"headers": [("journal.action", b'{"purge":{"origin":"run"}}')]}


@pytest.fixture
def tail(monkeypatch) -> PipelineTail:
    monkeypatch.setattr(consumer, "Consumer", FakeConsumer)
    return PipelineTail("orders", NOWHERE, 0.01)


def test_every_partition_of_the_topic_is_known(tail) -> None:
    assert tail.offsets("orders") == {0: Offsets(0, 9), 1: Offsets(1, 9)}


def test_a_topic_that_is_gone_is_no_failure(tail) -> None:
    assert tail.offsets("refunds") is None


@pytest.mark.parametrize(
    ("messages", "offsets"),
    [
        pytest.param([message(3, **PURGED), message(4), message(5)], [3, 4], id="up to the end"),
        pytest.param([message(3, **PURGED), message(5, EOF)], [3], id="a marker at the end"),
        pytest.param([message(3, **PURGED), message(6)], [3], id="markers, and more behind them"),
    ],
)
def test_records_are_read_up_to_the_end_that_was_seen(tail, messages, offsets) -> None:
    FakeConsumer.messages = list(messages)
    found = list(tail.records("orders", 1, 3, 5))
    assert [one.offset for one in found] == offsets
    assert (found[0].entity, found[0].to_newer().origin) == ("k", "run")
    assert FakeConsumer.assigned == [("orders", 1, 3)]
    assert FakeConsumer.options["isolation.level"] == "read_uncommitted"


def test_an_empty_tail_asks_no_service() -> None:
    assert list(PipelineTail("orders", NOWHERE).records("orders", 0, 5, 5)) == []


@pytest.mark.parametrize("messages", [[], [message(3, KafkaError(KafkaError._AUTO_OFFSET_RESET))]])
def test_a_tail_that_does_not_come_is_an_error_and_not_an_end(tail, messages) -> None:
    FakeConsumer.messages = list(messages)
    with pytest.raises(KafkaFailed, match="could not be read from offset 3"):
        list(tail.records("orders", 0, 3, 5))


@pytest.fixture
def sender(monkeypatch) -> PurgeSender:
    monkeypatch.setattr(producer, "Producer", FakeProducer)
    monkeypatch.setattr(FakeProducer, "acknowledges", 100)
    return PurgeSender("orders", "orders.purge_expired r1", NOWHERE)


PURGES = [Intended("orders", "a", day(), 3, 9, 1), Intended("orders", "b", day(), 0, 9, 1)]


def test_purges_are_plain_actions_to_the_partitions_of_their_heads(sender) -> None:
    assert sender.send(PURGES) == [101, 102]
    assert [(one["topic"], one["key"], one["partition"]) for one in FakeProducer.produced] == [
        ("orders", b"a", 3),
        ("orders", b"b", 0),
    ]
    ((name, header),) = FakeProducer.produced[0]["headers"]
    assert name == "journal.action"
    assert header.startswith(b'{"purge":{"origin":"orders.purge_expired r1"')
    assert FakeProducer.produced[0]["value"] is None
    assert FakeProducer.options["acks"] == "all"
    assert FakeProducer.options["enable.idempotence"] is True


def test_nothing_to_send_starts_no_producer() -> None:
    assert PurgeSender("orders", "run", NOWHERE).send([]) == []


def test_what_was_not_acknowledged_is_said(sender, monkeypatch) -> None:
    monkeypatch.setattr(FakeProducer, "acknowledges", 1)
    with pytest.raises(KafkaFailed, match="1 of 2 purges were acknowledged"):
        sender.send(PURGES)


def test_a_client_that_takes_no_more_is_said_too(sender, monkeypatch) -> None:
    for error in (BufferError(), KafkaException(KafkaError(KafkaError._STATE))):

        def fail(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        monkeypatch.setattr(FakeProducer, "produce", fail)
        with pytest.raises(KafkaFailed, match="0 of 2 purges"):
            sender.send(PURGES)
