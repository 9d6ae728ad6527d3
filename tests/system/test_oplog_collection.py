"""Operations from Kafka through the log to a collection, on real services."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewPartitions
from tests.support.operation_samples import MOMENT, given_operation
from tests.support.services.log_runs import LogRuns, declare_log, publish_here

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cassandra.session import connect
from tidemark.collection.model.envelopes.oplog import operation_in
from tidemark.collection.tables.changes import digest_of_stored
from tidemark.collection.tables.stored import FIRST_TOKEN, TokenCursor, stored_page, stored_versions
from tidemark.collection.tables.tables import CollectionTables
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterState
from tidemark.log.fixed_topics import recorded_topic
from tidemark.log.model.gate import LogGateCause
from tidemark.operations.corrections import CORRECTION_HEADER, Correction
from tidemark.operations.operation import EventName, encoded
from tidemark.outputs.model.digest import TimeDigests
from tidemark.writers.collection.writer import CollectionWriter

pytestmark = pytest.mark.system

WRITER = "name: objects, kind: collection, keyspace: {name}, envelope: oplog, shards: 4"
REASON = ("--execute", "--reason", "to test", "--by", "ann")


class Objects:
    """A pipeline with a collection of objects."""

    def __init__(self, services: Any, runs: LogRuns) -> None:
        self.services, self.runs = services, runs

    def send(
        self,
        *names: str,
        event: EventName = EventName.INSERT,
        looked_at: int | None = None,
        topic_id: str | None = None,
        partition: int = 0,
    ) -> None:
        """One operation for each object, or one correction."""
        headers = []
        if looked_at is not None:
            header = Correction("sync-1", looked_at, topic_id or self.topic_id).to_header()
            headers = [(CORRECTION_HEADER, header)]
        with KafkaProducer(**self.services.kafka.client_options()) as producer:
            for name in names:
                one = given_operation(event, id_=name)
                producer.send(
                    self.runs.name, key=one.key, value=encoded(one), headers=headers, partition=partition
                )

    def deliver(self, run_id: str) -> int:
        """One run up to the tables; the time of its binding."""
        t = publish_here(self.runs, run_id).t
        assert self.runs.step("deliver", "objects").code == 0
        return t

    @property
    def topic_id(self) -> str:
        found = recorded_topic(self.runs.control, self.runs.name)
        assert found is not None
        return found.topic_id

    @property
    def positions(self) -> Positions:
        return Positions(open_control(self.runs.connections), self.runs.name)

    @property
    def state(self) -> WriterState:
        found = self.positions.load("objects")
        assert found is not None
        return found

    @property
    def tables(self) -> CollectionTables:
        writer = OpenPipeline(self.runs.pipeline, self.runs.connections).writer("objects")
        assert isinstance(writer, CollectionWriter)
        return CollectionTables.of(connect(self.services.cassandra), writer.place)

    def as_of(self, t: int) -> dict[str, str]:
        """The event that each object has last had at a time, read page by page."""
        found, cursor, tokens = {}, TokenCursor(), []
        while cursor is not None:
            page = stored_page(self.tables, t, cursor)
            for row in page.rows:
                operation = operation_in(row.key, row.values)
                assert row.gone is (operation.event is EventName.DELETE)
                assert operation.timestamp == MOMENT
                found[operation.id] = str(operation.event)
                tokens.append(row.token)
            cursor = page.next
        assert tokens == sorted(tokens)
        return dict(sorted(found.items()))

    def assert_digests(self, t: int) -> None:
        body = self.positions.digests("objects", t)
        assert body is not None
        assert TimeDigests.from_json(body) == digest_of_stored(self.tables, t)


@pytest.fixture
def objects(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Objects]:
    name = f"oplog_{uuid4().hex[:8]}"
    connections = Connections(
        kafka=services.kafka,
        cassandra={"cassandra_default": services.cassandra},
        kafka_targets={"kafka_default": services.kafka},
    )
    source = f'topics: ["{name}"], format: oplog, create: {{partitions: 2}}'
    runs = declare_log(tmp_path, name, connections, monkeypatch, source, writer=WRITER)
    created = runs.command("topics", "create", name, "--json")
    assert created.code == 0, created.err
    assert json.loads(created.out)["topics"][0]["timestamps"] == "LogAppendTime"
    yield Objects(services, runs)
    connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


def test_operations_become_rows_and_void_corrections_do_not(objects: Objects) -> None:
    # Given: operations in two partitions, and the topic as it was recorded.
    objects.send("a", "b", "c")
    objects.send("d", "e", partition=1)
    first = objects.deliver("run-1")
    assert objects.as_of(first) == dict.fromkeys("abcde", "insert")
    assert recorded_topic(objects.runs.control, objects.runs.name).partitions == 2  # type: ignore[union-attr]

    # When: corrections come whose sender had not read b (offset 1), had read c, or had read another topic.
    objects.send("b", event=EventName.DELETE, looked_at=1)
    objects.send("c", event=EventName.DELETE, looked_at=3)
    objects.send("c", event=EventName.INSERT, looked_at=3)
    objects.send("d", event=EventName.DELETE, looked_at=5, topic_id="another", partition=1)
    objects.send("f", looked_at=0, partition=1)
    second = objects.deliver("run-2")

    # Then: those that are void made no row, and every time is as it was.
    expected = {**dict.fromkeys("abdef", "insert"), "c": "delete"}
    assert objects.as_of(second) == dict(sorted(expected.items()))
    assert objects.as_of(first) == dict.fromkeys("abcde", "insert")
    for t in (first, second):
        objects.assert_digests(t)

    # And: versions, readers, and a verification that computes everything again agree.
    key = (b"video", b"c")
    versions = stored_versions(objects.tables, [key, (b"video", b"z")], first, second)
    assert {found: [row.gone for row in rows] for found, rows in versions.items()} == {key: [True, False]}
    tokens = [row.token for row in stored_page(objects.tables, second, TokenCursor(FIRST_TOKEN, 2**64)).rows]
    rest = stored_page(objects.tables, second, TokenCursor(tokens[3], 2**64)).rows
    assert [row.token for row in rest] == tokens[3:]
    shown = objects.runs.command(
        "collection", "rows", objects.runs.name, "objects", "--at", str(second), "--json"
    )
    lines = [json.loads(line) for line in shown.out.splitlines()]
    assert sorted(one["id"] for one in lines) == ["a", "b", "d", "e", "f"]
    assert {one["event"] for one in lines} == {"insert"}
    verified = objects.runs.command("verify", objects.runs.name, "objects", "--all", "--json")
    assert (verified.code, json.loads(verified.out)["writers"][0]["looked_at"]) == (0, {"bindings": 2})


def test_a_rewind_gives_the_same_rows_and_a_bad_record_stops_at_its_id(objects: Objects) -> None:
    # Given: void and valid corrections in later bindings, all delivered.
    objects.send("a", "b")
    objects.deliver("run-1")
    objects.send("a", event=EventName.DELETE, looked_at=0)
    objects.send("b", event=EventName.DELETE, looked_at=2)
    last = objects.deliver("run-2")
    before = objects.as_of(last)
    assert before == {"a": "insert", "b": "delete"}

    # When: everything is delivered again, computed first with the rows of earlier bindings.
    rewound = objects.runs.command("offsets", "rewind", objects.runs.name, "objects", "-1", *REASON)
    assert rewound.code == 0, rewound.err
    assert objects.runs.step("deliver", "objects").code == 0
    assert objects.as_of(last) == before
    assert objects.state.gate is None

    # Then: a record that is no operation closes the gate at exactly its id.
    with KafkaProducer(**objects.services.kafka.client_options()) as producer:
        producer.send(objects.runs.name, key=b"video/c", value=b"{", partition=0)
    binding = publish_here(objects.runs, "run-3")
    objects.runs.step("deliver", "objects")
    gate = objects.state.gate
    assert gate is not None
    assert (gate.cause, gate.first_id) == (Cause.MESSAGE, binding.base)
    assert "it is not JSON" in gate.reason


def test_further_partitions_close_the_gate_until_they_are_accepted(objects: Objects) -> None:
    # Given: a topic that is bound, and gets a third partition.
    objects.send("a")
    objects.deliver("run-1")
    with KafkaAdminClient(**objects.services.kafka.client_options()) as admin:
        admin.create_partitions({objects.runs.name: NewPartitions(3)})
    objects.send("b")

    # When: a run wants to bind.
    refused = objects.runs.bind("run-2")
    assert refused.code != 0
    assert "has 3 partitions, and the partitions of its keys are computed by 2" in refused.err
    gate = objects.runs.control.log_gate()
    assert gate is not None
    assert gate.cause is LogGateCause.PARTITIONS

    # Then: accepting them keeps the number, and the log goes on.
    accepted = objects.runs.accept("only agents send to it")
    assert accepted.code == 0, accepted.err
    t = objects.deliver("run-3")
    assert objects.as_of(t) == {"a": "insert", "b": "insert"}
    assert recorded_topic(objects.runs.control, objects.runs.name).partitions == 2  # type: ignore[union-attr]
