"""Which journal is meant: by a pipeline's file, or by hand."""

import json
from pathlib import Path

import pytest

from tidemark.client.errors import NotAJournal
from tidemark.client.journal import Journal
from tidemark.client.settings import settings_of
from tidemark.connections import BadConnection, CassandraConnection, KafkaConnection

pytestmark = pytest.mark.unit

KAFKA = {"extra": {"bootstrap.servers": "broker:9092"}}
CASSANDRA = {"host": "node", "port": 9043}


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Declares the pipeline ``p``."""
    folder = tmp_path / "include" / "pipelines"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TIDEMARK_ROOT", str(tmp_path))
    monkeypatch.delenv("TIDEMARK_PIPELINES", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(KAFKA))
    monkeypatch.setenv("AIRFLOW_CONN_CASSANDRA_DEFAULT", json.dumps(CASSANDRA))

    def declare(source: str, *writers: str) -> None:
        lines = "".join(f"  - {{{writer}}}\n" for writer in writers)
        (folder / "p.yaml").write_text(f"name: p\nsource:\n  kafka: {{{source}}}\nwriters:\n{lines}")

    return declare


JOURNAL = "name: cassandra, kind: journal, keyspace: ours"
FILES = 'name: archive, kind: files, path: "/tmp/nowhere"'


def test_a_pipelines_journal(declare) -> None:
    declare('topics: ["t"], isolation: read_uncommitted', JOURNAL, FILES)
    settings = settings_of("p", None, None, None)
    assert (settings.topic, settings.declared.keyspace, settings.isolation) == (
        "t",
        "ours",
        "read_uncommitted",
    )
    assert (settings.kafka.servers, settings.cassandra.hosts, settings.cassandra.port) == (
        "broker:9092",
        ("node",),
        9043,
    )
    with Journal.of_pipeline("p") as journal:
        assert journal.topic == "t"


def test_connections_may_come_from_anywhere(declare) -> None:
    declare('topics: ["t"], connection: mine', JOURNAL)
    known = {"mine": {"extra": {"bootstrap.servers": "elsewhere:1"}}, "cassandra_default": CASSANDRA}
    assert settings_of("p", None, None, known.__getitem__).kafka.servers == "elsewhere:1"
    with pytest.raises(BadConnection, match="AIRFLOW_CONN_MINE"):
        settings_of("p", None, None, None)


def test_one_of_several_topics_and_journals(declare) -> None:
    declare(
        'topics: ["t"], topic_prefixes: ["eu."]',
        "name: a, kind: journal, keyspace: a, namespaces: ^t$",
        "name: b, kind: journal, keyspace: b",
    )
    assert settings_of("p", "eu.x", None, None).declared.name == "b"
    assert settings_of("p", "t", "a", None).declared.keyspace == "a"


@pytest.mark.parametrize(
    ("source", "writers", "asked", "said"),
    [
        ('topics: ["t", "u"]', [JOURNAL], (None, None), "name one of them: t, u"),
        ('topic_prefixes: ["eu."]', [JOURNAL], (None, None), "name one of them: eu.…"),
        ('topics: ["t"]', [JOURNAL], ("u", None), "does not read topic u; it reads: t"),
        ('topics: ["t"]', [FILES], (None, None), "none of its writers puts topic t into a journal"),
        ('topics: ["t"]', [JOURNAL], (None, "archive"), "no writer archive .* but: cassandra"),
        (
            'topics: ["t"]',
            [JOURNAL, "name: new, kind: journal, keyspace: new"],
            (None, None),
            "name the writer of one: cassandra, new",
        ),
        ('topics: ["t"], format: raw', [FILES], (None, None), "format `raw`, not `kafka-journal`"),
    ],
)
def test_a_pipeline_that_does_not_say_which(declare, source, writers, asked, said) -> None:
    declare(source, *writers)
    with pytest.raises(NotAJournal, match=said):
        settings_of("p", *asked, None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keyspace": "Journal"}, "keyspace: .* Did you mean `journal`"),
        ({"tables": {"journal": "x", "pointer2": "x"}}, "tables"),
        ({"tables": {"jurnal": "x"}}, "tables.jurnal"),
        ({"consistency": "SOME"}, "consistency"),
    ],
)
def test_a_keyspace_that_no_pipeline_could_declare(options, said: str) -> None:
    connections = {
        "kafka": KafkaConnection(servers="broker:1"),
        "cassandra": CassandraConnection(hosts=("node",)),
    }
    with pytest.raises(NotAJournal, match=said):
        Journal("t", **connections, **options)
