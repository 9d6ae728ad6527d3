"""A topic that is deleted and made again in real Kafka: from the closed gate to a new journal (item 12).

As a person lives through it: the plan, the acceptance, the old journal that goes on with the other topic, and
a new one that begins exactly where the new topic begins. Deliveries are the library's, without Spark.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from tests.support.services.journal_histories import Sent
from tests.support.services.journal_runs import given_topic, read_pointers, read_visible, send
from tests.support.services.journal_world import given_keyspace
from tests.support.services.log_runs import LogRuns, declare_log, publish_here, spark_environ
from tests.support.waiting import wait_until

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import Delivered, deliver_to
from tidemark.faults import FaultPoint
from tidemark.journal.action import append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events
from tidemark.log.bind import OffsetsLost
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.source import read_still_available
from tidemark.pipeline.model import WriterStart

pytestmark = pytest.mark.system

OLD = "name: old, kind: journal, keyspace: {keyspace}"
NEW = (
    OLD + "}}\n  - {{name: new, kind: journal, keyspace: {keyspace}_new, "
    'namespaces: "^{topic}$", start: recreated'
)


@dataclass(frozen=True)
class Place:
    """A pipeline over two topics, of which the first is made again."""

    root: Path
    connections: Connections
    patch: pytest.MonkeyPatch
    topic: str
    other: str
    keyspace: str

    def declare(self, writers: str) -> LogRuns:
        return declare_log(
            self.root,
            self.topic,
            self.connections,
            self.patch,
            source=f'topics: ["{self.topic}", "{self.other}"]',
            writer=writers.replace("{keyspace}", self.keyspace).replace("{topic}", self.topic),
        )

    def send(self, topic: str, *numbers: int, key: str = "k") -> None:
        records = [
            Sent(
                0,
                *write_action(
                    append(key, 1_750_000_000_000 + n, Events((EncodedEvent(n, (), "text", f"{n}"),)))
                ),
            )
            for n in numbers
        ]
        send(self.connections, topic, records)

    def recreate(self) -> None:
        with KafkaAdminClient(**self.connections.kafka.client_options()) as admin:
            admin.delete_topics([self.topic])
            wait_until(lambda: self.topic not in admin.list_topics(), 30)
            topic = NewTopic(self.topic, 1, 1, topic_configs={"retention.ms": "-1"})
            wait_until(lambda: _created(admin, topic), 30)

    def numbers(self, keyspace: str, topic: str) -> dict[str, list[int]]:
        found = read_visible(connect(self.connections.control), keyspace, topic)
        return {key: sorted(n for _, n, _ in entity["rows"]) for key, entity in found.items()}


def _created(admin: KafkaAdminClient, topic: NewTopic) -> bool:
    try:
        admin.create_topics([topic])
    except Exception as error:  # the deletion of the old one is not over yet
        return "exists" not in str(error).lower()
    return True


@pytest.fixture
def place(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    name = f"again-{uuid4().hex[:8]}"
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    for variable, value in spark_environ().items():
        monkeypatch.setenv(variable, value)
    with ExitStack() as stack:
        for topic in (name, f"{name}-other"):
            stack.enter_context(given_topic(connections, topic, 1))
        keyspace = stack.enter_context(given_keyspace(services.cassandra, "again"))
        stack.callback(
            lambda: connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {keyspace}_new", timeout=60)
        )
        yield Place(tmp_path, connections, monkeypatch, name, f"{name}-other", keyspace)


def deliver(runs: LogRuns, writer: str) -> Delivered:
    opened = OpenPipeline(runs.pipeline, runs.connections)
    (declared,) = (one for one in runs.pipeline.writers if one.name == writer)
    return deliver_to(
        opened.writer(writer),
        opened.log,
        opened.positions,
        "test",
        write_parts_here,
        limit=10**9,
        reload=lambda: opened.positions.load(writer),
        start=WriterStart.RECREATED if declared.start is WriterStart.RECREATED else NOTHING_YET,
    )


def topic_id(runs: LogRuns, topic: str) -> str:
    from tidemark.pipeline.model import source_topics

    found = read_still_available(source_topics(runs.pipeline), runs.connections.kafka, [topic])
    return found.topic_ids[topic]


def test_a_topic_made_again_reaches_a_journal_of_its_own_and_the_old_one_goes_on_with_the_other(
    place: Place,
) -> None:
    runs = place.declare(OLD)
    place.send(place.topic, 1, 2, 3)
    place.send(place.other, 1)
    publish_here(runs, "run-1")
    assert deliver(runs, "old").gate is None

    # Made again, the log's gate closes; the plan says what becomes of each writer.
    place.recreate()
    place.send(place.topic, 1, 2, 3, 4, 5, key="new")
    place.send(place.other, 2)
    with pytest.raises(OffsetsLost):
        publish_here(runs, "run-2")
    plan = runs.command("log", "accept", runs.name)
    assert (
        f"writer old (journal) goes on with the other topics and leaves out the new topic {place.topic}"
        in (plan.out)
    ), plan
    assert runs.accept("the topic was made again on purpose", FaultPoint.ACCEPT_RECORDED).code == -9
    assert runs.accept("the topic was made again on purpose").code == 0

    # The old journal goes on with the other topic, and says what it leaves out.
    binding = publish_here(runs, "run-3")
    delivered = deliver(runs, "old")
    assert (delivered.gate, delivered.position) == (None, binding.end)
    assert delivered.total.details["left_out"] == 5
    assert place.numbers(place.keyspace, place.topic) == {"k": [1, 2, 3]}
    assert place.numbers(place.keyspace, place.other) == {"k": [1, 2]}
    shown = runs.command("gate", "show", runs.name)
    assert f"leaves out topic {place.topic}, which was made again: 5 messages from id" in shown.out, shown

    # A new one begins with the new topic, in a keyspace of its own, and gets everything captured since.
    runs = place.declare(NEW)
    delivered = deliver(runs, "new")
    assert (delivered.gate, delivered.position) == (None, binding.end)
    assert place.numbers(f"{place.keyspace}_new", place.topic) == {"new": [1, 2, 3, 4, 5]}
    assert read_pointers(connect(place.connections.control), f"{place.keyspace}_new", place.topic) == {0: 4}
    place.send(place.topic, 6, key="new")
    publish_here(runs, "run-4")
    assert deliver(runs, "new").gate is None
    assert deliver(runs, "old").gate is None

    # Both are proved, each by the messages of the topic that it holds.
    for (
        writer,
        key,
    ) in (("new", "new"), ("old", "k")):
        verified = runs.command("journal", "verify", runs.name, writer, "--entity", key, "--json")
        found = json.loads(verified.out)
        assert (verified.code, found["clean"], found["not_provable"]) == (0, True, {}), verified
