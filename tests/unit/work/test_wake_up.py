"""Without Kafka no worker is woken up, and nothing else happens: it looks again when its wait is over."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tidemark.connections import KafkaConnection
from tidemark.kafka import hints
from tidemark.kafka.errors import KafkaFailure
from tidemark.work.wake_up import KafkaBell

pytestmark = pytest.mark.unit

NOWHERE = KafkaConnection(servers="127.0.0.1:1")
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN)


class Time:
    """Passes only while a worker waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Listening:
    """A listener that hears after two seconds that no hint can come."""

    def __init__(self, time: Time) -> None:
        self._time = time

    def wait(self, seconds: float) -> bool:
        self._time.now += 2
        raise KafkaFailure("down")


def given_bell(time: Time) -> KafkaBell:
    return KafkaBell("pages", "wake", NOWHERE, time, time.sleep)


def test_who_cannot_listen_waits_for_the_rest_of_the_time(monkeypatch):
    time = Time()

    def refuse(self: KafkaBell, patience: float) -> None:
        time.now += patience
        raise KafkaFailure("down")

    monkeypatch.setattr(KafkaBell, "_listening", refuse)
    bell = given_bell(time)
    assert bell.wait(30) is False
    assert (time.slept, time.now) == ([25.0], 30.0)


def test_a_message_that_is_an_error_wakes_no_worker(monkeypatch):
    time = Time()
    monkeypatch.setattr(KafkaBell, "_listening", lambda self, patience: Listening(time))
    assert given_bell(time).wait(30) is False
    assert time.slept == [28.0]


def test_really_without_kafka():
    time = Time()
    assert given_bell(time).wait(0.2) is False
    assert time.slept == [0.2]


def test_who_cannot_ring_goes_on(monkeypatch):
    def refuse(options: Any) -> None:
        raise KafkaException(DOWN)

    monkeypatch.setattr(hints, "Producer", refuse)
    bell = given_bell(Time())
    bell.ring("k")
    bell.close()


def test_a_connection_that_the_client_refuses_wakes_no_worker_and_stops_none():
    """A certificate that is missing on this machine: the worker polls."""
    time = Time()
    refused = KafkaConnection(servers="127.0.0.1:1", security_protocol="SSL", ca_file="/there/is/no/such.pem")
    bell = KafkaBell("pages", "wake", refused, time, time.sleep)
    assert bell.wait(30) is False
    assert time.now == 30.0
