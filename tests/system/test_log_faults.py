"""Every fault point once, on real Kafka, Spark and Cassandra: processes die, the next ones go on."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.structs import TopicPartition
from tests.support.services.engines import both_engines
from tests.support.services.log_runs import LogRuns, declare_log, expected_digests

from tidemark.connections import Connections, SparkConnection
from tidemark.faults import FaultPoint
from tidemark.log.publish import read_log

pytestmark = pytest.mark.system


@pytest.fixture
def runs(
    services: Any, spark_engine: SparkConnection | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> LogRuns:
    """A pipeline of the test's own, whose topic has 100 records in each of two partitions."""
    name = f"faults-{uuid4().hex[:8]}"
    services.create_topic(name, partitions=2)
    with KafkaProducer(**services.kafka.client_options()) as producer:
        for number in range(200):
            producer.send(name, key=b"k%d" % (number % 7), value=b"v%d" % number, partition=number % 2)
    cassandra = {"cassandra_default": services.cassandra}
    connections = Connections(kafka=services.kafka, cassandra=cassandra, spark=spark_engine)
    return declare_log(tmp_path, name, connections, monkeypatch)


@both_engines
def test_a_binding_survives_a_death_at_every_point(runs: LogRuns, services: Any, tmp_path: Path) -> None:
    # Given: bind is killed before and after its decision is durable; the second time there is one to find.
    assert runs.bind("run-1", FaultPoint.BIND_DECIDED).code == -9
    assert runs.control.bindings_head().newest is None
    assert runs.bind("run-1", FaultPoint.BIND_COMMITTED).code == -9
    t = runs.control.bindings_head().newest
    assert t is not None
    assert runs.bind("run-2").out.strip() == str(t)

    # When: capture, audit and publish die at every point they have, and each next one goes on.
    for point in (
        FaultPoint.CAPTURE_FILE_STAGED,
        FaultPoint.CAPTURE_FILE_NAMED,
        FaultPoint.CAPTURE_FILES_WRITTEN,
        FaultPoint.CAPTURE_RECORDED,
        FaultPoint.AUDIT_RECORDED,
    ):
        assert runs.capture(t, point).code == -9, point
    assert runs.control.log_head().end == -1
    assert runs.step("publish", str(t), FaultPoint.PUBLISH_MANIFEST_WRITTEN).code == -9
    assert runs.control.log_head().end == -1
    assert runs.step("publish", str(t), FaultPoint.PUBLISH_COMMITTED).code == -9

    # Then: one binding, and exactly the files that an undisturbed run would have written.
    assert runs.replicate("run-3") is None
    binding = runs.control.binding(t)
    assert runs.control.bindings_after(-1) == [binding]
    assert [(s.partition, s.lower, s.upper) for s in binding.slices] == [(0, 0, 100), (1, 0, 100)]
    log = read_log(runs.control, runs.folder)
    assert (log.end, log.count, len(log.segments)) == (199, 200, 1)
    assert {file.path: file.digest for file in log.files} == expected_digests(
        runs, binding, tmp_path / "other"
    )

    # And: what the dead have left is gone with the next publication.
    with KafkaProducer(**services.kafka.client_options()) as producer:
        producer.send(runs.name, value=b"one more", partition=0)
    assert runs.replicate("run-4") is not None
    assert not [path for path in Path(runs.pipeline.log.path, "staging").rglob("*") if path.is_file()]


@both_engines
def test_the_gate_survives_a_death_on_the_way_in_and_out(runs: LogRuns, services: Any) -> None:
    with KafkaAdminClient(**services.kafka.client_options()) as admin:
        assert runs.bind("run-1").code == 0
        admin.delete_records({TopicPartition(runs.name, 0): 40})
    t = runs.control.bindings_head().newest
    assert t is not None

    assert runs.capture(t, FaultPoint.GATE_CLOSED).code == -9
    assert runs.control.log_gate() is not None
    assert runs.accept("operator error", FaultPoint.ACCEPT_RECORDED).code == -9
    assert runs.control.log_gate() is not None
    assert runs.accept("operator error", FaultPoint.ACCEPT_OPENED).code == -9

    assert runs.control.log_gate() is None
    assert [(one.loss.lower, one.loss.upper) for one in runs.control.accepted_losses()] == [(0, 40)]
    assert [decision.reason for decision in runs.control.decisions()] == ["operator error"]
