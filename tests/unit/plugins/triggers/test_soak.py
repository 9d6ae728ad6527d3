"""The wait after a handover: over after its time, or once readers have returned."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.airflow_context import given_context
from tests.support.renditions_installed import RenditionInstallation

from tidemark.app.renditions.hand_over import RollingBack
from tidemark.clock import SECOND, wall_clock
from tidemark.outputs.model.rendition import Signature

pytestmark = pytest.mark.unit


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RenditionInstallation:
    """Readers have taken rendition 2."""
    world = RenditionInstallation(tmp_path, monkeypatch)
    world.publish({"sum": 1})
    world.deliver()
    world.build()
    world.hand_over(2)
    return world


@pytest.fixture
def soak(bank, monkeypatch) -> Any:
    from tidemark_airflow.triggers import soak

    monkeypatch.setattr(soak, "open_pipeline", lambda name: bank.opened)
    return soak


def later(seconds: int = 3_600) -> int:
    return wall_clock() + seconds * SECOND


def test_it_waits_until_its_time_and_says_how_to_return(soak):
    reason = soak.SoakTrigger("bank", "archive", 2, later())._reason()
    assert reason.startswith("bank/archive: readers use rendition 2; the earlier one is kept")
    assert reason.endswith("UTC: tidemark renditions rollback bank archive")
    assert soak.SoakTrigger("bank", "archive", 2, wall_clock())._reason() is None


def test_a_rollback_ends_the_wait(soak, bank):
    RollingBack(bank.renditions()).carry_out(Signature("bob", "it was slow", 5))
    assert soak.SoakTrigger("bank", "archive", 2, later())._reason() is None


def test_a_control_plane_that_does_not_answer_is_waited_for(soak, monkeypatch):
    def fail(name: str) -> None:
        raise ConnectionError("no host available")

    monkeypatch.setattr(soak, "open_pipeline", fail)
    assert "no host available" in soak.SoakTrigger("bank", "archive", 2, 0)._reason()


def test_the_trigger_is_stored_with_all_it_needs(soak):
    path, keys = soak.SoakTrigger("bank", "archive", 2, 7).serialize()
    assert path == "tidemark_airflow.triggers.soak.SoakTrigger"
    assert soak.SoakTrigger(**keys).serialize() == (path, keys)


# The sensor


def sensor(soak_for: str) -> Any:
    from tidemark_airflow.sensors.soak import SoakSensor

    return SoakSensor(task_id="soak", pipeline="bank", writer="archive", soak=soak_for)


def done(at: int) -> Any:
    return given_context(results={"hand_over": {"number": 2, "previous": 1, "h": 1, "at": at}})


def test_the_time_counts_from_the_handover(soak):
    from airflow.sdk.exceptions import TaskDeferred

    at = wall_clock()
    with pytest.raises(TaskDeferred) as deferred:
        sensor("1h").execute(done(at))
    assert deferred.value.trigger.until == at + 3_600 * SECOND
    assert sensor("1h").execute(done(at - 3_600 * SECOND)) is None


def test_without_a_time_of_its_own_it_waits_as_long_as_the_file_says(soak, bank):
    from airflow.sdk.exceptions import TaskDeferred

    bank.declare(further="soak: 2h")
    at = wall_clock()
    with pytest.raises(TaskDeferred) as deferred:
        sensor("").execute(done(at))
    assert deferred.value.trigger.until == at + 7_200 * SECOND
    bank.declare(further="soak: 0s")
    assert sensor("").execute(done(at)) is None


def test_the_method_that_airflow_stored_goes_on(soak):
    assert sensor("1h").go_on(SimpleNamespace(), {"writer": "archive"}) is None
