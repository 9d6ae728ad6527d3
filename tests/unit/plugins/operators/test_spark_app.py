"""Submitting an application: its arguments, its summary, its own error as the task's."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.unit


@pytest.fixture
def submit(monkeypatch):
    """Runs the operator with an application that writes this summary, and fails where it is told to."""
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
    from airflow.sdk.exceptions import AirflowException

    from tidemark.embedded.jars import class_archive, fetch
    from tidemark_airflow.operators.spark_app import SparkAppOperator

    monkeypatch.setattr(class_archive, "driver_java_options", lambda settings, messages: f"-Dn={messages}")
    jars = type("Jars", (), {"spark": [Path("/jars/one.jar"), Path("/jars/two.jar")]})
    monkeypatch.setattr(fetch, "ensure_jars", lambda settings, only: jars)
    monkeypatch.setattr(
        SparkAppOperator, "hand_over_connections", lambda self, path: path.write_text("secret")
    )

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


def test_a_package_that_is_not_installed_is_named():
    from tidemark_airflow.operators.spark_app import _package_folder

    assert _package_folder("tidemark").name == "tidemark"
    with pytest.raises(ModuleNotFoundError, match="no_such_package is not installed"):
        _package_folder("no_such_package")
