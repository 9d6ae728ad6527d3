"""What every application has in common: arguments in, a summary out, whatever happens."""

import argparse
import json
from pathlib import Path

import pytest

from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.errors import TidemarkError
from tidemark.journal.errors import Undecodable
from tidemark.log.errors import BadBinding
from tidemark.log.expectations import BadSuite
from tidemark.spark.application import Job, run_job

pytestmark = pytest.mark.spark

SECRET = "hunter2-marker"
ORDERS = """
name: orders
source:
  kafka: {topics: ["orders"]}
writers:
  - {name: archive, kind: files, path: "${TIDEMARK_HOME}/archive"}
"""


@pytest.fixture
def arguments(tmp_path, monkeypatch) -> list[str]:
    """The arguments of an application in an installation of its own."""
    folder = tmp_path / "include" / "pipelines"
    folder.mkdir(parents=True)
    (folder / "orders.yaml").write_text(ORDERS)
    monkeypatch.setenv("TIDEMARK_ROOT", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TIDEMARK_PIPELINES", raising=False)
    Connections(
        kafka=KafkaConnection(servers="broker:9092", sasl_password=SECRET),
        cassandra={"cassandra_default": CassandraConnection(hosts=("db",))},
    ).write(tmp_path / "connections.json")
    return [
        *("--pipeline", "orders"),
        *("--connections", str(tmp_path / "connections.json")),
        *("--summary", str(tmp_path / "summary.json")),
    ]


@pytest.fixture
def summary(tmp_path) -> Path:
    return tmp_path / "summary.json"


def run(arguments: list[str], work) -> int:
    """The exit code an application would end with."""
    parser = argparse.ArgumentParser(prog="capture")
    parser.add_argument("--t", type=int, default=7)
    try:
        return run_job(parser, arguments, work)
    except SystemExit as leaving:
        return int(leaving.code or 0)


def failing(error: Exception):
    def work(job: Job) -> dict[str, object]:
        raise error

    return work


def outcome(summary: Path) -> dict[str, object]:
    """The summary without the time it took."""
    whole = json.loads(summary.read_text())
    assert whole.pop("seconds") >= 0
    return whole


def test_the_work_gets_pipeline_connections_and_arguments(arguments):
    jobs = []
    run([*arguments, "--t", "12"], lambda job: jobs.append(job) or {})
    (job,) = jobs
    assert (job.application, job.pipeline.name, job.arguments.t) == ("capture", "orders", 12)
    assert job.connections.kafka.sasl_password.get_secret_value() == SECRET


def test_a_success_is_summed_up(arguments, summary):
    assert run(arguments, lambda job: {"records": 3}) == 0
    assert outcome(summary) == {"ok": True, "records": 3}


@pytest.mark.parametrize(
    "error",
    [
        TidemarkError("Do it again."),
        BadBinding("orders: t=1 does not follow."),
        Undecodable("not JSON", 0, 7, 12),
    ],
)
def test_an_error_for_a_person_is_summed_up_in_its_words(arguments, summary, error):
    assert run(arguments, failing(error)) == 1
    assert outcome(summary) == {
        "ok": False,
        "error": str(error),
        "kind": type(error).__name__,
        "needs_person": False,
    }


def test_an_error_that_nothing_but_a_person_can_put_right_says_so(arguments, summary):
    assert run(arguments, failing(BadSuite(Path("strict.yaml"), "there is no such file."))) == 1
    assert outcome(summary)["needs_person"] is True


def test_an_error_for_a_person_has_no_traceback(arguments, capsys):
    run(arguments, failing(TidemarkError("Do it again.")))
    assert "Traceback" not in "".join(capsys.readouterr())


def test_a_defect_is_summed_up_with_its_kind(arguments, summary):
    assert run(arguments, failing(KeyError("x"))) == 1
    assert outcome(summary) == {"ok": False, "error": "KeyError: 'x'", "kind": "KeyError"}


def test_a_defect_keeps_its_traceback(arguments, capsys):
    run(arguments, failing(KeyError("x")))
    assert "Traceback" in capsys.readouterr().err


def test_an_unknown_pipeline_is_summed_up(arguments, summary):
    arguments[1] = "ordres"
    assert run(arguments, lambda job: {}) == 1
    assert outcome(summary)["kind"] == "UnknownPipeline"


def test_connections_that_are_missing_are_summed_up(arguments, summary, tmp_path):
    (tmp_path / "connections.json").unlink()
    assert run(arguments, lambda job: {}) == 1
    assert outcome(summary)["ok"] is False


def test_connections_that_are_torn_do_not_come_to_light(arguments, summary, tmp_path, capsys):
    text = (tmp_path / "connections.json").read_text()
    (tmp_path / "connections.json").write_text(text[: text.index(SECRET) + len(SECRET)])
    assert run(arguments, lambda job: {}) == 1
    assert SECRET not in summary.read_text() + "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(["--t", "seven"], id="not a number"),
        pytest.param(["--nonsense"], id="unknown"),
    ],
)
def test_bad_arguments_are_summed_up(arguments, summary, wrong):
    assert run([*arguments, *wrong], lambda job: {}) != 0
    assert outcome(summary)["ok"] is False


def test_a_missing_argument_is_summed_up(arguments, summary):
    assert run(arguments[2:], lambda job: {}) != 0
    assert outcome(summary)["ok"] is False


def test_without_a_summary_s_path_the_outcome_is_still_printed(arguments, capsys):
    assert run(arguments[:4], lambda job: {"records": 3}) == 0
    printed = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (printed["ok"], printed["records"]) == (True, 3)
