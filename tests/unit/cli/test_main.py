"""``tidemark``: what it prints, where, and with which exit code it ends."""

import json

import pytest

from tidemark.delivery.state.known_pipelines import NotKnown
from tidemark.journal.errors import Undecodable
from tidemark.log.errors import FileMissing

pytestmark = pytest.mark.unit


def no_traceback(text: str) -> bool:
    return "Traceback" not in text


# pipelines


def test_pipelines_lists_topics_schedule_and_writers(run):
    ended = run("pipelines")
    assert ended.code == 0
    header, line = (line.split() for line in ended.out.splitlines())
    assert header == ["pipeline", "topics", "schedule", "writers"]
    assert " ".join(line) == "orders orders, refunds, eu.… */5 * * * * cassandra (journal), archive (files)"


def test_pipelines_as_json_has_the_whole_declaration(run, installation):
    ended = run("pipelines", "--json")
    (orders,) = json.loads(ended.out)["pipelines"]
    assert (ended.code, ended.err) == (0, "")
    assert (orders["name"], orders["schedule"]) == ("orders", "*/5 * * * *")
    assert [writer["name"] for writer in orders["writers"]] == ["cassandra", "archive"]
    assert orders["log"]["path"] == f"{installation}/.tidemark/log/orders"


def test_a_refused_file_is_reported_beside_the_others_and_ends_with_1(run, installation):
    (installation / "include/pipelines/broken.yaml").write_text("name: broken\n")
    ended = run("pipelines")
    assert ended.code == 1
    assert "orders" in ended.out
    assert f"{installation}/include/pipelines/broken.yaml" in ended.err


def test_a_refused_file_is_in_the_json_too(run, installation):
    (installation / "include/pipelines/broken.yaml").write_text("name: broken\n")
    ended = run("pipelines", "--json")
    whole = json.loads(ended.out)
    assert ended.code == 1
    assert [pipeline["name"] for pipeline in whole["pipelines"]] == ["orders"]
    assert "broken.yaml" in whole["refused"][0]


def test_an_installation_without_pipelines_is_no_error(run, installation):
    (installation / "include/pipelines/orders.yaml").unlink()
    ended = run("pipelines", "--json")
    listed = json.loads(ended.out)
    assert (ended.code, listed["pipelines"], listed["refused"]) == (0, [], [])


# status


def test_an_unknown_pipeline_is_one_sentence(run):
    ended = run("status", "ordres")
    assert ended.code == 1
    assert ended.err == ("There is no pipeline `ordres`. Did you mean `orders`? Known pipelines: orders.\n")
    assert ended.out == ""


def test_a_connection_that_is_not_known_is_one_sentence(run):
    ended = run("status", "orders")
    assert ended.code == 1
    assert ended.err == (
        "Connection kafka_default: is not known here. Set AIRFLOW_CONN_KAFKA_DEFAULT, or start the embedded "
        "services with: tidemark services up\n"
    )


@pytest.mark.parametrize("arguments", [("status", "orders"), ("status",), ("status", "orders", "--json")])
def test_a_cassandra_that_does_not_answer_is_one_sentence(run, monkeypatch, closed_port, arguments):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", '{"extra": {"bootstrap.servers": "127.0.0.1:1"}}')
    monkeypatch.setenv("AIRFLOW_CONN_CASSANDRA_DEFAULT", f"cassandra://127.0.0.1:{closed_port}")
    ended = run(*arguments)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"Cassandra does not answer at 127.0.0.1:{closed_port} (")
    assert ended.err.endswith("or correct the connection.\n")
    assert ended.err.count("\n") == 1


def test_a_broken_connection_is_one_sentence_without_its_secret(run, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", '{"password": "hunter2-marker"')
    ended = run("status", "orders")
    assert (ended.code, ended.err) == (
        1,
        "Connection kafka_default: AIRFLOW_CONN_KAFKA_DEFAULT is not valid JSON.\n",
    )


def test_a_bad_port_is_one_sentence(run, monkeypatch):
    monkeypatch.setenv("TIDEMARK_KAFKA_PORT", "kafka")
    ended = run("pipelines")
    assert (ended.code, ended.err) == (
        1,
        "TIDEMARK_KAFKA_PORT is 'kafka', but must be a port number from 1 to 65535. "
        "Change or unset it and try again.\n",
    )


# Misspelled


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("nonsense",), "nonsense", id="command"),
        pytest.param(("pipelines", "--jsn"), "--jsn", id="option"),
        pytest.param(("status", "orders", "invoices"), "invoices", id="argument too many"),
        pytest.param(("services", "nonsense"), "nonsense", id="command of a group"),
    ],
)
def test_what_is_misspelled_ends_with_2_and_says_what(run, arguments, said):
    ended = run(*arguments)
    assert ended.code == 2
    assert said in ended.err
    assert no_traceback(ended.err)


def test_help_names_every_command(run):
    ended = run("--help")
    assert ended.code == 0
    assert all(command in ended.out for command in ("pipelines", "status", "services"))


@pytest.mark.parametrize(
    "error",
    [FileMissing("orders", "0.parquet"), Undecodable("not JSON", 0, 7, 12), NotKnown("ordres", ())],
)
def test_an_error_of_any_family_is_printed_and_ends_with_1(run, monkeypatch, error):
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr("tidemark.cli.main.app", fail)
    ended = run("pipelines")
    assert (ended.code, ended.err) == (1, f"{error}\n")
