"""The sensor of purges: waits for the offsets of the run's last purges."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.unit


@pytest.fixture
def sensor(monkeypatch):
    from tidemark.app import purge
    from tidemark_airflow.sensors import replicated

    run = SimpleNamespace(last_offsets=lambda: {("orders", 0): 7, ("orders", 1): 3})
    opened = []
    monkeypatch.setattr(replicated, "open_pipeline", lambda name: name)
    monkeypatch.setattr(purge, "open_run", lambda *given: opened.append(given) or run)
    sensor = replicated.ReplicatedSensor(
        task_id="wait", pipeline="orders", writer="stream", run_name="orders.purge run-1 stream"
    )
    return SimpleNamespace(sensor=sensor, module=replicated, opened=opened)


def test_purges_that_are_delivered_let_the_run_pass(sensor, monkeypatch):
    asked = []
    monkeypatch.setattr(sensor.module, "why_not_replicated", lambda *given: asked.append(given))
    assert sensor.sensor.execute({}) is None
    assert asked == [("orders", "stream", [("orders", 0, 7), ("orders", 1, 3)])]
    assert sensor.opened == [("orders", "stream", "orders.purge run-1 stream")]


def test_others_are_waited_for(sensor, monkeypatch):
    from airflow.sdk.exceptions import TaskDeferred

    monkeypatch.setattr(sensor.module, "why_not_replicated", lambda *given: "not yet")
    with pytest.raises(TaskDeferred) as deferred:
        sensor.sensor.execute({})
    assert deferred.value.trigger.serialize()[1]["offsets"] == [("orders", 0, 7), ("orders", 1, 3)]
    assert getattr(sensor.sensor, deferred.value.method_name)({}, {}) is None
