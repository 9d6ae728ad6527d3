"""Module paths of the release before still work: Airflow's database names triggers by them."""

import asyncio
from importlib import import_module
from typing import Any

import pytest

pytestmark = pytest.mark.unit

OLD = {
    "tidemark_airflow.gates.delivered_asset": "tidemark_airflow.tasks.gates",
    "tidemark_airflow.gates.open_pipeline": "tidemark_airflow.connections",
    "tidemark_airflow.house.Tag": "tidemark_airflow.dag_defaults",
    "tidemark_airflow.replicate.log_asset": "tidemark_airflow.tasks.replicate",
    "tidemark_airflow.work.open_work": "tidemark_airflow.connections",
    "tidemark_airflow.work_dead.dead_asset": "tidemark_airflow.tasks.dead_letters",
    "tidemark_airflow.audit.AuditLink": "tidemark_airflow.operators.audit",
    "tidemark_airflow.audit.AuditOperator": "tidemark_airflow.operators.audit",
    "tidemark_airflow.gates.GateSensor": "tidemark_airflow.sensors.gate",
    "tidemark_airflow.gates.GateTrigger": "tidemark_airflow.triggers.gate",
    "tidemark_airflow.gates.WriterTrigger": "tidemark_airflow.triggers.writer",
    "tidemark_airflow.reconcile.ReconcileLink": "tidemark_airflow.operators.reconcile",
    "tidemark_airflow.reconcile.ReconcileOperator": "tidemark_airflow.operators.reconcile",
    "tidemark_airflow.replicated.ReplicatedSensor": "tidemark_airflow.sensors.replicated",
    "tidemark_airflow.replicated.ReplicatedTrigger": "tidemark_airflow.triggers.replicated",
    "tidemark_airflow.resume.TargetSensor": "tidemark_airflow.sensors.target",
    "tidemark_airflow.resume.TargetTrigger": "tidemark_airflow.triggers.target",
    "tidemark_airflow.spark_app.SparkAppOperator": "tidemark_airflow.operators.spark_app",
    "tidemark_airflow.work.ClaimWork": "tidemark_airflow.operators.claim_work",
    "tidemark_airflow.work.SweepWorkOperator": "tidemark_airflow.operators.sweep_work",
    "tidemark_airflow.work.WorkReadySensor": "tidemark_airflow.sensors.work_ready",
    "tidemark_airflow.work.WorkReadyTrigger": "tidemark_airflow.triggers.work_ready",
}
STORED = {
    "tidemark_airflow.gates.GateTrigger": {"pipeline": "orders", "writer": "journal", "every": 5.0},
    "tidemark_airflow.replicated.ReplicatedTrigger": {
        "pipeline": "orders",
        "writer": "journal",
        "every": 5.0,
        "offsets": [["orders", 0, 7]],
    },
    "tidemark_airflow.resume.TargetTrigger": {"pipeline": "orders", "writer": "journal"},
    "tidemark_airflow.work.WorkReadyTrigger": {"journal": "pages", "every": 5.0},
}
"""Triggers as the release before stored them."""


def load(path: str) -> Any:
    """Import a class as the triggerer does."""
    from airflow.sdk._shared.module_loading import import_string

    return import_string(path)


@pytest.mark.parametrize("path", sorted(OLD))
def test_an_old_path_gives_the_class_from_its_new_module(path: str) -> None:
    name = path.rpartition(".")[2]
    assert load(path) is getattr(import_module(OLD[path]), name)


def test_every_alias_is_tested() -> None:
    from tidemark_airflow.earlier_paths import MOVED, PACKAGE

    moved = {
        f"{PACKAGE}.{old}.{name}": f"{PACKAGE}.{new}"
        for old, names in MOVED.items()
        for name, new in names.items()
    }
    assert moved == OLD


def test_a_name_that_was_never_there_is_no_attribute() -> None:

    earlier = import_module("tidemark_airflow.gates")
    with pytest.raises(AttributeError, match=r"module 'tidemark_airflow\.gates' has no attribute 'Gate'"):
        _ = earlier.Gate


@pytest.mark.parametrize("path", sorted(STORED))
def test_a_stored_trigger_is_made_again_and_stores_its_new_path(path: str) -> None:
    trigger = load(path)(**STORED[path])
    new, keys = trigger.serialize()
    assert (new, keys) == (f"{OLD[path]}.{path.rpartition('.')[2]}", STORED[path])
    assert load(new) is type(trigger)


def test_a_stored_trigger_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark_airflow.triggers import target

    reasons = ["no host", None]
    monkeypatch.setattr(target, "why_unreachable", lambda pipeline, writer: reasons.pop(0))
    monkeypatch.setattr(target, "FIRST_PAUSE", 0.0)
    path = "tidemark_airflow.resume.TargetTrigger"
    trigger = load(path)(**STORED[path])

    async def events() -> list[Any]:
        return [event.payload async for event in trigger.run()]

    assert asyncio.run(events()) == [{"writer": "journal"}]
