"""A rebuild by the commands of docs/renditions.md on real Kafka and Cassandra, and the ends of other kinds.

In this ring because tables are dropped, topics are created and deleted, and readers ask Cassandra.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from kafka import KafkaProducer
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import send
from tests.support.services.log_runs import Ended, LogRuns, publish_here
from tests.support.services.page_commands import page_commands

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.renditions.hand_over import NEXT_OFFSETS
from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.kafka.topic_creation import missing_topics
from tidemark.outputs.model.output import Output
from tidemark.outputs.state.output_store import OutputStore
from tidemark.settings import ROOT

pytestmark = pytest.mark.system

PAGE = ROOT / "docs" / "renditions.md"
REASON = ("--execute", "--reason", "a test", "--by", "ann")


class Bank:
    """A pipeline with a file of the test's own, a person's terminal, and what is in Cassandra."""

    def __init__(self, services: Any, name: str, root: Path) -> None:
        self.services, self.name, self.root, self.count = services, name, root, 0
        kafka, cassandra = services.kafka, {"cassandra_default": services.cassandra}
        connections = Connections(
            kafka=kafka, cassandra=cassandra, kafka_targets={"kafka_default": services.kafka}
        )
        self.runs = LogRuns(name, root, connections)

    def declare(self, *writers: dict[str, Any], format: str = "json") -> None:
        """Write the pipeline's file."""
        pipeline = {
            "name": self.name,
            "source": {"kafka": {"topics": [self.name], "format": format}},
            "schedule": None,
            "log": {"path": f"{self.root}/log/{self.name}"},
            "writers": list(writers),
        }
        (self.root / "pipelines").mkdir(exist_ok=True)
        (self.root / "pipelines" / f"{self.name}.yaml").write_text(yaml.safe_dump(pipeline))

    def send(self, **owners: str) -> None:
        """Send accounts by their owners, publish them, and deliver them."""
        with KafkaProducer(**self.services.kafka.client_options()) as producer:
            for id_, owner in owners.items():
                value = json.dumps({"owner": owner, "balance": 7}).encode()
                producer.send(self.name, key=id_.encode(), value=value)
        self.publish()

    def publish(self) -> None:
        self.count += 1
        publish_here(self.runs, f"run-{self.count}")
        for writer in self.runs.pipeline.writers:
            assert self.runs.step("deliver", writer.name).code == 0

    def run(self, *arguments: str) -> Ended:
        """A command that has to succeed."""
        ended = self.runs.command(*arguments)
        assert ended.code == 0, (arguments, ended)
        return ended

    def output(self, writer: str) -> Output:
        opened = OpenPipeline(self.runs.pipeline, self.runs.connections)
        return OutputStore(opened.consensus, self.name, writer).require()

    def states(self, writer: str) -> dict[int, str]:
        return {one.number: one.state.value for one in self.output(writer).renditions}

    @property
    def tables(self) -> set[str]:
        rows = connect(self.services.cassandra).execute(
            "SELECT keyspace_name, table_name FROM system_schema.tables"
        )
        return {
            f"{row.keyspace_name}.{row.table_name}".replace(self.name, "bank")
            for row in rows
            if row.keyspace_name.startswith(self.name) and row.table_name != "locks"
        }

    def owners(self, table: str) -> set[str]:
        """The owners of all accounts as they are now."""
        rows = connect(self.services.cassandra).execute(
            f"SELECT owner, gone FROM {self.name}.{table} PER PARTITION LIMIT 1"
        )
        return {row.owner for row in rows if not row.gone}


@pytest.fixture
def bank(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bank]:
    name = f"bank_{uuid4().hex[:8]}"
    monkeypatch.setenv("TIDEMARK_PIPELINES", str(tmp_path / "pipelines"))
    yield Bank(services, name, tmp_path)
    for keyspace in (name, f"{name}_r2"):
        connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)


def writers_of_the_page(bank: Bank) -> list[dict[str, Any]]:
    """The writer before and after the correction, as the page has it, with a keyspace of the test's own."""
    blocks = re.findall(r"^( *)```yaml\n(.*?)^ *```$", PAGE.read_text(), re.M | re.S)
    declared = [yaml.safe_load(body)["writers"][0] for _, body in blocks[:2]]
    return [{**one, "keyspace": bank.name} for one in declared]


