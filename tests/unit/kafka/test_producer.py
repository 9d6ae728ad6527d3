"""Sending: what counts as sent, what is said of the rest, and who is stopped."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from tests.support.fake_kafka import NOWHERE, FakeProducer

from tidemark.kafka import producer
from tidemark.kafka.errors import (
    KafkaFailure,
    NotAllAcknowledged,
    NotAuthorized,
    ProducerFenced,
    UnknownTopic,
)
from tidemark.kafka.producer import (
    Placed,
    PolledProducer,
    RecordToSend,
    SharedProducer,
    TransactionalProducer,
    send_all,
)

pytestmark = pytest.mark.unit

RECORDS = [RecordToSend("orders", b"a", b"1"), RecordToSend("orders", b"b", None, [("h", b"x")], 7, 3)]


@pytest.fixture(autouse=True)
def client(monkeypatch) -> type[FakeProducer]:
    monkeypatch.setattr(producer, "Producer", FakeProducer)
    monkeypatch.setattr(FakeProducer, "acknowledges", 100)
    return FakeProducer


def failing(error: int | KafkaError) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise KafkaException(error if isinstance(error, KafkaError) else KafkaError(error))

    return fail


# Records together


def test_records_are_sent_in_order_and_their_places_are_known(client):
    assert send_all(NOWHERE, RECORDS, 30) == [Placed(0, 101), Placed(0, 102)]
    assert [(one["key"], one["value"]) for one in client.produced] == [(b"a", b"1"), (b"b", None)]
    assert (client.produced[1]["headers"], client.produced[1]["partition"]) == ([("h", b"x")], 3)
    assert "partition" not in client.produced[0]


def test_a_timestamp_of_zero_is_not_taken_for_now(client):
    send_all(NOWHERE, [RecordToSend("orders", None, b"", timestamp=0)], 30)
    assert client.produced[0]["timestamp"] == 1


@pytest.mark.parametrize("as_java", [True, False])
def test_keys_go_where_java_s_clients_send_them_if_that_is_wanted(client, as_java):
    send_all(NOWHERE, RECORDS, 30, as_java=as_java)
    assert client.options.get("partitioner") == ("murmur2_random" if as_java else None)


def test_nothing_counts_before_all_replicas_have_it(client):
    send_all(NOWHERE, RECORDS, 30)
    assert (client.options["acks"], client.options["enable.idempotence"]) == ("all", True)
    assert client.options["allow.auto.create.topics"] is False
    assert client.calls == ["purge", "close"]


def test_what_was_not_acknowledged_is_counted(client, monkeypatch):
    monkeypatch.setattr(client, "acknowledges", 1)
    with pytest.raises(NotAllAcknowledged) as failed:
        send_all(NOWHERE, RECORDS, 30)
    assert failed.value.acknowledged == 1
    assert "replicas" in failed.value.reason


def test_an_answer_that_does_not_come_is_said(client, monkeypatch):
    monkeypatch.setattr(client, "produce", lambda *_, **__: None)
    with pytest.raises(NotAllAcknowledged, match="not acknowledged in time"):
        send_all(NOWHERE, RECORDS, 30)


# Transactions


def test_a_transaction_is_one_commit(client):
    transactional = TransactionalProducer(NOWHERE, "tidemark.orders.out.0", 20)
    transactional.open()
    transactional.commit(RECORDS)
    transactional.close()
    transactional.close()
    assert client.options["transactional.id"] == "tidemark.orders.out.0"
    assert (client.calls, len(client.produced)) == (["init", "begin", "commit", "purge", "close"], 2)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._FENCED, ProducerFenced),
        (KafkaError.PRODUCER_FENCED, ProducerFenced),
        (KafkaError.INVALID_PRODUCER_EPOCH, ProducerFenced),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NotAuthorized),
        (KafkaError._TIMED_OUT, KafkaFailure),
    ],
)
def test_why_a_transaction_failed_is_told_by_its_kind(client, monkeypatch, code, kind):
    monkeypatch.setattr(client, "commit_transaction", failing(code))
    with pytest.raises(KafkaFailure) as failed:
        TransactionalProducer(NOWHERE, "id", 20).commit(RECORDS)
    assert type(failed.value) is kind


# Single records


def given_shared() -> SharedProducer:
    return SharedProducer(NOWHERE, 1.0, "test-producer")


def test_a_single_record_is_waited_for():
    shared = given_shared()
    assert shared.send(RECORDS[0]) == Placed(0, 101)
    shared.close()
    assert shared.is_closed


def test_a_topic_that_is_missing_is_not_created():
    with pytest.raises(UnknownTopic):
        given_shared().send(RecordToSend("refunds", b"a", b"1"))


@pytest.mark.parametrize(
    ("code", "is_refused"), [(KafkaError.MSG_SIZE_TOO_LARGE, True), (KafkaError._MSG_TIMED_OUT, False)]
)
def test_whether_a_record_is_certainly_not_there(client, monkeypatch, code, is_refused):
    monkeypatch.setattr(client, "acknowledges", 0)
    monkeypatch.setattr(client, "error", KafkaError(code))
    shared = given_shared()
    with pytest.raises(KafkaFailure) as failed:
        shared.send(RECORDS[0])
    shared.close()
    assert failed.value.is_refused is is_refused


def test_a_full_queue_refuses_a_record(client, monkeypatch):
    def full(*_: Any, **__: Any) -> None:
        raise BufferError

    monkeypatch.setattr(client, "produce", full)
    shared = given_shared()
    with pytest.raises(KafkaFailure) as failed:
        shared.send(RECORDS[0])
    shared.close()
    assert failed.value.is_refused


def test_after_a_fatal_error_there_is_a_new_client(client, monkeypatch):
    fatal = KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "gone", True)
    monkeypatch.setattr(client, "acknowledges", 0)
    monkeypatch.setattr(client, "error", fatal)
    shared = given_shared()
    with pytest.raises(KafkaFailure):
        shared.send(RECORDS[0])
    monkeypatch.setattr(client, "acknowledges", 100)
    assert shared.send(RECORDS[0]) == Placed(0, 101)
    shared.close()


# Many records for one event loop


def test_a_polled_producer_tells_what_became_of_each_record(client, monkeypatch):
    monkeypatch.setattr(client, "acknowledges", 1)
    told = []
    producer = PolledProducer(NOWHERE, "orders", lambda *said: told.append(said), most=10)
    assert producer.send(2, b"a", b"1", "first")
    assert producer.send(3, b"b", b"2", "second")
    assert [one["partition"] for one in client.produced] == [2, 3]
    assert told[0] == ("first", None)
    assert (told[1][0], type(told[1][1])) == ("second", KafkaFailure)


def test_a_polled_producer_retries_for_ever_and_doubles_nothing(client):
    PolledProducer(NOWHERE, "orders", print, most=10)
    assert (client.options["delivery.timeout.ms"], client.options["enable.idempotence"]) == (0, True)
    assert (client.options["acks"], client.options["queue.buffering.max.messages"]) == ("all", 10)


def test_a_polled_producer_whose_queue_is_full_takes_nothing(client, monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise BufferError

    producer = PolledProducer(NOWHERE, "orders", print, most=10)
    monkeypatch.setattr(client, "produce", fail)
    assert not producer.send(0, b"a", b"1", None)


def test_a_polled_producer_that_is_fenced_says_that_it_is_of_no_use(client, monkeypatch):
    producer = PolledProducer(NOWHERE, "orders", print, most=10)
    monkeypatch.setattr(client, "produce", failing(KafkaError(KafkaError._FATAL, "fenced", fatal=True)))
    with pytest.raises(KafkaFailure) as failed:
        producer.send(0, b"a", b"1", None)
    assert failed.value.is_fatal


def test_a_polled_producer_is_abandoned_with_what_it_has(client):
    PolledProducer(NOWHERE, "orders", print, most=10).abandon()
    assert "purge" in client.calls
