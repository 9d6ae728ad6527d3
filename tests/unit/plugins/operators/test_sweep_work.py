"""The sweep task: its arguments, its connections, refused files."""

import json
from types import SimpleNamespace

import pytest
from tests.support.airflow_context import given_context

pytestmark = pytest.mark.unit

JOURNALS = ["one/work/pages", "two/work/mails"]


@pytest.fixture
def sweep(monkeypatch):
    """Runs the task; what it submitted and returned."""
    from tidemark.work import loader
    from tidemark_airflow.operators.spark_app import SparkAppOperator
    from tidemark_airflow.operators.sweep_work import SweepWorkOperator

    monkeypatch.setattr(SparkAppOperator, "execute", lambda self, context: {"ok": True})

    def run(run_type, refused=(), **params):
        monkeypatch.setattr(loader, "load_journals", lambda: SimpleNamespace(refused=list(refused)))
        task = SweepWorkOperator(task_id="sweep", journals=JOURNALS)
        result = task.execute(given_context(run_type, **{"journal": None, "dry_run": True, **params}))
        return task.application_args, result

    return run


@pytest.mark.parametrize(
    ("run_type", "params", "dry"),
    [("manual", {}, True), ("manual", {"dry_run": False}, False), ("scheduled", {}, False)],
)
def test_every_journal_is_swept_and_only_by_hand_dry(sweep, run_type, params, dry):
    arguments, result = sweep(run_type, **params)
    assert arguments[:4] == ["--journal", JOURNALS[0], "--journal", JOURNALS[1]]
    assert (arguments[4:], result) == (["--dry-run"] if dry else [], {"ok": True})


def test_a_refused_file_fails_after_the_others_were_swept(sweep):
    from tidemark_airflow.failures import ApplicationFailed

    with pytest.raises(ApplicationFailed, match=r"pages\.yaml: no key"):
        sweep("scheduled", refused=["pages.yaml: no key"])


def test_a_sweep_of_one_journal_is_not_about_other_files(sweep):
    assert sweep("manual", refused=["pages.yaml: no key"], journal="mails")[1] == {"ok": True}


def test_a_connection_that_cannot_be_read_is_left_out(monkeypatch, tmp_path):
    from tidemark_airflow.operators import spark_app, sweep_work

    def look_up(name):
        if name == "two":
            raise KeyError("The connection two is not defined")
        return {"host": "localhost", "port": 9042}

    monkeypatch.setattr(sweep_work, "look_up", look_up)
    monkeypatch.setattr(spark_app, "look_up", lambda name: {"host": "sc://localhost:1234"})
    task = sweep_work.SweepWorkOperator(task_id="sweep", journals=JOURNALS)
    task.hand_over_connections(tmp_path / "connections.json")
    written = json.loads((tmp_path / "connections.json").read_text())
    assert list(written["cassandra"]) == ["one"]
    assert written["spark"]["address"] == "sc://localhost:1234"
