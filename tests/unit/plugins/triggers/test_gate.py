"""The trigger of a gate: waits while it is closed, and through failures of the control plane."""

import pytest
from tests.support.pipeline_world import given_stopped_at

pytestmark = pytest.mark.unit


@pytest.fixture
def gate(monkeypatch, opened):
    from tidemark_airflow.triggers import gate

    monkeypatch.setattr(gate, "open_pipeline", lambda name: opened)
    return gate


def test_a_closed_gate_is_a_reason_with_what_to_do(gate, house, stream):
    given_stopped_at(house, 2, stream)
    reason = gate.GateTrigger("orders", "stream")._reason()
    assert "orders/stream: the gate is closed at id 2" in reason
    assert reason.endswith("(see also the runs of orders.resume)")


def test_an_open_gate_is_none(gate, house, stream):
    house.deliver(stream)
    assert gate.GateTrigger("orders", "stream")._reason() is None


def test_a_control_plane_that_does_not_answer_is_a_reason(gate, monkeypatch):
    def fail(name):
        raise ConnectionError("no host available")

    monkeypatch.setattr(gate, "open_pipeline", fail)
    said = "orders/stream: the control plane does not answer: ConnectionError: no host available"
    assert gate.GateTrigger("orders", "stream")._reason() == said
