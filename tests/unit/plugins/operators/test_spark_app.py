"""An application's task: its arguments, its summary, its own error as the task's, on either engine."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.unit


@pytest.fixture
def submit(monkeypatch):
    """Runs the operator with an application that writes this summary, and fails where it is told to."""
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
    from airflow.sdk.exceptions import AirflowException

    from tidemark.connections import SparkConnection
    from tidemark.embedded.jars import class_archive, fetch
    from tidemark_airflow.operators.spark_app import SparkAppOperator

    monkeypatch.setattr(class_archive, "driver_java_options", lambda settings, messages: f"-Dn={messages}")
    jars = type("Jars", (), {"spark": [Path("/jars/one.jar"), Path("/jars/two.jar")]})
    monkeypatch.setattr(fetch, "ensure_jars", lambda settings, only: jars)
    monkeypatch.setattr(
        SparkAppOperator, "hand_over_connections", lambda self, path: path.write_text("secret")
    )

    local = SparkConnection(address="local[2]")
    monkeypatch.setattr(SparkAppOperator, "find_engine", lambda self: local)

    def run(summary: dict[str, Any] | None, fails: bool = False, **keys: Any) -> tuple[Any, Any]:
        operator = SparkAppOperator(task_id="app", pipeline="orders", app="deliver", **keys)
        seen: dict[str, Any] = {}

        def execute(self: Any, context: Any) -> None:
            given = dict(zip(self.application_args[::2], self.application_args[1::2], strict=True))
            seen.update(given, arguments=self.application_args, connections=given["--connections"])
            assert Path(given["--connections"]).read_text() == "secret"
            if summary is not None:
                Path(given["--summary"]).write_text(json.dumps(summary))
            if fails:
                raise AirflowException("Error code is: 1")

        monkeypatch.setattr(SparkSubmitOperator, "execute", execute)
        try:
            return operator, operator.execute({})
        finally:
            assert not Path(seen["connections"]).exists(), "secrets are removed when the task ends"

    return run


def test_the_summary_is_the_result(submit):
    operator, result = submit({"ok": True, "records": 3}, messages="120")
    assert result == {"ok": True, "records": 3}
    assert operator.application_args[:2] == ["--pipeline", "orders"]
    assert operator.jars == "/jars/one.jar,/jars/two.jar"
    assert operator.conf["spark.driver.extraJavaOptions"].startswith("-Dn=120 -Dlog4j2")


def test_the_error_of_the_application_is_the_error_of_the_task(submit):
    from tidemark_airflow.failures import ApplicationFailed

    with pytest.raises(ApplicationFailed, match="segment 7 is missing"):
        submit({"ok": False, "error": "segment 7 is missing"}, fails=True)


def test_an_error_that_needs_a_person_is_not_retried(submit):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="the topic was recreated"):
        submit({"ok": False, "error": "the topic was recreated", "needs_person": True}, fails=True)


def test_an_application_that_wrote_no_summary_fails_with_sparks_own_words(submit):
    from tidemark_airflow.failures import ApplicationFailed

    with pytest.raises(ApplicationFailed, match="Error code is: 1"):
        submit(None, fails=True)


def test_an_application_of_spark_submit_may_finish_before_airflow_kills_it(submit, monkeypatch):
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    from tidemark_airflow.operators import spark_app

    order = []
    monkeypatch.setattr(spark_app, "end_application", lambda mark, pid: order.append((Path(mark).name, pid)))
    monkeypatch.setattr(SparkSubmitOperator, "on_kill", lambda self: order.append("killed"))
    operator, _ = submit({"ok": True})
    operator._hook = SimpleNamespace(_submit_sp=SimpleNamespace(pid=77))
    operator.on_kill()
    assert order == [("summary.json", 77), "killed"]


def test_a_package_that_is_not_installed_is_named():
    from tidemark_airflow.operators.spark_app import _package_folder

    assert _package_folder("tidemark").name == "tidemark"
    with pytest.raises(ModuleNotFoundError, match="no_such_package is not installed"):
        _package_folder("no_such_package")


APPLICATION = """
import json, sys
from pathlib import Path

def main(argv):
    given = dict(zip(argv[::2], argv[1::2]))
    assert Path(given["--connections"]).read_text() == "secret"
    print("to the output")
    print("to the errors", file=sys.stderr)
    {body}
    Path(given["--summary"]).write_text(json.dumps(outcome))
    return 0 if outcome["ok"] else 1
"""


@pytest.fixture
def run_here(monkeypatch, tmp_path):
    """Runs an application, of which the test gives what it does, as a task with a Connect server."""
    from tidemark.connections import SparkConnection
    from tidemark_airflow.operators.spark_app import SparkAppOperator

    connect = SparkConnection(address="sc://localhost:15002")
    monkeypatch.setattr(SparkAppOperator, "find_engine", lambda self: connect)
    monkeypatch.setattr(
        SparkAppOperator, "hand_over_connections", lambda self, path: path.write_text("secret")
    )

    def run(body: str) -> Any:
        operator = SparkAppOperator(task_id="app", pipeline="orders", app="deliver")
        (tmp_path / "deliver.py").write_text(APPLICATION.format(body=body))
        operator.application = str(tmp_path / "deliver.py")
        return operator.execute({})

    return run


def test_with_a_connect_server_the_application_runs_in_the_task_s_process(run_here):
    result = run_here("import os; outcome = {'ok': True, 'pid': os.getpid()}")
    assert result == {"ok": True, "pid": os.getpid()}


def test_what_it_writes_is_output_and_not_shown_as_errors(run_here, capsys):
    run_here("outcome = {'ok': True}")
    written = capsys.readouterr()
    assert "to the output\nto the errors\n" in written.out
    assert "to the errors" not in written.err


def test_its_error_is_the_error_of_the_task_too(run_here):
    from tidemark_airflow.failures import ApplicationFailed

    with pytest.raises(ApplicationFailed, match="segment 7 is missing"):
        run_here("outcome = {'ok': False, 'error': 'segment 7 is missing'}")


def test_its_error_that_needs_a_person_is_not_retried_either(run_here):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="refuses the token"):
        run_here("outcome = {'ok': False, 'error': 'refuses the token', 'needs_person': True}")


def test_a_killed_task_cancels_its_operations_and_ends(run_here, monkeypatch):
    """Airflow's handler of SIGTERM calls ``on_kill`` wherever the task is at that moment."""
    from tidemark.spark import engine
    from tidemark_airflow.failures import ApplicationFailed

    cancelled = []
    monkeypatch.setattr(engine, "interrupt_open_sessions", lambda: cancelled.append(True))
    kill = (
        "import gc; from tidemark_airflow.operators.spark_app import SparkAppOperator as Task; "
        "next(one for one in gc.get_objects() if type(one) is Task and one._runs_here).on_kill()"
    )
    with pytest.raises(ApplicationFailed, match="The task was stopped"):
        run_here(kill)
    assert cancelled == [True]


def test_the_engine_is_the_one_of_the_task_s_connection(monkeypatch):
    from tidemark_airflow.operators import spark_app

    known = {"mine": {"host": "sc://localhost:1234", "password": "t"}}
    monkeypatch.setattr(spark_app, "look_up", known.__getitem__)
    operator = spark_app.SparkAppOperator(task_id="a", pipeline="orders", app="deliver", conn_id="mine")
    assert operator.find_engine().endpoint == ("localhost", 1234)
