"""The tasks that compact offset logs: nothing in a dry run, a proof at the end."""

import pytest
from tests.support.airflow_context import given_context
from tests.support.memory_writers import Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.delivery.state.offset_log import OffsetsNotCompacted, choose_writers
from tidemark.delivery.state.offset_log import compact_offsets as plan_all

pytestmark = pytest.mark.unit


@pytest.fixture
def tasks(monkeypatch, opened):
    from tidemark_airflow.tasks import compact_offsets

    monkeypatch.setattr(compact_offsets, "open_pipeline", lambda name: opened)
    return compact_offsets


def given_plan(house: PipelineWorld, stream: Stream) -> dict:
    """Three deliveries, and the plan of ``spark_apps/compact_offsets.py`` for them."""
    for letters in ("ab", "cd", "ef"):
        house.publish(orders=letters)
        house.deliver(stream)
    outcomes = plan_all(house.consensus, choose_writers(house.consensus, "orders", None), execute=False)
    return {"writers": [outcome.to_dict() for outcome in outcomes]}


def compact(tasks, plan, run_type, **params):
    return tasks.compact.function("orders", plan, **given_context(run_type, **{"dry_run": True, **params}))


@pytest.mark.parametrize("run_type", ["manual", "backfill"])
def test_a_dry_run_shows_the_plan_and_changes_nothing(tasks, house, stream, run_type, capsys):
    from airflow.sdk.exceptions import AirflowSkipException

    plan = given_plan(house, stream)
    before = house.positions.history("stream", 20)
    with pytest.raises(AirflowSkipException, match="Set dry_run to false to do it"):
        compact(tasks, plan, run_type)
    assert house.positions.history("stream", 20) == before
    assert "orders/stream: entries 3 → 1" in capsys.readouterr().out


@pytest.mark.parametrize(("run_type", "params"), [("scheduled", {}), ("manual", {"dry_run": False})])
def test_a_real_run_removes_what_newer_entries_made_obsolete(tasks, house, stream, run_type, params):
    compacted = compact(tasks, given_plan(house, stream), run_type, **params)
    assert len(house.positions.history("stream", 20)) == 1
    result = tasks.verify.function("orders", compacted)
    assert (result["writers"], result["rows"], result["bytes"] > 0) == (["stream"], 2, True)


def test_a_writer_that_could_not_be_planned_fails_after_the_others(tasks, house, stream):
    plan = given_plan(house, stream)
    plan["writers"].append({"failure": "orders/gone: its log does not end at its position"})
    with pytest.raises(OffsetsNotCompacted, match="orders/gone"):
        compact(tasks, plan, "scheduled")
    assert len(house.positions.history("stream", 20)) == 1
