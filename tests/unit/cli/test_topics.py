"""``tidemark topics create``: what it makes, and what it refuses (item 23)."""

import json

import pytest

from tidemark.kafka.topic_shape import FOREVER, CreationOutcome, TopicFound, TopicOutcome, TopicShape
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit

DECLARED = """
name: shop
source:
  kafka: {topics: [sales], topic_prefixes: ["eu."], create: {partitions: 6, retention: 14d}}
writers:
  - {name: copy, kind: kafka, topic: copied, create: {partitions: 2, retention: forever}}
  - {name: archive, kind: files, path: "${TIDEMARK_HOME}/sold"}
"""
DAY = 86_400_000


@pytest.fixture
def wanted(installation, control, monkeypatch):
    """What Kafka was asked for, by topic; ``existing`` has what is there already."""
    (installation / "include/pipelines/shop.yaml").write_text(DECLARED)
    asked = {}

    def create(pipeline, connection, topics):
        asked.update(topics)
        return [
            TopicOutcome(
                name, CreationOutcome.CREATED, TopicFound(name, shape.partitions or 1, 1, DAY, "delete")
            )
            for name, shape in topics.items()
        ]

    monkeypatch.setattr("tidemark.app.topics.create_topics", create)
    monkeypatch.setattr(
        "tidemark.app.topics.missing_topics", lambda pipeline, connection, topics: list(topics)
    )
    return asked


def given_read(control: LogControl, topic: str) -> None:
    shop = LogControl(control._consensus, "shop")
    shop.start_from(shop.bindings_head(), {(topic, 0): 7})


def test_i23_the_topics_of_the_source_are_created_as_the_file_says(run, wanted):
    ended = run("topics", "create", "shop")
    assert (ended.code, ended.err) == (0, "")
    assert wanted == {"sales": TopicShape(6, None, 14 * DAY)}
    assert ended.out == "sales: created: 6 partitions, 1 copy, records for 1d\n"


def test_options_go_before_the_file(run, wanted):
    run("topics", "create", "shop", "--partitions", "12", "--replication", "3", "--retention", "forever")
    assert wanted == {"sales": TopicShape(12, 3, FOREVER)}


def test_a_topic_that_a_prefix_matches_is_created_by_name(run, wanted):
    assert run("topics", "create", "shop", "--topic", "eu.sales").code == 0
    assert list(wanted) == ["eu.sales"]


def test_a_kafka_writer_s_topic_is_created_as_its_own_keys_say(run, wanted):
    assert run("topics", "create", "shop", "copy").code == 0
    assert wanted == {"copied": TopicShape(2, None, FOREVER)}


def test_the_outcome_is_there_as_json(run, wanted):
    shown = json.loads(run("topics", "create", "shop", "--json").out)
    assert shown == {
        "pipeline": "shop",
        "topics": [
            {
                "topic": "sales",
                "outcome": "created",
                "problem": None,
                "partitions": 6,
                "replication": 1,
                "retention_ms": DAY,
                "cleanup_policy": "delete",
                "timestamps": "CreateTime",
            }
        ],
    }


def test_a_topic_that_is_not_as_wanted_ends_with_1_and_a_sentence(run, wanted, monkeypatch):
    outcome = TopicOutcome("sales", CreationOutcome.EXISTS, None, "It has 3 partitions instead of 6.")
    monkeypatch.setattr("tidemark.app.topics.create_topics", lambda *_: [outcome])
    ended = run("topics", "create", "shop")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "sales: exists. It has 3 partitions instead of 6.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shop", "--topic", "us.sales"], "shop: it does not read topic us.sales, but sales, eu.…."),
        (["shop", "archive"], "shop: archive is no writer of kind kafka; there is: copy."),
        (["shop", "copy", "--topic", "sales"], "shop: writer copy sends to copied, not to sales."),
        (["shops"], "There is no pipeline `shops`."),
        (["shop", "--retention", "7"], "is not a duration"),
        (["shop", "--retention", "0s"], "would keep no record"),
        (["shop", "--partitions", "0"], "--partitions"),
    ],
)
def test_what_cannot_be_created_is_refused_and_nothing_is(run, wanted, arguments, said):
    ended = run("topics", "create", *arguments)
    assert ended.code != 0
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert wanted == {}


def test_prefixes_alone_name_no_topic_to_create(run, wanted, installation):
    file = installation / "include/pipelines/shop.yaml"
    file.write_text(DECLARED.replace("topics: [sales], ", ""))
    ended = run("topics", "create", "shop")
    assert (ended.code, wanted) == (1, {})
    assert "it reads every topic that begins with eu.. Name one: --topic eu.…" in ended.err


def test_a_topic_that_was_read_before_is_made_again_only_when_that_is_asked_for(run, wanted, control):
    given_read(control, "sales")

    ended = run("topics", "create", "shop")

    assert (ended.code, wanted) == (1, {})
    assert ended.err.startswith(
        "shop: topic sales is gone, and this pipeline has read it. Nothing was created"
    )
    assert run("topics", "create", "shop", "--again").code == 0
    assert list(wanted) == ["sales"]


@pytest.mark.parametrize("key", ["cleanup.policy", "cleanup_policy"])
def test_a_file_cannot_ask_for_a_compacted_topic(run, installation, wanted, key):
    text = DECLARED.replace("retention: 14d", f"{key}: compact")
    (installation / "include/pipelines/shop.yaml").write_text(text)
    ended = run("topics", "create", "shop")
    assert ended.code == 1
    assert "Topics are created with cleanup.policy=delete" in ended.err


def test_a_kafka_that_does_not_answer_is_one_sentence(run, installation, control, closed_port, monkeypatch):
    (installation / "include/pipelines/shop.yaml").write_text(DECLARED)
    connection = {"extra": {"bootstrap.servers": f"127.0.0.1:{closed_port}"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    monkeypatch.setattr("tidemark.kafka.admin.BOOTSTRAP_MS", 100)
    ended = run("topics", "create", "shop")
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert f"shop: Kafka at 127.0.0.1:{closed_port} did not answer (" in ended.err
