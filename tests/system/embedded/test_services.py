"""Real services, killed and brought back: what was acknowledged is still there, and nothing stays behind."""

import json
import time
import urllib.request
import uuid
from dataclasses import replace
from itertools import islice

import psutil
import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from tests.support.services.killed_services import kill_9

from tidemark.embedded.errors import PortTaken
from tidemark.embedded.lifecycle import all_records, down, up
from tidemark.embedded.ports import LOOPBACK, free_port
from tidemark.embedded.processes import PidFile, family
from tidemark.embedded.services.airflow import passwords_file
from tidemark.embedded.status import is_healthy, service_status

pytestmark = pytest.mark.system

ALONE = True
"""No other module can run while services are killed."""


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pids(settings) -> dict[str, int]:
    return {record.name: record.pid for record in all_records(settings) if record.process()}


def send(settings, topic: str, numbers: range) -> None:
    """Send one record per number; returns when all are acknowledged."""
    with KafkaProducer(bootstrap_servers=f"{LOOPBACK}:{settings.kafka_port}", acks="all") as producer:
        sent = [producer.send(topic, str(number).encode(), partition=0) for number in numbers]
        producer.flush(30)
        assert all(future.succeeded() for future in sent)


def received(settings, topic: str, count: int) -> list[int]:
    with KafkaConsumer(
        bootstrap_servers=f"{LOOPBACK}:{settings.kafka_port}",
        auto_offset_reset="earliest",
        consumer_timeout_ms=15_000,
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        return [int(record.value) for record in islice(consumer, count)]


def cassandra(settings) -> Cluster:
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=30)
    profiles = {EXEC_PROFILE_DEFAULT: profile}
    return Cluster([LOOPBACK], settings.cassandra_port, protocol_version=5, execution_profiles=profiles)


def test_everything_is_healthy_and_up_again_changes_nothing(services):
    before = pids(services.settings)
    again = up(services.settings, ("kafka", "cassandra", "airflow"))
    assert pids(services.settings) == before
    assert again.state.ports == services.state.ports
    assert is_healthy(service_status(services.settings))


def test_records_that_kafka_acknowledged_survive_a_kill(services):
    topic = f"killed-{uuid.uuid4().hex[:8]}"
    services.create_topic(topic, partitions=1)
    send(services.settings, topic, range(2000))
    kill_9(services.settings, "kafka")
    up(services.settings, ["kafka"])
    assert received(services.settings, topic, 2000) == list(range(2000))
    send(services.settings, topic, range(2000, 2010))
    assert received(services.settings, topic, 2010)[-1] == 2009


def test_rows_that_cassandra_acknowledged_a_second_ago_survive_a_kill(services):
    keyspace = f"killed_{uuid.uuid4().hex[:8]}"
    with cassandra(services.settings) as cluster, cluster.connect() as session:
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")
        session.execute(f"CREATE TABLE {keyspace}.rows (n int PRIMARY KEY)")
        insert = session.prepare(f"INSERT INTO {keyspace}.rows (n) VALUES (?)")
        for future in [session.execute_async(insert, [n]) for n in range(500)]:
            future.result()
        session.execute(f"INSERT INTO {keyspace}.rows (n) VALUES (500) IF NOT EXISTS")
        acknowledged = time.monotonic()
        # A write that is acknowledged vouches for all that are older by the second the disk may be behind.
        while time.monotonic() < acknowledged + 1.1:
            session.execute(insert, [501])
    kill_9(services.settings, "cassandra")
    up(services.settings, ["cassandra"], cassandra_heap="1g")
    with cassandra(services.settings) as cluster, cluster.connect() as session:
        found = {row.n for row in session.execute(f"SELECT n FROM {keyspace}.rows")}
        session.execute(f"DROP KEYSPACE {keyspace}")
    assert found >= set(range(501))


def test_a_scheduler_that_was_killed_comes_back_and_its_workers_are_gone(services):
    before = pids(services.settings)
    record = PidFile.read(services.settings.home / "run", "airflow-scheduler")
    workers = family([record])
    assert len(workers) > 1
    kill_9(services.settings, "airflow-scheduler")
    up(services.settings, ["airflow"], services.state.spark)
    after = pids(services.settings)
    assert after.pop("airflow-scheduler") != before.pop("airflow-scheduler")
    assert after == before
    assert family([record]) == []
    assert is_healthy(service_status(services.settings))


def test_the_user_and_password_that_up_points_to_open_airflow(services):
    user, password = next(iter(json.loads(passwords_file(services.settings).read_text()).items()))
    request = urllib.request.Request(
        f"http://{LOOPBACK}:{services.settings.airflow_port}/auth/token",
        json.dumps({"username": user, "password": password}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.load(answer)["access_token"]


def test_a_second_home_is_told_who_has_the_port(services, tmp_path):
    other = replace(services.settings, home=tmp_path / "other")
    try:
        with pytest.raises(PortTaken) as refused:
            up(other, ["kafka"])
    finally:
        down(other)
    assert refused.value.pid == pids(services.settings)["kafka"]
    assert str(services.settings.home) in refused.value.command


def test_down_leaves_no_process_behind_and_keeps_the_data(services, tmp_path):
    own = replace(services.settings, home=tmp_path / "own", kafka_port=free_port())
    try:
        up(own, ["kafka"])
        running = [process.pid for process in family(all_records(own))]
        assert down(own) == len(running) == 1
        assert [pid for pid in running if lives(pid)] == []
        assert all_records(own) == []
        assert (own.home / "kafka" / "data" / "meta.properties").is_file()
    finally:
        down(own)
