"""From Kafka through the log to the tables of a collection, on real services."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaProducer
from tests.support.services.log_runs import LogRuns, declare_log, publish_here

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cassandra.session import connect
from tidemark.collection.tables.changes import digest_of_stored
from tidemark.collection.tables.reading import CollectionReader
from tidemark.collection.tables.tables import CollectionTables
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterState
from tidemark.faults import FaultPoint
from tidemark.outputs.model.digest import TimeDigests
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import RenditionState
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.reader_store import ReaderStore
from tidemark.writers.collection.writer import CollectionWriter

pytestmark = pytest.mark.system

WRITER = (
    "name: accounts, kind: collection, keyspace: {name}, envelope: upsert, key: {{id: text}}, "
    "columns: {{owner: text, balance: decimal, tags: set<text>%s}}, shards: 4%s"
)


class Accounts:
    """A pipeline with a collection of accounts."""

    def __init__(self, services: Any, runs: LogRuns) -> None:
        self.services, self.runs = services, runs

    def send(self, accounts: Mapping[str, Mapping[str, Any] | None]) -> None:
        with KafkaProducer(**self.services.kafka.client_options()) as producer:
            for id_, account in accounts.items():
                value = None if account is None else json.dumps(account).encode()
                producer.send(self.runs.name, key=id_.encode(), value=value)

    @property
    def positions(self) -> Positions:
        return Positions(open_control(self.runs.connections), self.runs.name)

    @property
    def state(self) -> WriterState:
        found = self.positions.load("accounts")
        assert found is not None
        return found

    @property
    def output(self) -> Output:
        return OutputStore(open_control(self.runs.connections), self.runs.name, "accounts").require()

    @property
    def tables(self) -> CollectionTables:
        writer = OpenPipeline(self.runs.pipeline, self.runs.connections).writer("accounts")
        assert isinstance(writer, CollectionWriter)
        return CollectionTables.of(connect(self.services.cassandra), writer.place)

    def as_of(self, t: int) -> dict[str, str]:
        """The balance of every account at a time."""
        found = [row for batch in CollectionReader(self.tables).rows(t) for row in batch.to_pylist()]
        return {row["id"]: str(row["balance"].normalize()) for row in found}

    def assert_digests(self, t: int) -> None:
        body = self.positions.digests("accounts", t)
        assert body is not None
        assert TimeDigests.from_json(body) == digest_of_stored(self.tables, t)


@pytest.fixture
def declare(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    names = []
    monkeypatch.setenv("TIDEMARK_TRANSFORMS", "tests")

    def declare(columns: str = "", further: str = "") -> Accounts:
        name = f"bank_{uuid4().hex[:8]}"
        names.append(name)
        services.create_topic(name, partitions=3)
        connections = Connections(
            kafka=services.kafka,
            cassandra={"cassandra_default": services.cassandra},
            kafka_targets={"kafka_default": services.kafka},
        )
        writer = WRITER % (columns, further)
        source = f'topics: ["{name}"], format: json'
        return Accounts(
            services, declare_log(tmp_path, name, connections, monkeypatch, source, writer=writer)
        )

    yield declare
    for name in names:
        connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


def account(balance: float, *tags: str) -> dict[str, Any]:
    return {"owner": "ann", "balance": balance, "tags": tags}


def test_records_become_rows_that_are_read_as_of_a_time(declare: Any) -> None:
    # Given: accounts in three partitions, delivered by Spark's tasks.
    bank = declare()
    bank.send({f"a{n}": account(n + 0.5, "new", "b") for n in range(40)})
    first = publish_here(bank.runs, "run-1")
    outcome = bank.runs.deliver("run-1").summary["writers"]["accounts"]
    assert (outcome["written"], outcome["rows"], outcome["deletes"]) == (40, 40, 0)
    assert outcome["reconciled"]["passed"]

    # When: some change and some go; the process that delivers is killed between changes and rows.
    bank.send({"a1": account(7), "a2": None})
    bank.send({"a1": account(8)})
    second = publish_here(bank.runs, "run-2")
    killed = bank.runs.step("deliver", "accounts", FaultPoint.COLLECTION_CHANGES_WRITTEN)
    assert killed.code != 0
    assert first.t < bank.output.frontier <= second.t
    assert bank.runs.step("deliver", "accounts").code == 0

    # Then: each time has its own state, and readers may read both.
    assert bank.as_of(first.t) == {f"a{n}": f"{n}.5" for n in range(40)}
    assert bank.as_of(second.t) == {f"a{n}": f"{n}.5" for n in range(40) if n != 2} | {"a1": "8"}
    assert bank.output.frontier > second.t
    for binding in (first, second):
        bank.assert_digests(binding.t)

    # And: the page's statements work, status has the frontier, and a verification finds no difference.
    rows = connect(bank.services.cassandra).execute(
        f"SELECT id, gone FROM {bank.runs.name}.accounts PER PARTITION LIMIT 1"
    )
    assert sorted(row.id for row in rows if row.gone) == ["a2"]
    (status,) = json.loads(bank.runs.command("status", bank.runs.name, "--json").out)["writers"]
    assert status["frontier"] == bank.output.frontier
    verified = bank.runs.command("verify", bank.runs.name, "accounts", "--all", "--json")
    assert (verified.code, json.loads(verified.out)["writers"][0]["looked_at"]) == (0, {"bindings": 2})


def test_a_key_that_moves_and_a_bad_value_stop_the_writer_until_they_are_acknowledged(declare: Any) -> None:
    # Given: an account, and then a value that does not fit and the same account in every partition.
    bank = declare()
    bank.send({"a": account(1)})
    publish_here(bank.runs, "run-1")
    assert bank.runs.step("deliver", "accounts").code == 0
    with KafkaProducer(**bank.services.kafka.client_options()) as producer:
        for partition in range(3):
            producer.send(bank.runs.name, key=b"a", value=b'{"balance": 2}', partition=partition)
        producer.send(bank.runs.name, key=b"z", value=b'{"balance": "much"}', partition=2)
    publish_here(bank.runs, "run-2")

    # When: it is delivered, each bad message is acknowledged, and it is resumed.
    passed = 0
    bank.runs.step("deliver", "accounts")
    while gate := bank.state.gate:
        assert gate.cause is Cause.MESSAGE
        id_ = str(gate.first_id)
        reason = ("--execute", "--reason", "moved", "--by", "ann")
        assert bank.runs.command("offsets", "ack", bank.runs.name, "accounts", id_, *reason).code == 0
        passed += 1
        bank.runs.command("resume", bank.runs.name, "accounts")
    assert bank.runs.step("deliver", "accounts").code == 0

    # Then: the messages of its own partition are rows, and the others are not.
    assert passed == 3
    assert bank.as_of(bank.output.frontier) == {"a": "2"}
    assert bank.runs.command("verify", bank.runs.name, "accounts", "--all").code == 0


def test_51_a_function_that_reads_a_clock_freezes_the_rendition(declare: Any) -> None:
    # Given: rows with the time at which they were computed.
    function = ", transforms: [{{function: {{path: tests.support.collection_samples.with_time}}}}]"
    bank = declare(", seen: bigint", function)
    bank.send({"a": account(1), "b": account(2)})
    first = publish_here(bank.runs, "run-1")
    assert bank.runs.step("deliver", "accounts").code == 0
    before = list(CollectionReader(bank.tables).rows(first.t))

    # When: they are to be delivered again.
    reason = ("--execute", "--reason", "to see", "--by", "ann")
    assert bank.runs.command("offsets", "rewind", bank.runs.name, "accounts", "-1", *reason).code == 0
    bank.runs.step("deliver", "accounts")

    # Then: nothing was written, the gate says why, and the rendition is frozen.
    gate = bank.state.gate
    assert gate is not None
    assert (gate.cause, f"time {first.t}" in gate.reason) == (Cause.TAINTED, True)
    assert bank.output.rendition(1).state is RenditionState.TAINTED
    after = list(CollectionReader(bank.tables).rows(first.t))
    assert [batch.to_pylist() for batch in after] == [batch.to_pylist() for batch in before]
    bank.assert_digests(first.t)


def test_versions_older_than_keep_go_and_every_readable_time_stays(declare: Any) -> None:
    # Given: three bindings of a collection that keeps nothing old, and a reader at the third one.
    bank, times = declare(further=", keep: 0s"), []
    for accounts in (
        {"a": account(1), "b": account(1), "c": account(1)},
        {"a": account(2), "b": None},
        {"a": account(3)},
    ):
        bank.send(accounts)
        times.append(publish_here(bank.runs, f"run-{len(times)}").t)
        assert bank.runs.step("deliver", "accounts").code == 0
    first, second, third = times

    def readers() -> ReaderStore:  # anew: commands close the sessions of their process
        outputs = OutputStore(open_control(bank.runs.connections), bank.runs.name, "accounts")
        return ReaderStore(outputs)

    readers().pin("audit", third, "ann")
    states = {third - 1: {"a": "2", "c": "1"}, third: {"a": "3", "c": "1"}}

    # When: old versions are removed, and the first process is killed in between.
    trim = ("collection", "trim", bank.runs.name, "accounts", "--execute", "--reason", "space")
    assert bank.runs.command(*trim, fault=FaultPoint.TRIM_VERSIONS_DROPPED).code != 0
    assert bank.runs.command(*trim).code == 0

    # Then: what the reader holds is there, and what nothing sees is not.
    assert readers().load().since == third - 1
    assert {t: bank.as_of(t) for t in states} == states
    assert stored(bank, "accounts") == {("a", second), ("a", third), ("b", second), ("c", first)}
    assert stored(bank, "accounts_changes") == {("a", third)}
    assert bank.runs.command("verify", bank.runs.name, "accounts", "--all").code == 0

    # And: without it more goes, and what is delivered again comes not back.
    readers().drop("audit")
    assert bank.runs.command(*trim).code == 0
    reason = ("--execute", "--reason", "to see", "--by", "ann")
    assert bank.runs.command("offsets", "rewind", bank.runs.name, "accounts", "-1", *reason).code == 0
    assert bank.runs.step("deliver", "accounts").code == 0
    assert bank.as_of(third) == states[third]
    assert stored(bank, "accounts") == {("a", third), ("b", second), ("c", first)}


def stored(bank: Accounts, table: str) -> set[tuple[str, int]]:
    """Keys and times of the rows of a table."""
    rows = connect(bank.services.cassandra).execute(f"SELECT id, t FROM {bank.runs.name}.{table}")
    return {(row.id, row.t) for row in rows}