def test_the_page_is_followed_step_by_step(bank: Bank) -> None:
    # Given: accounts, with one that should not be there, and a corrected file.
    before, after = writers_of_the_page(bank)
    bank.services.create_topic(bank.name, partitions=2)
    bank.declare(before)
    bank.send(a="ann", b="bob", c="carol")
    bank.declare(after)

    # When: the commands of the page are run in their order, with deliveries in between.
    done = []
    for command in page_commands(PAGE):
        words = [bank.name if word == "bank" else word for word in shlex.split(command)]
        done.append((command, bank.run(*words[1:]).out))
        if "verify" in command:
            bank.send(d="ann", e="carol")
    shown = dict(done)

    # Then: each did what the page says, and nothing of the earlier rendition is left.
    report = shown["tidemark renditions verify bank accounts"]
    assert "1 explained by missing rows where owner == carol (carol is a test account)" in report
    (build,) = [out for command, out in done if command == "tidemark renditions build bank accounts"]
    assert "settings: transforms was" in build
    assert "3 messages in 1 bindings" in build
    assert bank.states("accounts") == {1: "dropped", 2: "active"}
    assert [one.rendition for one in bank.output("accounts").handovers] == [1, 2, 1, 2]
    assert bank.tables == {"bank.accounts_r2", "bank.accounts_r2_changes"}
    assert bank.owners("accounts_r2") == {"ann", "bob"}

    # And: the next rendition of the same settings is the same, and is given up.
    bank.send(f="bob")
    assert "those of the active rendition 2" in bank.run("renditions", "build", bank.name, "accounts").out
    bank.run("renditions", "build", bank.name, "accounts", *REASON)
    assert "the same" in bank.run("renditions", "verify", bank.name, "accounts", "--mode", "exact").out
    bank.run("renditions", "abandon", bank.name, "accounts", "3", *REASON)
    bank.run("renditions", "retire", bank.name, "accounts", "3", *REASON)
    assert bank.states("accounts") == {1: "dropped", 2: "active", 3: "dropped"}
    assert bank.tables == {"bank.accounts_r2", "bank.accounts_r2_changes"}


def test_a_journal_and_a_topic_are_rebuilt_and_leave_what_was_not_asked_for(bank: Bank) -> None:
    # Given: a journal and a copy of its messages.
    bank.services.create_topic(bank.name, partitions=3)
    bank.services.create_topic(f"{bank.name}-copy", partitions=2)
    journal = {"name": "tables", "kind": "journal", "keyspace": bank.name}
    copy = {"name": "copy", "kind": "kafka", "topic": f"{bank.name}-copy"}
    bank.declare(journal, copy, format="kafka-journal")
    send(bank.runs.connections, bank.name, History(7, 10).go_on(50))
    bank.publish()

    # When: both are rebuilt, and readers are handed over.
    for writer in ("tables", "copy"):
        bank.run("renditions", "build", bank.name, writer, *REASON)
        assert "the same" in bank.run("renditions", "verify", bank.name, writer).out
        bank.run("renditions", "handover", bank.name, writer, *REASON)
        assert bank.states(writer) == {1: "superseded", 2: "active"}
    offsets = bank.output("copy").handovers[-1].details[NEXT_OFFSETS]
    assert sum(offsets["2"].values()) == sum(offsets["1"].values()) > 0

    # Then: retiring the earlier ones leaves tables and topic until their removal is asked for.
    there = {f"bank.{table}" for table in ("journal", "metajournal", "pointer2", "setting")}
    for writer in ("tables", "copy"):
        bank.run("renditions", "retire", bank.name, writer, "1", *REASON)
        assert bank.states(writer) == {1: "dropped", 2: "active"}
    assert there <= bank.tables
    for writer, option in (("tables", "--drop-tables"), ("copy", "--drop-topic")):
        bank.run("renditions", "retire", bank.name, writer, "1", option, *REASON)
    assert not there & bank.tables
    topics = [f"{bank.name}-copy", f"{bank.name}-copy.r2"]
    assert missing_topics(bank.name, bank.services.kafka, topics) == topics[:1]
