"""Two renditions of a topic: their messages by id; partitions, retention, compaction and late messages.

The broker is stood in for by lists; real Kafka is in tests/system/test_rendition_verification.py.
"""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from tests.support.compared_renditions import said

from tidemark.connections import KafkaConnection
from tidemark.kafka.partitioning import key_hash
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.pipeline.expect import Expectation, RowChange
from tidemark.verification.renditions import topics
from tidemark.verification.renditions.matching import RuleMatcher
from tidemark.verification.renditions.topics import COMPACTED, REMOVED, compare_topics
from tidemark.writers.kafka import writer as kafka
from tidemark.writers.kafka.kind import KafkaDeclaration
from tidemark.writers.kafka.last_id import ID_HEADER, WRITER_HEADER
from tidemark.writers.kafka.output import REDELIVERED_BY, REDELIVERED_ID
from tidemark.writers.kafka.target import DescribedTopic
from tidemark.writers.kafka.writer import KafkaWriter

pytestmark = pytest.mark.unit


class Broker:
    """Topics as lists of records; an offset is a place in the list of a partition."""

    def __init__(self):
        self.topics, self.begins, self.compacted, self.read = {}, {}, set(), []

    def given(self, writer, topic, partitions=2, messages="0a 1b 2a 3c", *, late=()):
        """A topic with messages, an id and a key each; ``=x`` is a value."""
        found = self.topics[topic] = {number: [] for number in range(partitions)}
        for word in messages.split():
            head, _, value = word.partition("=")
            id_, key = head[:-1], head[-1].encode()
            names = (WRITER_HEADER, ID_HEADER)
            found[key_hash(key) % partitions].append(self.record(writer, names, id_, key, value or "v"))
        for id_ in late:
            names = (REDELIVERED_BY, REDELIVERED_ID)
            found[key_hash(b"a") % partitions].append(self.record(writer, names, str(id_), b"a", "v"))

    def record(self, writer, names, id_, key, value):
        headers = [("trace", b"1"), (names[0], f"orders/{writer}".encode()), (names[1], id_.encode())]
        return SimpleNamespace(key=key, value=value.encode(), headers=headers, timestamp=int(id_))

    def offsets(self, topic, partition):
        return self.begins.get((topic, partition), 0), len(self.topics[topic][partition])

    def records(self, topic, partition, first, end):
        self.read.append((topic, partition))
        yield from self.topics[topic][partition][first:end]

    @contextmanager
    def reading(self, target, what):
        yield self


@pytest.fixture
def broker(monkeypatch):
    broker = Broker()
    monkeypatch.setattr(topics, "reading", broker.reading)
    monkeypatch.setattr(topics, "end_of", lambda target, number: broker.offsets(target.topic, number)[1])
    monkeypatch.setattr(topics, "keeps_the_middle", lambda target: target.topic not in broker.compacted)
    described = lambda target: DescribedTopic(target.topic, len(broker.topics[target.topic]))  # noqa: E731
    monkeypatch.setattr(kafka, "describe_topic", described)
    return broker


def writer(name, topic):
    keys = {"name": "copy", "kind": "kafka", "topic": "copies"}
    declared = KafkaDeclaration.model_validate(keys, context={}).at_place(topic)
    connection = KafkaConnection(servers="127.0.0.1:1")
    return KafkaWriter("orders", declared.model_copy(update={"name": name}), connection)


def compared(*rules, last_id=100, late=frozenset()):
    matcher = RuleMatcher(tuple(Expectation.model_validate({"reason": "meant", **one}) for one in rules))
    old, new = writer("copy", "copies"), writer("copy.r2", "copies.r2")
    sides = [SimpleNamespace(writer=one, consumer=one.name) for one in (old, new)]
    positions = SimpleNamespace(redelivered=lambda consumer: {1: 1} if consumer in late else {})
    engine = SimpleNamespace(run=lambda what, work, pieces: map(work, pieces))
    comparing = SimpleNamespace(
        old=sides[0],
        new=sides[1],
        positions=positions,
        last_id=last_id,
        matcher=matcher,
        mode=VerificationMode.EXPLAINED if rules else VerificationMode.EXACT,
        engine=engine,
    )
    return compare_topics(comparing)


def test_topics_with_the_same_messages_are_the_same(broker):
    broker.given("copy", "copies")
    broker.given("copy.r2", "copies.r2")
    found = compared()
    assert (found.tally.total, found.looked_at) == (0, {"messages": 4, "partitions": 4})
    assert found.not_compared == {}


def test_topics_with_other_numbers_of_partitions_are_compared_as_a_whole(broker):
    broker.given("copy", "copies", partitions=3)
    broker.given("copy.r2", "copies.r2", partitions=1)
    found = compared()
    assert (found.tally.total, found.tally.rows) == (0, 4)


def test_missing_changed_and_added_messages(broker):
    broker.given("copy", "copies", messages="0a 1b=x 2a")
    broker.given("copy.r2", "copies.r2", messages="1b=y 2a 3c")
    found = compared()
    assert found.tally.changes == {RowChange.MISSING: 1, RowChange.CHANGED: 1, RowChange.ADDED: 1}
    assert said(found)[1] == "id 1: value x → y"
    rules = (
        {"column": "value"},
        {"rows": "missing", "where": "id == 0"},
        {"rows": "added", "where": "key == c"},
    )
    assert compared(*rules).tally.unexplained == 0


def test_messages_beyond_the_compared_binding_and_of_other_writers_do_not_count(broker):
    broker.given("copy", "copies")
    broker.given("copy.r2", "copies.r2", messages="0a 1b 2a 3c 4a")
    broker.topics["copies.r2"][0] += [broker.record("another", (WRITER_HEADER, ID_HEADER), "2", b"a", "z")]
    assert compared(last_id=3).tally.total == 0


def test_what_retention_has_removed_is_not_compared(broker):
    broker.given("copy", "copies", partitions=1, messages="0a 1b 2a 3c")
    broker.given("copy.r2", "copies.r2", partitions=1, messages="0a=other 1b 2a 3c")
    broker.begins["copies", 0] = 2
    found = compared()
    assert (found.tally.total, found.tally.rows, found.not_compared) == (0, 2, {REMOVED: 1})


def test_nothing_is_compared_of_a_partition_that_is_emptied(broker):
    broker.given("copy", "copies", partitions=1)
    broker.given("copy.r2", "copies.r2", partitions=1, messages="9a")
    broker.begins["copies", 0] = 4
    assert compared().tally.rows == 0


def test_of_a_compacted_topic_the_newest_message_of_each_key_counts(broker):
    broker.compacted = {"copies"}
    broker.given("copy", "copies", messages="1b 2a 3c")
    broker.given("copy.r2", "copies.r2", messages="0a 1b 2a 3c")
    found = compared()
    assert (found.tally.total, found.tally.rows, found.not_compared) == (0, 3, {COMPACTED: 4})


def test_a_message_that_was_sent_after_all_counts_with_its_id(broker):
    broker.given("copy", "copies", messages="1b 2a 3c", late=[0])
    broker.given("copy.r2", "copies.r2")
    assert compared(late={"copy"}).tally.total == 0
    assert compared().tally.changes == {RowChange.ADDED: 1}


def test_how_a_value_is_written_counts_in_an_exact_comparison_only(broker):
    broker.given("copy", "copies", messages='0a={"x":1,"y":2}')
    broker.given("copy.r2", "copies.r2", messages='0a={"y":2,"x":1.0}')
    assert compared().tally.columns == {"value": 1}
    assert compared({"rows": "missing"}).tally.total == 0
