"""``tidemark journal verify``, ``diff`` and ``history``: what a person sees, without Cassandra and Spark."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
from tests.support.found_in_memory import FoundInMemory, given_delivered
from tests.support.journal_samples import TOPIC
from tests.support.verification_samples import diff, missing, side

pytestmark = pytest.mark.unit

TWO = """
name: orders
source:
  kafka: {topics: ["orders"]}
writers:
  - {name: journal, kind: journal}
  - {name: rebuilt, kind: journal, keyspace: rebuilt}
"""


@pytest.fixture
def house(installation, monkeypatch, capsys):
    """A journal with two entities, delivered, whose tables the commands read."""
    house = given_delivered("A1,2 j:A1", "D1")
    for name in ("KAFKA", "CASSANDRA"):
        extra = {"bootstrap.servers": "127.0.0.1:1"} if name == "KAFKA" else {}
        connection = {"conn_type": name.lower(), "host": "127.0.0.1", "extra": extra}
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}_DEFAULT", json.dumps(connection))
    (installation / "include" / "pipelines" / "orders.yaml").write_text(TWO)
    tables = FoundInMemory(house.journal)
    monkeypatch.setattr("tidemark.consensus.control_plane.look_at_control", lambda _: house.consensus)
    monkeypatch.setattr("tidemark.app.open_pipeline.OpenPipeline.log", house.log)
    monkeypatch.setattr("tidemark.journal_tables.reader.JournalReader.open", lambda *_: tables)
    capsys.readouterr()  # what the delivery had to say
    return house


def test_one_entity_that_is_as_the_log_says(run, house):
    ended = run("journal", "verify", "orders", "journal", "--entity", "k")
    assert (ended.code, ended.err) == (0, "")
    assert "orders/journal  1 entity: 1 as the log says; 1 pointer; up to id 2" in ended.out


def test_damage_is_exit_code_1_and_says_what_to_do(run, house):
    house.journal.journal.delete_partition(("k", TOPIC, 0), 10**18)
    ended = run("journal", "verify", "orders", "journal", "--entity", "k", "--entity", "j")
    assert ended.code == 1
    assert "event 2 is missing" in ended.out
    assert "Nothing is repaired in place" in ended.out
    shown = json.loads(run("journal", "verify", "orders", "journal", "--entity", "k", "--json").out)
    assert (shown["clean"], shown["differences"][0]["kind"]) == (False, "row missing")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["orders", "--entity", "k"],
            "orders: say which of its journals is meant; there is: journal, rebuilt.",
        ),
        (
            ["orders", "archive", "--entity", "k"],
            "orders: it has no journal archive; there is: journal, rebuilt.",
        ),
        (["orders", "journal", "--entity", "x"], "know an entity 'x'"),
        (
            ["orders", "journal", "--entity", "k", "--topic", "x"],
            "it has nothing of topic x; there is: orders.",
        ),
        (["orders", "rebuilt", "--entity", "k"], "it has delivered nothing yet"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, house, arguments, said):
    ended = run("journal", "verify", *arguments)
    assert ended.code == 1
    assert said in ended.err


def test_named_entities_are_not_drawn(run, house):
    assert run("journal", "verify", "orders", "journal", "--entity", "k", "--sample", "3").code == 2


def test_a_history_for_people(run, house):
    ended = run("journal", "history", "orders", "k", "--writer", "journal")
    assert ended.code == 0
    assert "orders: k  2 messages" in ended.out
    assert "append 1 to 2" in ended.out
    assert "Readers see 1 events of 2, deleted up to 1" in ended.out
    assert "Verified up to id 2: as the log says" in ended.out


def test_a_history_as_json_and_of_an_unknown_entity(run, house):
    (shown,) = json.loads(run("journal", "history", "orders", "k", "--writer", "journal", "--json").out)
    assert [step["action"] for step in shown["steps"]] == ["append 1 to 2", "delete to 1"]
    assert run("journal", "history", "orders", "x", "--writer", "journal").code == 1


@pytest.fixture
def compared(house, monkeypatch):
    """What comparing two keyspaces comes to, without Spark."""
    results = []

    @contextmanager
    def no_spark(opened, application) -> Iterator[None]:
        yield None

    monkeypatch.setattr("tidemark.cli.journal.verify.pipeline_spark", no_spark)
    monkeypatch.setattr("tidemark.spark.jobs.diff.diff_with_spark", lambda *_: results[0])
    return results


def test_a_switch_that_is_safe(run, compared):
    compared.append(diff(side("journal"), side("rebuilt")))
    ended = run("journal", "diff", "orders", "--keyspaces", "journal,rebuilt")
    assert (ended.code, "Readers may be switched to rebuilt." in ended.out) == (0, True)


def test_a_switch_that_is_not_safe(run, compared):
    compared.append(diff(side("journal"), side("rebuilt", 4), missing("k", 1)))
    ended = run("journal", "diff", "orders", "--keyspaces", "journal,rebuilt")
    assert ended.code == 1
    assert "Do not switch readers yet" in ended.out
    assert "event 1 is only in journal" in ended.out
    assert (
        json.loads(run("journal", "diff", "orders", "--keyspaces", "journal,rebuilt", "--json").out)["total"]
        == 1
    )


@pytest.mark.parametrize("keyspaces", ["journal", "journal,journal", "a,b,c", ",journal"])
def test_two_keyspaces_have_to_be_named(run, compared, keyspaces):
    assert run("journal", "diff", "orders", "--keyspaces", keyspaces).code == 2


def test_a_keyspace_that_no_writer_has(run, compared):
    ended = run("journal", "diff", "orders", "--keyspaces", "journal,other")
    assert (ended.code, "orders: it has no journal other; there is: journal, rebuilt." in ended.err) == (
        1,
        True,
    )


@pytest.mark.parametrize(
    ("connection", "engine"),
    [
        ({"host": "sc://localhost:15002", "password": "t"}, "sc://localhost:15002"),
        ({"host": "local[2]"}, None),
        ({"host": "spark://master:7077"}, None),
    ],
)
def test_whole_tables_are_read_on_the_pipelines_connect_server_or_in_this_process(
    house, monkeypatch, connection, engine
):
    from tidemark.cli.journal.verify import pipeline_spark
    from tidemark.cli.open_pipeline import open_pipeline

    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", **connection}))
    for name in ("SPARK_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.setenv(name, "kept")
    calls = []
    monkeypatch.setattr(
        "tidemark.spark.application.spark_session", lambda call: calls.append(call) or nullcontext()
    )
    with pipeline_spark(open_pipeline("orders"), "verify"):
        pass
    (call,) = calls
    assert call.connections.spark is None if engine is None else call.connections.spark.address == engine
