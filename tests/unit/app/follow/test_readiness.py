"""What a follow waits for before it begins."""

import pytest
from tests.support.memory_writers import Stream
from tests.support.opened_pipeline import given_opened
from tests.support.pipeline_world import PipelineWorld, given_stopped_at

from tidemark.app.follow.readiness import why_not_ready
from tidemark.delivery.state.lease import take
from tidemark.log.model.gate import LogGate, LogGateCause

pytestmark = pytest.mark.unit

GATE = LogGate(LogGateCause.LOST, "records are lost: orders/0", None, None, (), None, 5_000)


@pytest.fixture
def house(tmp_path) -> PipelineWorld:
    return PipelineWorld(tmp_path)


def opened(house, monkeypatch, **declared):
    return given_opened(house, monkeypatch, Stream(), **declared)


def test_nothing_is_in_the_way_of_a_pipeline_that_never_ran(house, monkeypatch):
    assert why_not_ready(opened(house, monkeypatch), "run-1") is None


def test_a_closed_log_gate_is_in_the_way_and_named_with_the_ways_out(house, monkeypatch):
    house.control.close_gate(GATE)
    said = why_not_ready(opened(house, monkeypatch), "run-1")
    assert said.startswith("orders: the log's gate is closed: records are lost: orders/0.")
    assert "tidemark log accept orders" in said


def test_a_writer_that_another_run_has_is_waited_for(house, monkeypatch):
    house.register(Stream())
    take(house.positions, house.positions.load("stream"), "orders.replicate run-7", house.clock)
    said = why_not_ready(opened(house, monkeypatch), "run-1", house.clock)
    assert said.startswith("orders/stream: orders.replicate run-7 has this writer until")


def test_a_lease_of_an_earlier_attempt_of_the_same_run_is_not(house, monkeypatch):
    house.register(Stream())
    take(house.positions, house.positions.load("stream"), "orders.follow run-1", house.clock)
    assert why_not_ready(opened(house, monkeypatch), "run-1", house.clock) is None


def test_a_stopped_writer_is_left_out(house, monkeypatch):
    given_stopped_at(house, 2)
    assert why_not_ready(opened(house, monkeypatch), "run-1") is None


def test_a_stopped_writer_that_stops_the_pipeline_is_waited_for(house, monkeypatch):
    given_stopped_at(house, 2)
    said = why_not_ready(opened(house, monkeypatch, on_failure="stop_pipeline"), "run-1")
    assert "orders/stream: the gate is closed at id 2" in said
