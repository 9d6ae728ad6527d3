"""The wait after a handover: over after its time, or once readers have returned."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.airflow_context import given_context
from tests.support.renditions_installed import RenditionInstallation

from tidemark.app.renditions.endings import Retiring
from tidemark.app.renditions.hand_over import HandingOver, RollingBack
from tidemark.clock import SECOND, wall_clock
from tidemark.delivery.renditions.selection import renditions_delivered, soak_until
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


def trigger(soak: Any) -> Any:
    return soak.SoakTrigger("bank", "archive", 2, previous=1)


def return_to(bank: RenditionInstallation, number: int) -> None:
    RollingBack(bank.renditions(), number).carry_out(Signature("bob", "it was slow", 5 + number))


def test_it_waits_as_long_as_the_file_says_and_says_how_to_return(soak, bank):
    reason = trigger(soak)._reason()
    assert reason.startswith("bank/archive: readers use rendition 2; the earlier one is kept")
    assert reason.endswith("UTC: tidemark renditions rollback bank archive")
    bank.declare(further="soak: 0s")
    assert trigger(soak)._reason() is None


def test_a_rollback_ends_the_wait(soak, bank):
    return_to(bank, 1)
    assert trigger(soak)._reason() is None


def test_a_later_rebuild_that_overtakes_this_one_does_not_end_it(soak, bank):
    bank.declare(format="jsonl")
    bank.build(signed=Signature("eve", "another one", 6))
    bank.hand_over(3)
    reason = trigger(soak)._reason()
    assert "readers use rendition 3; the earlier one is kept" in reason
    assert reason.endswith("tidemark renditions rollback bank archive 1")


def test_one_that_is_retired_meanwhile_ends_it(soak, bank):
    Retiring(bank.renditions(), 1).carry_out(Signature("eve", "it is not needed", 6))
    assert trigger(soak)._reason() is None


def test_a_writer_that_the_file_does_not_have_any_more_ends_it(soak, bank):
    bank.declare("{name: another, kind: files, path: '${TIDEMARK_HOME}/another'}")
    assert trigger(soak)._reason() is None


def test_a_control_plane_that_does_not_answer_is_waited_for(soak, monkeypatch):
    def fail(name: str) -> None:
        raise ConnectionError("no host available")

    monkeypatch.setattr(soak, "open_pipeline", fail)
    assert "no host available" in trigger(soak)._reason()


def test_the_trigger_is_stored_with_all_it_needs(soak):
    path, keys = trigger(soak).serialize()
    assert path == "tidemark_airflow.triggers.soak.SoakTrigger"
    assert soak.SoakTrigger(**keys).serialize() == (path, keys)


@pytest.mark.parametrize(("seconds", "waits"), [(3_600, True), (0, False)])
def test_one_that_an_earlier_version_has_stored_waits_until_its_time(soak, seconds, waits):
    keys = {"pipeline": "bank", "writer": "archive", "every": 30.0, "number": 2}
    stored = soak.SoakTrigger(**keys, until=wall_clock() + seconds * SECOND)
    assert (stored._reason() is not None) is waits


# The time of the handover


def given_soak(bank: RenditionInstallation, soak: timedelta) -> int:
    """Readers take rendition 3 with a time to return of its own; returns when (µs) that is over."""
    bank.declare(format="jsonl", further="soak: 2h")
    bank.build(signed=Signature("eve", "another one", 6))
    done = HandingOver(bank.renditions(), 3, soak=soak).carry_out(Signature("eve", "another one", 6))
    return done.signed.at + int(soak.total_seconds() * SECOND)


@pytest.mark.parametrize("hours", [1, 48])
def test_a_time_of_its_own_is_how_long_the_earlier_rendition_is_delivered_to(soak, bank, hours):
    until = given_soak(bank, timedelta(hours=hours))
    output, declared = bank.output, bank.renditions().declared
    found = [
        2 in [one.number for one in renditions_delivered(output, declared, now)] for now in (until - 1, until)
    ]
    assert found == [True, False]
    assert soak_until(output, 2, declared) == until


@pytest.mark.parametrize(("hours", "waits"), [(0, False), (48, True)])
def test_the_task_waits_as_long_as_it_is_delivered_to(soak, bank, hours, waits):
    given_soak(bank, timedelta(hours=hours))
    assert (soak.SoakTrigger("bank", "archive", 3, previous=2)._reason() is not None) is waits


# The sensor


def sensor() -> Any:
    from tidemark_airflow.sensors.soak import SoakSensor

    return SoakSensor(task_id="soak", pipeline="bank", writer="archive")


DONE = given_context(results={"hand_over": {"number": 2, "previous": 1, "h": 1, "at": 1}})


def test_the_task_is_deferred_while_there_is_a_reason(soak, bank):
    from airflow.sdk.exceptions import TaskDeferred

    with pytest.raises(TaskDeferred) as deferred:
        sensor().execute(DONE)
    assert deferred.value.trigger.serialize() == trigger(soak).serialize()
    bank.declare(further="soak: 0s")
    assert sensor().execute(DONE) is None


def test_the_method_that_airflow_stored_goes_on(soak):
    assert sensor().go_on(SimpleNamespace(), {"writer": "archive"}) is None
