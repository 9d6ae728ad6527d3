"""The trigger of purges: waits until the writer's position has passed their offsets."""

import pytest
from tests.support.pipeline_world import given_stopped_at

pytestmark = pytest.mark.unit


@pytest.fixture
def replicated(monkeypatch, opened):
    from tidemark_airflow.triggers import replicated

    monkeypatch.setattr(replicated, "open_pipeline", lambda name: opened)
    return replicated


def test_offsets_that_the_writer_has_passed_are_no_reason(replicated, house, stream):
    house.publish(orders="abc")
    house.deliver(stream)
    assert replicated.why_not_replicated("orders", "stream", [("orders", 0, 2)]) is None


def test_offsets_that_are_not_bound_yet_are_named(replicated, house, stream):
    house.publish(orders="abc")
    house.deliver(stream)
    said = replicated.why_not_replicated("orders", "stream", [("orders", 0, 7)])
    assert said == "orders/stream: orders.replicate has not passed the purges yet: orders/0 at offset 7."


def test_a_stopped_writer_adds_what_to_do(replicated, house, stream):
    given_stopped_at(house, 0, stream)
    said = replicated.why_not_replicated("orders", "stream", [("orders", 0, 2)])
    assert "orders/0 at offset 2. orders/stream: the gate is closed at id 0" in said


def test_an_error_is_a_reason_to_wait(replicated, monkeypatch):
    def fail(*given):
        raise ConnectionError("no host available")

    monkeypatch.setattr(replicated, "why_not_replicated", fail)
    trigger = replicated.ReplicatedTrigger("orders", "stream", [("orders", 0, 2)])
    assert trigger._reason() == "ConnectionError: no host available"


def test_a_trigger_serializes_to_what_makes_it_again(replicated):
    path, keys = replicated.ReplicatedTrigger("orders", "stream", [("orders", 0, 2)], 1.0).serialize()
    assert path == "tidemark_airflow.triggers.replicated.ReplicatedTrigger"
    assert replicated.ReplicatedTrigger(**keys).serialize() == (path, keys)
