"""Every fault point in the life of a rendition, once, with real processes: killed there, and done again."""

import json
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaProducer
from tests.support.fault_points import END_CONSUMER, RETIRE, TRIM
from tests.support.services.log_runs import LogRuns, declare_log, publish_here
from tests.support.services.rendition_steps import edit, store_of

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.renditions.opened import WriterRenditions
from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.delivery.state.writer_state import Cause
from tidemark.faults import FaultPoint
from tidemark.outputs.state.progress import advance_frontier

pytestmark = pytest.mark.system

REASON = ("--execute", "--reason", "a test", "--by", "ann")
WRITER = (
    "name: accounts, kind: collection, keyspace: {name}, envelope: upsert, key: {{id: text}}, "
    "columns: {{owner: text, seen: bigint, note: ascii}}, shards: 4, keep: 0s%s"
)
CLOCK = ", transforms: [{{function: {{path: tests.support.collection_samples.with_time}}}}]"


class Bank:
    """A pipeline with a collection of accounts, and the processes that do something to it."""

    def __init__(self, runs: LogRuns) -> None:
        self.runs, self.count = runs, 0

    @property
    def opened(self) -> OpenPipeline:
        return OpenPipeline(self.runs.pipeline, self.runs.connections)

    @property
    def states(self) -> dict[int, str]:
        found = store_of(self.runs, "accounts").require().renditions
        return {one.number: one.state.value for one in found}

    @property
    def tables(self) -> set[str]:
        rows = connect(self.runs.connections.cassandra["cassandra_default"]).execute(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s", [self.runs.name]
        )
        return {row.table_name for row in rows if row.table_name != "locks"}

    def owners(self, table: str) -> set[str]:
        rows = connect(self.runs.connections.cassandra["cassandra_default"]).execute(
            f"SELECT owner, gone FROM {self.runs.name}.{table} PER PARTITION LIMIT 1"
        )
        return {row.owner for row in rows if not row.gone}

    def send(self, **owners: str) -> None:
        """Send accounts by their owners, and publish them."""
        with KafkaProducer(**self.runs.connections.kafka.client_options()) as producer:
            for id_, owner in owners.items():
                producer.send(self.runs.name, key=id_.encode(), value=json.dumps({"owner": owner}).encode())
        self.count += 1
        publish_here(self.runs, f"run-{self.count}")

    def deliver(self, *consumers: str) -> None:
        for consumer in consumers:
            assert self.runs.step("deliver", consumer).code == 0

    def killed(self, point: FaultPoint, *command: str) -> None:
        """A process dies at a point; what it held is free again."""
        if command[0] == "deliver":
            ended = self.runs.step("deliver", command[1], point)
        else:
            group, action, *words = command
            ended = self.runs.command(group, action, self.runs.name, "accounts", *words, fault=point)
        assert ended.code == -SIGKILL, (point, ended)
        positions = self.opened.positions
        for name in self.runs.control.writer_names():
            if (state := positions.load(name)) and state.lease:
                positions.lend(state, None)

    def run(self, group: str, action: str, *words: str) -> str:
        ended = self.runs.command(group, action, self.runs.name, "accounts", *words)
        assert ended.code == 0, (action, ended)
        return ended.out


