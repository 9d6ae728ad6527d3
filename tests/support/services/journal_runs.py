"""Journals in real Cassandra: what a reader sees of them, and the runs and deaths that bring them there."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from tests.support.services.journal_histories import PARTITIONS, History, Sent
from tests.support.services.log_runs import (
    LogRuns,
    connections_file,
    declare_log,
    deliver_here,
    publish_here,
    spark_environ,
)
from tests.support.waiting import wait_until

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.faults import AT_ONCE, FaultPoint
from tidemark.journal.segments import head_segments
from tidemark.log.model.binding import Binding
from tidemark.settings import ROOT

WRITER = "cassandra"
HOLDER = "history"
"""One for all deliveries: what died need not be waited for."""
SEGMENT_SIZE = 10
FEW = "40"
"""Messages that are taken at once, and rows that wait: a death is to fall between two writes of rows."""
DAY = 86_400 * 10**9
POINTS = (
    FaultPoint.DELIVER_PARTS_WRITTEN,
    FaultPoint.DELIVER_FINISHED,
    FaultPoint.DELIVER_SETTLED,
    FaultPoint.DELIVER_COMMITTED,
)

Visible = dict[str, dict[str, Any]]
"""What a reader can tell of every entity of a topic (the design's "Same"), by its key."""


def read_visible(session: Any, keyspace: str, topic: str) -> Visible:
    """Every entity of a topic as the tables have it."""
    return read_all_visible(session, keyspace).get(topic, {})


def read_all_visible(session: Any, keyspace: str) -> dict[str, Visible]:
    """Every entity of every topic."""
    heads: dict[tuple[str, str], dict[int, Any]] = {}
    for row in session.execute(f"SELECT * FROM {keyspace}.metajournal"):
        heads.setdefault((row.topic, row.id), {})[row.segment] = row
    rows: dict[tuple[str, str], list[Any]] = {}
    for row in session.execute(f"SELECT * FROM {keyspace}.journal"):
        rows.setdefault((row.topic, row.id), []).append(row)
    found: dict[str, Visible] = {}
    for (topic, key), of in heads.items():
        head = next(of[segment] for segment in head_segments(key) if segment in of)
        found.setdefault(topic, {})[key] = _told(head, rows.get((topic, key), ()))
    return found


def _told(head: Any, rows: Iterable[Any]) -> dict[str, Any]:
    after = head.expire_after
    return {
        "seq_nr": head.seq_nr,
        "delete_to": head.delete_to,
        "expire_after": None if after is None else after.days * DAY + after.nanoseconds,
        "expire_on": None if head.expire_on is None else head.expire_on.date(),
        "segment_size": head.segment_size,
        "rows": {
            (row.segment, row.seq_nr, _milliseconds(row.timestamp)): _cells(row)
            for row in rows
            if row.seq_nr > (head.delete_to or 0) and head.record_id in (None, row.meta_record_id)
        },
    }


def _cells(row: Any) -> dict[str, Any]:
    cells = {**row._asdict(), "tags": frozenset(row.tags or ()), "headers": dict(row.headers or {})}
    for key in ("id", "topic", "segment", "seq_nr", "timestamp", "meta_record_id"):
        del cells[key]
    return {name: value for name, value in cells.items() if value is not None}


def _milliseconds(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def read_pointers(session: Any, keyspace: str, topic: str) -> dict[int, int]:
    """The pointers of a topic, by partition."""
    return read_all_pointers(session, keyspace).get(topic, {})


def read_all_pointers(session: Any, keyspace: str) -> dict[str, dict[int, int]]:
    """The pointers of every topic."""
    found: dict[str, dict[int, int]] = {}
    for row in session.execute(f"SELECT topic, partition, offset FROM {keyspace}.pointer2"):
        found.setdefault(row.topic, {})[row.partition] = row.offset
    return found


def without_dates(visible: Visible) -> Visible:
    """What is the same however the messages were bound."""
    return {
        key: {name: value for name, value in entity.items() if name != "expire_on"}
        for key, entity in visible.items()
    }


def differences(found: Visible, expected: Visible) -> dict[str, tuple[Any, Any]]:
    """The entities that are not as expected: what was found of them, and what should have been."""
    return {
        key: (found.get(key), expected.get(key))
        for key in sorted(found.keys() | expected.keys())
        if found.get(key) != expected.get(key)
    }


def send(connections: Connections, topic: str, records: Iterable[Sent]) -> None:
    """Send records to the partitions they name; returns when all are acknowledged."""
    with KafkaProducer(acks="all", linger_ms=5, **connections.kafka.client_options()) as producer:
        sent = [
            producer.send(
                topic,
                one.value,
                key=one.key,
                headers=list(one.headers),
                partition=one.partition,
                timestamp_ms=one.timestamp,
            )
            for one in records
        ]
        producer.flush()
    for each in sent:
        each.get(0)


@contextmanager
def given_topic(connections: Connections, name: str, partitions: int = PARTITIONS) -> Iterator[str]:
    """A topic that keeps records of any age, and is gone afterwards."""
    with KafkaAdminClient(**connections.kafka.client_options()) as admin:
        admin.create_topics([NewTopic(name, partitions, 1, topic_configs={"retention.ms": "-1"})])
        try:
            yield name
        finally:
            admin.delete_topics([name])


def make_again(connections: Connections, name: str, partitions: int = PARTITIONS) -> None:
    """Delete a topic and make another one of its name; returns when Kafka has it."""
    with KafkaAdminClient(**connections.kafka.client_options()) as admin:
        old = admin.describe_topics([name])[0]["topic_id"]
        admin.delete_topics([name])
        wait_until(lambda: name not in admin.list_topics(), 30, f"topic {name} to be gone")
        admin.create_topics([NewTopic(name, partitions, 1, topic_configs={"retention.ms": "-1"})])

        def is_new() -> bool:
            described = admin.describe_topics([name])[0]
            return not described["error_code"] and described["topic_id"] != old

        wait_until(is_new, 30, f"a new topic {name}")


@dataclass(frozen=True)
class JournalRuns:
    """One pipeline that replicates a topic to a keyspace of its own."""

    runs: LogRuns
    topic: str
    keyspace: str

    @property
    def session(self) -> Any:
        return connect(self.runs.connections.control)

    @property
    def visible(self) -> Visible:
        return read_visible(self.session, self.keyspace, self.topic)

    @property
    def pointers(self) -> dict[int, int]:
        return read_pointers(self.session, self.keyspace, self.topic)

    def replicate(
        self, run_id: str, death: "FaultPoint | float | None" = None, *, with_spark: bool = True
    ) -> Binding:
        """One run: what is new is bound, captured, published and delivered.

        With a death the first delivery is killed: at a point, or when so much of it can be seen.
        """
        binding = publish_here(self.runs, run_id)
        if not with_spark:
            deliver_here(OpenPipeline(self.runs.pipeline, self.runs.connections), WRITER)
            return binding
        if isinstance(death, FaultPoint):
            ended = self.runs.deliver(HOLDER, death)
            assert ended.code == -signal.SIGKILL, (death, ended)
        elif death is not None:
            self._kill_halfway(binding, death)
        ended = self.runs.deliver(HOLDER)
        assert ended.summary["writers"][WRITER]["position"] == binding.end, ended
        return binding

    def _kill_halfway(self, binding: Binding, share: float) -> None:
        """Kill a delivery with all its processes as soon as it has written this share of the binding."""
        reached = binding.t + round(binding.width * share)
        with connections_file(self.runs.connections) as connections:
            command = [sys.executable, str(ROOT / "spark_apps" / "deliver.py"), "--pipeline", self.runs.name]
            command += ["--connections", str(connections), "--holder", HOLDER]
            command += ["--summary", str(Path(connections.parent, "summary.json"))]
            delivery = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **spark_environ(), AT_ONCE: FEW},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                wait_until(
                    lambda: (
                        delivery.poll() is not None
                        or any(write_time >= reached for write_time in self._write_times())
                    ),
                    120,
                    "a row of a delivery that is to be killed",
                )
            finally:
                _kill_all(delivery)
        assert delivery.returncode == -signal.SIGKILL, "the delivery was done before it could be killed"

    def _write_times(self) -> Iterator[int]:
        """Of all rows there are; nothing while there is no table."""
        keyspace = self.session.cluster.metadata.keyspaces.get(self.keyspace)
        if keyspace and "journal" in keyspace.tables:
            rows = self.session.execute(f"SELECT writetime(partition) AS time FROM {self.keyspace}.journal")
            yield from (row.time for row in rows)

    def difference_to(self, history: History, bound_at: int | None = None) -> dict[str, tuple[Any, Any]]:
        """The entities that a reader does not see as the history left them, and pointers likewise."""
        found = self.visible if bound_at is not None else without_dates(self.visible)
        different = differences(found, history.expected(SEGMENT_SIZE, bound_at))
        if self.pointers != history.pointers:
            different["pointer2"] = (self.pointers, history.pointers)
        return different


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a session of its own, with everything in it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def given_journal(
    root: Path, connections: Connections, topic: str, name: str, patch: pytest.MonkeyPatch
) -> Iterator[JournalRuns]:
    """A pipeline of its own and its keyspace, which is gone afterwards."""
    keyspace = name.replace("-", "_")
    journal = declare_journal(root, connections, topic, name, keyspace, patch)
    try:
        yield journal
    finally:
        journal.session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)


def declare_journal(
    root: Path,
    connections: Connections,
    topic: str,
    name: str,
    keyspace: str,
    patch: pytest.MonkeyPatch,
    further: str = "",
) -> JournalRuns:
    """A pipeline of its own; ``further`` for its source."""
    runs = declare_log(
        root,
        name,
        connections,
        patch,
        source=f'topics: ["{topic}"]{further}',
        writer=f"name: {WRITER}, kind: journal, keyspace: {keyspace}, segment_size: {SEGMENT_SIZE}",
    )
    return JournalRuns(runs, topic, keyspace)


def random_death(chance: random.Random) -> FaultPoint | float:
    """Somewhere in a delivery."""
    return chance.choice((*POINTS, *(chance.uniform(0, 0.7) for _ in POINTS)))
