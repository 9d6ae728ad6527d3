"""The log's gate on real Kafka: every way in that a broker can be brought to, and every way out."""

import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewPartitions, NewTopic
from kafka.structs import TopicPartition
from tests.support.services.log_runs import LogRuns, consumed, declare_log, publish_here
from tests.support.waiting import wait_until

from tidemark.app.replicate import begin_run
from tidemark.connections import Connections, KafkaConnection
from tidemark.log.bindings.door import Bindings
from tidemark.log.publish import read_log
from tidemark.log.read import select

pytestmark = pytest.mark.system

Declare = Callable[..., LogRuns]


@pytest.fixture
def connections(services: Any) -> Connections:
    return Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})


@pytest.fixture
def declare(connections: Connections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    def declared(name: str, **options: Any) -> LogRuns:
        return declare_log(tmp_path, name, options.pop("connections", connections), monkeypatch, **options)

    return declared


@pytest.fixture
def admin(services: Any) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(**services.kafka.client_options()) as client:
        yield client


def send(services: Any, topic: str, values: range, partition: int = 0) -> None:
    with KafkaProducer(**services.kafka.client_options()) as producer:
        for number in values:
            producer.send(topic, key=b"k", value=b"%d" % number, partition=partition)


def messages(runs: LogRuns) -> list[dict[str, Any]]:
    manifest = read_log(runs.control, runs.folder)
    batches = select(manifest, runs.pipeline.log.path).batches()
    return [message for batch in batches for message in batch.to_pylist()]


def test_records_removed_before_their_capture_stop_the_log_until_a_person_accepts_it(
    services: Any, declare: Declare, admin: KafkaAdminClient
) -> None:
    services.create_topic("removed", partitions=1)
    send(services, "removed", range(10))
    runs = declare("removed")

    # Way in: bound, then removed by retention before the capture.
    t = int(runs.bind("run-1").out)
    admin.delete_records({TopicPartition("removed", 0): 4})
    refused = runs.capture(t)
    assert refused.summary["error"].startswith(
        "removed: records are lost: removed/0: offsets 0 to 3 were removed before their capture."
    )
    assert refused.summary["needs_person"] is True
    status = json.loads(runs.command("status", "removed", "--json").out)
    assert (status["log"]["gate"], status["log"]["end"]) == ("stopped", -1)

    # A plan changes nothing; the way out is said in it.
    plan = runs.command("log", "accept", "removed")
    assert (plan.code, "Nothing was changed. Add --execute" in plan.out) == (0, True)
    assert runs.control.log_gate() is not None

    # Way out: the lost offsets are holes, on record for ever.
    assert runs.accept("a test topic with a short retention").code == 0
    assert runs.replicate("run-2") == Bindings(runs.control).at(t)
    assert [(message["id"], message["offset"]) for message in messages(runs)] == [
        (n, n) for n in range(4, 10)
    ]
    verified = runs.command("log", "verify", "removed")
    assert verified.code == 0
    assert "4 ids have no message" in verified.out
    assert "a test topic with a short retention" in verified.out


def test_a_topic_made_again_stops_the_log_and_is_read_from_its_beginning_once_accepted(
    services: Any, declare: Declare, admin: KafkaAdminClient
) -> None:
    services.create_topic("again", partitions=1)
    send(services, "again", range(5))
    runs = declare("again")
    publish_here(runs, "run-1")

    admin.delete_topics(["again"])
    wait_until(lambda: "again" not in admin.list_topics(), what="the topic gone")
    services.create_topic("again", partitions=1)
    send(services, "again", range(100, 108))
    stopped = runs.bind("run-2")
    assert "again/0: the topic was deleted and made again; it was read up to offset 5" in stopped.err
    assert json.loads(runs.command("status", "again", "--json").out)["log"]["gate"] == "stopped"

    assert runs.accept("made again on purpose").code == 0
    binding = runs.replicate("run-3")
    assert binding is not None
    assert [(s.lower, s.upper) for s in binding.slices] == [(0, 8)]
    assert [message["value"] for message in messages(runs)][5:] == [b"%d" % n for n in range(100, 108)]
    assert runs.command("log", "verify", "again").code == 0


def test_a_failed_audit_stops_before_publishing_until_a_person_accepts_it(
    services: Any, declare: Declare, tmp_path: Path
) -> None:
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "strict.yaml").write_text(
        "messages:\n"
        "  - {type: expect_column_values_to_not_be_null, kwargs: {column: key}, notes: every key}\n"
    )
    services.create_topic("audited", partitions=1)
    with KafkaProducer(**services.kafka.client_options()) as producer:
        for key in (b"a", None, b"c"):
            producer.send("audited", key=key, value=b"v", partition=0)
    runs = declare("audited", expectations="strict")

    t = int(runs.bind("run-1").out)
    captured = runs.capture(t)
    assert captured.summary["audit"] == {"passed": False, "failures": 1, "warnings": 0}
    stopped = runs.step("audit", str(t))
    assert "critical every key: id 1" in stopped.out
    assert "the log's gate is closed" in stopped.err
    assert runs.step("publish", str(t)).code != 0
    assert runs.control.log_head().end == -1

    assert runs.accept("keyless records are fine here").code == 0
    assert runs.step("publish", str(t)).code == 0
    assert [message["key"] for message in messages(runs)] == [b"a", None, b"c"]
    assert runs.control.log_gate() is None


