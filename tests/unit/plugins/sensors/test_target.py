"""The sensor of a target: tries once, then waits without a worker."""

import pytest

pytestmark = pytest.mark.unit


@pytest.fixture
def target():
    from tidemark_airflow.sensors import target

    return target


@pytest.fixture
def sensor(target):
    return target.TargetSensor(task_id="wait", pipeline="orders", writer="stream")


def test_a_target_that_answers_lets_the_run_pass(target, sensor, monkeypatch):
    monkeypatch.setattr(target, "why_unreachable", lambda *name: None)
    assert sensor.execute({}) is None


def test_a_target_that_does_not_answer_is_waited_for(target, sensor, monkeypatch):
    from airflow.sdk.exceptions import TaskDeferred

    monkeypatch.setattr(target, "why_unreachable", lambda *name: "no host")
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})
    assert deferred.value.trigger.serialize()[1] == {"pipeline": "orders", "writer": "stream"}
    assert getattr(sensor, deferred.value.method_name)({}, {}) is None


def test_the_writer_may_be_a_template(sensor):
    assert sensor.template_fields == ("writer",)
