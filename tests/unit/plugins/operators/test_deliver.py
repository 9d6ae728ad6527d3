"""deliver: the tasks about gates run only where a gate is closed or a writer has failed."""

import pytest

pytestmark = pytest.mark.unit

OPEN = {"gate": None, "stopped_now": False, "failure": None, "position": 7}


class Instance:
    """A task instance that remembers what was pushed."""

    def __init__(self):
        self.pushed = {}

    def xcom_push(self, key, value):
        self.pushed[key] = value


@pytest.fixture
def deliver(monkeypatch):
    """Executes the task with a given result of the application; returns what the task returns."""
    from tidemark_airflow.operators.deliver import DeliverOperator
    from tidemark_airflow.operators.spark_app import SparkAppOperator

    def run(result, instance, about_changes=()):
        task = DeliverOperator(
            task_id="deliver",
            pipeline="orders",
            about_gates=["check_gates"],
            about_changes=about_changes,
        )
        monkeypatch.setattr(SparkAppOperator, "execute", lambda self, context: result)
        return task.execute({"ti": instance})

    return run


def test_open_gates_need_no_task(deliver):
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    result, instance = {"end": 7, "writers": {"journal": OPEN}}, Instance()
    with pytest.raises(DownstreamTasksSkipped) as skipped:
        deliver(result, instance)
    assert (skipped.value.tasks, instance.pushed) == (["check_gates"], {"return_value": result})


def test_a_run_of_follow_after_which_all_gates_are_open_needs_none_either(deliver):
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    with pytest.raises(DownstreamTasksSkipped):
        deliver({"rounds": 3, "ended": "over", "stopped": []}, Instance())


def test_a_run_of_follow_with_a_stopped_writer_lets_them_run(deliver):
    result = {"rounds": 3, "ended": "over", "stopped": ["archive"]}
    assert deliver(result, Instance()) == result


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"gate": {"reason": "id 3 is bad"}}, id="a gate that was closed before"),
        pytest.param({"gate": {"reason": "id 3 is bad"}, "stopped_now": True}, id="a gate that closes now"),
        pytest.param({"failure": "no host"}, id="a failure that closes no gate"),
    ],
)
def test_a_stopped_writer_lets_them_run(deliver, changes):
    result = {"end": 7, "writers": {"journal": OPEN, "archive": {**OPEN, **changes}}}
    assert deliver(result, Instance()) == result


@pytest.mark.parametrize(
    ("changed", "skipped"),
    [
        pytest.param([], ["check_gates", "find_changed"], id="nothing has changed"),
        pytest.param(["archive"], ["check_gates"], id="a writer has changed"),
        pytest.param(None, ["check_gates"], id="that could not be told"),
    ],
)
def test_rebuilds_are_started_unless_nothing_has_changed(deliver, changed, skipped):
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    with pytest.raises(DownstreamTasksSkipped) as found:
        deliver({"stopped": [], "changed": changed}, Instance(), ["find_changed"])
    assert found.value.tasks == skipped


def test_a_stopped_writer_and_a_changed_one_skip_nothing(deliver):
    result = {"stopped": ["archive"], "changed": ["archive"]}
    assert deliver(result, Instance(), ["find_changed"]) == result
