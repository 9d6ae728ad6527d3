"""The sensor and the trigger of a follow: what they wait for, and through which failures."""

import asyncio

import pytest
from tests.support.pipeline_world import given_stopped_at

pytestmark = pytest.mark.unit


@pytest.fixture
def follow(monkeypatch, opened):
    from tidemark.app import open_pipeline
    from tidemark.pipeline import loader
    from tidemark.spark import engine
    from tidemark_airflow.triggers import follow

    class Connections:
        spark = None

    monkeypatch.setattr(follow, "engine_connections", lambda pipeline: Connections)
    monkeypatch.setattr(loader, "find_pipeline", lambda name: opened.pipeline)
    monkeypatch.setattr(open_pipeline, "OpenPipeline", lambda *_: opened)
    monkeypatch.setattr(engine, "engine_problem", lambda connection: None)
    return follow


def test_a_pipeline_that_can_be_followed(follow):
    assert follow.why_not_yet("orders", "run-1") is None


def test_an_engine_that_does_not_answer_is_waited_for(follow, monkeypatch):
    from tidemark.spark import engine

    monkeypatch.setattr(engine, "engine_problem", lambda connection: "sc://localhost:15002 (refused)")
    said = "orders: the Spark engine does not answer: sc://localhost:15002 (refused)"
    assert follow.why_not_yet("orders", "run-1") == said


def test_a_control_plane_that_does_not_answer_is_waited_for(follow, monkeypatch):
    def fail(pipeline):
        raise ConnectionError("no host available")

    monkeypatch.setattr(follow, "engine_connections", fail)
    assert follow.why_not_yet("orders", "run-1") == "orders: ConnectionError: no host available"


def test_the_trigger_fires_when_nothing_is_in_the_way(follow, monkeypatch):
    reasons = iter(["not yet", None])
    monkeypatch.setattr(follow, "why_not_yet", lambda pipeline, run_id: next(reasons))

    async def first():
        return await anext(follow.FollowTrigger("orders", "run-1", every=0.01).run())

    assert asyncio.run(first()).payload == {"pipeline": "orders"}


def test_the_sensor_defers_with_the_reason(follow, monkeypatch):
    from airflow.sdk.exceptions import TaskDeferred

    from tidemark_airflow.sensors import follow as sensors

    monkeypatch.setattr(sensors, "why_not_yet", lambda pipeline, run_id: "not yet")
    with pytest.raises(TaskDeferred) as deferred:
        sensors.FollowSensor(task_id="wait", pipeline="orders").execute({"run_id": "run-1"})
    assert deferred.value.trigger.serialize()[1] == {"pipeline": "orders", "run_id": "run-1", "every": 2.0}


def test_the_sensor_lets_the_run_pass(follow, house, stream):
    from tidemark_airflow.sensors.follow import FollowSensor

    given_stopped_at(house, 2, stream)  # a stopped writer is only left out
    assert FollowSensor(task_id="wait", pipeline="orders").execute({"run_id": "run-1"}) is None
