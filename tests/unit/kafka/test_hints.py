"""Hints: what is heard, and what is an error of Kafka's."""

import pytest
from confluent_kafka import KafkaError
from tests.support.fake_kafka import NOWHERE, FakeConsumer, FakeProducer, message

from tidemark.kafka import hints
from tidemark.kafka.errors import KafkaFailure
from tidemark.kafka.hints import HintListener, HintSender

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _clients(monkeypatch) -> None:
    monkeypatch.setattr(hints, "Consumer", FakeConsumer)
    monkeypatch.setattr(hints, "Producer", FakeProducer)


def test_a_hint_is_handed_to_the_client_and_not_waited_for():
    HintSender(NOWHERE, "wake").send(b"pages", b"insert")
    assert FakeProducer.produced == [{"topic": "wake", "key": b"pages", "value": b"insert"}]


def test_a_full_queue_is_said(monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise BufferError

    monkeypatch.setattr(FakeProducer, "produce", full)
    with pytest.raises(KafkaFailure):
        HintSender(NOWHERE, "wake").send(b"pages", b"insert")


def test_a_listener_begins_at_the_end_of_every_partition():
    HintListener(NOWHERE, "orders", "listeners", 1.0)
    assert FakeConsumer.assigned == [("orders", 0, 9), ("orders", 1, 9)]


@pytest.mark.parametrize(("messages", "heard"), [([message(9)], True), ([], False)])
def test_a_hint_that_comes_is_heard(messages, heard):
    listener = HintListener(NOWHERE, "orders", "listeners", 1.0)
    FakeConsumer.messages = list(messages)
    assert listener.wait(1.0) is heard


def test_an_error_is_no_hint():
    listener = HintListener(NOWHERE, "orders", "listeners", 1.0)
    FakeConsumer.messages = [message(0, KafkaError(KafkaError._ALL_BROKERS_DOWN))]
    with pytest.raises(KafkaFailure):
        listener.wait(1.0)