def test_only_committed_records_are_captured_with_everything_they_carry(
    services: Any, declare: Declare, admin: KafkaAdminClient
) -> None:
    admin.create_topics(
        [
            NewTopic("carried", 2, 1),
            NewTopic("carried-late", 1, 1, topic_configs={"message.timestamp.type": "LogAppendTime"}),
        ]
    )
    with KafkaProducer(**services.kafka.client_options(), transactional_id="carried", acks="all") as producer:
        producer.init_transactions()
        for kept in (True, False, True):
            producer.begin_transaction()
            producer.send("carried", key=None, value=b"\xff\x00", partition=0, timestamp_ms=1_700_000_000_123)
            producer.send("carried", key=b"", value=None, partition=1, headers=[("h", b"\x01"), ("h", b"")])
            producer.send("carried-late", key=b"k", value=b"")
            producer.flush()
            producer.commit_transaction() if kept else producer.abort_transaction()
    runs = declare("carried", source='topic_prefixes: ["carried"], format: raw')

    binding = runs.replicate("run-1")

    assert binding is not None
    assert [(s.topic, s.partition) for s in binding.slices] == [
        ("carried", 0),
        ("carried", 1),
        ("carried-late", 0),
    ]
    found = messages(runs)
    assert len(found) == 6
    assert found == [message for rows in consumed(runs, binding).values() for message in rows]
    audit = runs.folder.read_audit(binding.t)
    assert audit is not None
    assert [judgement.title for judgement in audit.warnings][:1] == ["every offset has a record"]
    assert audit.passed


def test_partitions_and_topics_that_appear_later_are_read_from_their_beginning(
    services: Any, declare: Declare, admin: KafkaAdminClient
) -> None:
    services.create_topic("grow.a", partitions=1)
    send(services, "grow.a", range(2))
    runs = declare("grow", source='topic_prefixes: ["grow."], format: raw')
    publish_here(runs, "run-1")

    admin.create_partitions({"grow.a": NewPartitions(2)})
    services.create_topic("grow.b", partitions=1)
    send(services, "grow.a", range(3), partition=1)
    send(services, "grow.b", range(4))
    second = publish_here(runs, "run-2")

    assert [(s.topic, s.partition, s.lower, s.upper) for s in second.slices] == [
        ("grow.a", 1, 0, 3),
        ("grow.b", 0, 0, 4),
    ]


def test_a_compacted_topic_is_refused(services: Any, declare: Declare, admin: KafkaAdminClient) -> None:
    admin.create_topics([NewTopic("squeezed", 1, 1, topic_configs={"cleanup.policy": "compact"})])

    refused = declare("squeezed").bind("run-1")

    assert refused.code != 0
    assert "topic squeezed has cleanup.policy=compact, so its records vanish one by one" in refused.err


def test_a_broker_that_goes_away_after_bind_publishes_nothing(
    services: Any, declare: Declare, connections: Connections
) -> None:
    services.create_topic("away", partitions=1)
    send(services, "away", range(3))
    runs = declare("away")
    t = int(runs.bind("run-1").out)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # no process listens here
        gone = connections.model_copy(
            update={"kafka": KafkaConnection(servers=f"127.0.0.1:{silent.getsockname()[1]}")}
        )
        refused = declare("away", connections=gone).capture(t)

    assert refused.summary["error"].startswith("away: Kafka does not answer at 127.0.0.1:")
    assert runs.control.log_head().end == -1


def test_two_binders_at_once_go_on_with_one_binding(services: Any, declare: Declare) -> None:
    services.create_topic("raced", partitions=1)
    send(services, "raced", range(50))
    runs = declare("raced")

    def bind(run_id: str) -> int | None:
        return begin_run(runs.pipeline, runs.connections, run_id, retry=True).t

    with ThreadPoolExecutor(3) as binders:
        answers = list(binders.map(lambda number: bind(f"run-{number}"), range(3)))

    (binding,) = list(Bindings(runs.control).after(-1))
    assert answers == [binding.t] * 3


def test_a_log_folder_that_cannot_be_written_is_refused_by_name(services: Any, declare: Declare) -> None:
    services.create_topic("blocked", partitions=1)
    send(services, "blocked", range(3))
    runs = declare("blocked")
    t = int(runs.bind("run-1").out)
    Path(runs.pipeline.log.path).parent.mkdir(parents=True)
    Path(runs.pipeline.log.path).write_text("a file where the folder should be")

    refused = runs.capture(t)

    assert f"blocked: nothing can be written into {runs.pipeline.log.path}" in refused.summary["error"]
    assert runs.control.log_head().end == -1
