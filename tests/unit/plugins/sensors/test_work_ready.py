"""The sensor of a work journal: checks once, then waits without a worker."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.unit


@pytest.fixture
def sensor(monkeypatch):
    from tidemark_airflow.sensors import work_ready

    def given(ready: bool):
        work = SimpleNamespace(is_ready=lambda: ready)
        monkeypatch.setattr(work_ready, "open_work", lambda journal: nullcontext(work))
        return work_ready.WorkReadySensor(task_id="wait", journal="pages", every=7)

    return given


def test_a_due_entry_lets_the_run_pass(sensor):
    assert sensor(True).execute({}) is None


def test_otherwise_it_waits(sensor):
    from airflow.sdk.exceptions import TaskDeferred

    with pytest.raises(TaskDeferred) as deferred:
        sensor(False).execute({})
    assert deferred.value.trigger.serialize()[1] == {"journal": "pages", "every": 7}
    assert deferred.value.method_name == "go_on"
    assert sensor(False).go_on({}, {}) is None
