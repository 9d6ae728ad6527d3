"""The sensor of a gate: succeeds, skips or waits."""

import pytest
from tests.support.pipeline_world import given_stopped_at

pytestmark = pytest.mark.unit


@pytest.fixture
def sensor(monkeypatch, opened):
    from tidemark_airflow.sensors import gate

    monkeypatch.setattr(gate, "open_pipeline", lambda name: opened)
    return lambda waits: gate.GateSensor(task_id="gate", pipeline="orders", writer="stream", waits=waits)


@pytest.mark.parametrize("waits", [False, True])
def test_an_open_gate_lets_the_run_pass(sensor, house, stream, waits):
    house.deliver(stream)
    assert sensor(waits).execute({}) is None


def test_a_closed_gate_skips_with_what_to_do(sensor, house, stream):
    from airflow.sdk.exceptions import AirflowSkipException

    given_stopped_at(house, 2, stream)
    with pytest.raises(AirflowSkipException, match="orders/stream: the gate is closed at id 2"):
        sensor(False).execute({})


def test_a_pipeline_that_stops_as_a_whole_waits(sensor, house, stream):
    from airflow.sdk.exceptions import TaskDeferred

    given_stopped_at(house, 2, stream)
    with pytest.raises(TaskDeferred) as deferred:
        sensor(True).execute({})
    path, keys = deferred.value.trigger.serialize()
    assert (path, keys["writer"]) == ("tidemark_airflow.triggers.gate.GateTrigger", "stream")
    assert (deferred.value.method_name, deferred.value.timeout.days) == ("go_on", 3650)


def test_the_method_that_airflow_stored_goes_on(sensor):
    assert sensor(True).go_on({}, {"writer": "stream"}) is None