@pytest.fixture
def declare(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    name = f"bank_{uuid4().hex[:8]}"
    monkeypatch.setenv("TIDEMARK_TRANSFORMS", "tests")

    def declare(further: str = "") -> Bank:
        services.create_topic(name, partitions=2)
        connections = Connections(
            kafka=services.kafka,
            cassandra={"cassandra_default": services.cassandra},
            kafka_targets={"kafka_default": services.kafka},
        )
        source = f'topics: ["{name}"], format: json'
        return Bank(declare_log(tmp_path, name, connections, monkeypatch, source, writer=WRITER % further))

    yield declare
    connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


def test_29_a_rendition_is_built_handed_over_and_retired_by_processes_that_die(declare: Any) -> None:
    bank: Bank = declare()
    bank.send(a="ann", b="bob")

    # The first delivery.
    bank.killed(FaultPoint.RENDITION_CREATED, "deliver", "accounts")
    bank.killed(FaultPoint.FRONTIER_ADVANCED, "deliver", "accounts")
    bank.deliver("accounts")
    edit(bank.runs, "shards: 4", "shards: 3")

    # A build, a verification, and evidence that does not hold any more.
    bank.killed(FaultPoint.RENDITION_DECLARED, "renditions", "build", *REASON)
    bank.killed(FaultPoint.COLLECTION_CHANGES_WRITTEN, "renditions", "build", *REASON)
    bank.run("renditions", "build", *REASON)
    for point in (FaultPoint.RENDITION_REPORTED, FaultPoint.RENDITION_VERIFIED):
        bank.killed(point, "renditions", "verify")
    assert "the same" in bank.run("renditions", "verify")
    bank.send(a="cid")
    bank.killed(FaultPoint.RENDITION_REVOKED, "deliver", "accounts")
    bank.deliver("accounts", "accounts.r2")
    assert bank.states == {1: "active", 2: "building"}

    # Another one, given up.
    edit(bank.runs, "shards: 3", "shards: 5")
    bank.run("renditions", "build", *REASON)
    bank.killed(FaultPoint.RENDITION_ABANDONED, "renditions", "abandon", "3", *REASON)
    bank.run("renditions", "abandon", "3", *REASON)
    bank.run("renditions", "retire", "3", *REASON)
    edit(bank.runs, "shards: 5", "shards: 3")

    # The handover: nothing is bound, so time has to pass; then the new one is ahead of the active one.
    bank.killed(FaultPoint.HANDOVER_UPPER_ADVANCED, "renditions", "handover", "2", *REASON)
    bank.send(d="dan")
    bank.killed(FaultPoint.DELIVER_COMMITTED, "renditions", "build", "2", *REASON)
    bank.killed(FaultPoint.HANDOVER_COMMITTED, "renditions", "handover", "2", *REASON)
    bank.run("renditions", "handover", "2", *REASON)
    assert [one.rendition for one in store_of(bank.runs, "accounts").require().handovers] == [1, 2]
    bank.deliver("accounts", "accounts.r2")
    assert bank.owners("accounts") == bank.owners("accounts_r2") == {"cid", "bob", "dan"}

    # The end of the first one.
    for point in (*RETIRE[:2], *END_CONSUMER, *RETIRE[2:]):
        bank.killed(point, "renditions", "retire", "1", *REASON)
    bank.run("renditions", "retire", "1", *REASON)
    assert bank.states == {1: "dropped", 2: "active", 3: "dropped"}
    assert bank.tables == {"accounts_r2", "accounts_r2_changes"}


def test_29_old_versions_are_removed_by_processes_that_die(declare: Any) -> None:
    bank: Bank = declare()
    for owner in ("ann", "bob", "cid"):
        bank.send(a=owner)
        bank.deliver("accounts")
    for point in TRIM:
        bank.killed(point, "collection", "trim", *REASON)
    bank.run("collection", "trim", *REASON)
    rows = connect(bank.runs.connections.cassandra["cassandra_default"]).execute(
        f"SELECT owner FROM {bank.runs.name}.accounts"
    )
    assert [row.owner for row in rows] == ["cid"]


def test_29_51_a_taint_is_recorded_by_processes_that_die(declare: Any) -> None:
    bank: Bank = declare(CLOCK)
    bank.send(a="ann")
    bank.deliver("accounts")
    assert bank.runs.command("offsets", "rewind", bank.runs.name, "accounts", "-1", *REASON).code == 0
    bank.killed(FaultPoint.RENDITION_TAINTED, "deliver", "accounts")
    bank.runs.step("deliver", "accounts")
    state = bank.opened.positions.load("accounts")
    assert state is not None
    assert state.gate is not None
    assert (state.gate.cause, bank.states) == (Cause.TAINTED, {1: "tainted"})


def test_a_handover_beside_readers_who_wait_at_the_next_binding_is_not_refused(declare: Any) -> None:
    # Given: both have everything; then a binding is published, and a reader waits for its time.
    bank: Bank = declare()
    bank.send(a="ann")
    bank.deliver("accounts")
    edit(bank.runs, "shards: 4", "shards: 3")
    bank.run("renditions", "build", *REASON)
    bank.send(b="bob")
    of = WriterRenditions.of(bank.opened, "accounts")
    waited = advance_frontier(of.store, of.progress).frontier
    assert waited == bank.runs.control.bindings_head().newest

    # When: it is handed over, and the first process dies before the handover.
    bank.killed(FaultPoint.DELIVER_COMMITTED, "renditions", "handover", "2", "--force", *REASON)
    bank.run("renditions", "handover", "2", *REASON)

    # Then: readers take it from the time on at which they wait.
    newest = store_of(bank.runs, "accounts").require().handovers[-1]
    assert (newest.rendition, newest.h >= waited) == (2, True)


def test_a_table_whose_column_changes_under_a_building_rendition_closes_its_gate_alone(declare: Any) -> None:
    # Given: a rendition that is being built.
    bank: Bank = declare()
    bank.send(a="ann")
    bank.deliver("accounts")
    edit(bank.runs, "shards: 4", "shards: 3")
    bank.run("renditions", "build", *REASON)

    # When: a column of its table gets another type, and more is delivered.
    session = connect(bank.runs.connections.cassandra["cassandra_default"])
    session.execute(f"ALTER TABLE {bank.runs.name}.accounts_r2 DROP note")
    session.execute(f"ALTER TABLE {bank.runs.name}.accounts_r2 ADD note text")
    bank.send(a="bob")
    bank.runs.step("deliver", "accounts.r2")

    # Then: its gate says so, and the active one goes on.
    state = bank.opened.positions.load("accounts.r2")
    assert state is not None
    assert state.gate is not None
    assert "note" in state.gate.reason
    bank.deliver("accounts")
    assert bank.owners("accounts") == {"bob"}
