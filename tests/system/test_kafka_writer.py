"""The kafka writer against real Kafka: every message once and in order, despite crashes."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewPartitions
from tests.support.leases import FakeLease
from tests.support.log_samples import SENT_AT, given_binding
from tests.support.services.broker import stalled
from tests.support.waiting import wait_until

from tidemark.connections import KafkaConnection, read_environment_connection
from tidemark.delivery.writer import BadMessage, Part, Writing, Written
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.writers.kafka import last_id
from tidemark.writers.kafka import output as kafka_output
from tidemark.writers.kafka import target as kafka_target
from tidemark.writers.kafka.kind import KafkaDeclaration
from tidemark.writers.kafka.last_id import find_last_id
from tidemark.writers.kafka.output import OutputPartition
from tidemark.writers.kafka.target import Fenced, NoTargetTopic, TargetFailed, TargetTopic
from tidemark.writers.kafka.writer import KafkaWriter, partition_of

pytestmark = pytest.mark.system

BINDING = given_binding(1_000, 0, ("orders", 0, 0, 1_000_000))


HELD = FakeLease()


class Topic:
    """A topic of one test, and what its readers see."""

    def __init__(self, kafka: KafkaConnection, partitions: int) -> None:
        self.kafka, self.partitions = kafka, partitions
        self.name = f"republished-{uuid4().hex[:8]}"

    def writer(self, **keys: object) -> KafkaWriter:
        declared = {"name": "out", "kind": "kafka", "topic": self.name} | keys
        declaration = KafkaDeclaration.model_validate(declared, context={})
        return KafkaWriter(self.name, declaration, self.kafka)

    @property
    def target(self) -> TargetTopic:
        return TargetTopic(self.name, "out", self.name, "kafka_default", self.kafka)

    def _consumer(self, isolation: str) -> Consumer:
        options = {
            **self.kafka.librdkafka_options(),
            "group.id": "test",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 5,
        }
        return Consumer(options)

    def _end(self, partition: int, isolation: str) -> int:
        with closing(self._consumer(isolation)) as consumer:
            return int(consumer.get_watermark_offsets(TopicPartition(self.name, partition), timeout=20)[1])

    def wait_for_transactions(self, partition: int = 0) -> None:
        """A commit is answered before its markers are in the partition: readers may be a moment late."""
        end = self._end(partition, "read_uncommitted")
        wait_until(lambda: self._end(partition, "read_committed") >= end, 20, "the end of transactions")

    def read(self, partition: int = 0, isolation: str = "read_committed") -> list[Message]:
        """What is in a partition, as far as readers can see it."""
        found: list[Message] = []
        with closing(self._consumer(isolation)) as consumer:
            consumer.assign([TopicPartition(self.name, partition, 0)])
            while (message := consumer.poll(20)) is not None:
                if message.error():
                    assert message.error().code() == KafkaError._PARTITION_EOF
                    return found
                found.append(message)
        raise AssertionError("the end of the partition did not come")

    def ids(self, partition: int = 0) -> list[int]:
        """The ids in a partition, in their order there, once no transaction is open."""
        self.wait_for_transactions(partition)
        return self.visible_ids(partition)

    def visible_ids(self, partition: int = 0) -> list[int]:
        """The ids that a reader sees right now."""
        return [int(dict(message.headers())["tidemark-id"]) for message in self.read(partition)]

    def send_foreign(self, count: int, *headers: tuple[str, bytes]) -> None:
        """Messages of another producer into partition 0."""
        with KafkaProducer(**self.kafka.client_options()) as producer:
            for i in range(count):
                producer.send(self.name, b"foreign", key=b"%d" % i, headers=list(headers), partition=0)

    def foreign_transaction(self) -> Producer:
        """Another producer's transaction with one message in partition 0, still open."""
        options = self.kafka.librdkafka_options() | {"transactional.id": f"{self.name}.foreign"}
        producer = Producer(options)
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(self.name, b"open", b"k", partition=0)
        producer.flush(20)
        return producer


@pytest.fixture
def topic(services: Any) -> Topic:
    return given_topic(services, 1)


@pytest.fixture(autouse=True)
def _nothing_left_open() -> Iterator[None]:
    yield
    kafka_output._close_all()


def given_topic(services: Any, partitions: int, **configs: str) -> Topic:
    topic = Topic(services.kafka, partitions)
    services.create_topic(topic.name, partitions, **configs)
    return topic


def given_batch(*messages: dict[str, object]) -> pa.RecordBatch:
    plain = {"t": 1, "write_time": 1, "topic": "orders", "partition": 0, "timestamp": SENT_AT}
    plain |= {"timestamp_type": 0, "key": b"k", "value": b"{}", "namespace": "orders"}
    return pa.RecordBatch.from_pylist(
        [plain | {"offset": message["id"]} | message for message in messages], schema=LOG_SCHEMA
    )


def keyed(ids: range) -> pa.RecordBatch:
    return given_batch(*({"id": id_, "key": b"key-%d" % (id_ % 50)} for id_ in ids))


def write(writer: KafkaWriter, *batches: pa.RecordBatch, lease: FakeLease = HELD) -> Written:
    """Write a binding as a delivery does: all its parts, each on its own."""
    writer.prepare()
    total = Written()
    for part in writer.cut(BINDING, ()):
        total += writer.write(part, Writing(batches, lease))
    return total


def write_singly(writer: KafkaWriter, batch: pa.RecordBatch) -> Written:
    """Write messages as a resume does: each on its own, wherever it belongs."""
    total = Written()
    for row in range(batch.num_rows):
        message = batch.slice(row, 1)
        id_ = message["id"][0].as_py()
        part = Part(BINDING, (), first_id=id_, last_id=id_)
        total += writer.write(part, Writing([message], HELD))
    return total


def plain_messages(ids: range) -> list[dict[str, object]]:
    return [{"id": id_, "key": b"k", "value": b"v", "headers": None, "timestamp": SENT_AT} for id_ in ids]


def begin(output: OutputPartition, ids: range) -> Producer:
    """Messages in a transaction that is still open; the client that can end it."""
    output._producer.begin(output._records(plain_messages(ids)))
    client = output._producer._producer
    client.flush(20)
    return client


def commit(output: OutputPartition, ids: range) -> None:
    for message in plain_messages(ids):
        output.add(message, HELD)
    output.commit(HELD)


# Once and in order


def test_every_message_is_there_once_and_in_id_order(services, monkeypatch):
    monkeypatch.setattr(kafka_output, "MESSAGES_AT_ONCE", 70)
    topic = given_topic(services, 3)
    assert write(topic.writer(), keyed(range(600)), keyed(range(600, 1000))) == Written(written=1000)
    for partition in range(3):
        expected = [id_ for id_ in range(1000) if partition_of(b"key-%d" % (id_ % 50), id_, 3) == partition]
        assert topic.ids(partition) == expected


def test_a_key_is_where_another_producer_puts_it(services):
    topic, other = given_topic(services, 5), given_topic(services, 5)
    keys = [b"key-%d" % i for i in range(50)]
    write(topic.writer(), given_batch(*({"id": i, "key": key} for i, key in enumerate(keys))))
    with KafkaProducer(**services.kafka.client_options()) as producer:
        for key in keys:
            producer.send(other.name, b"v", key=key)
    for partition in range(5):
        topic.wait_for_transactions(partition)
        assert [m.key() for m in topic.read(partition)] == [m.key() for m in other.read(partition)]


def test_what_is_written_again_is_not_doubled(services):
    topic = given_topic(services, 2)
    write(topic.writer(), keyed(range(300)))
    assert write(topic.writer(), keyed(range(400))) == Written(written=100, ignored=300)
    assert sorted(topic.ids(0) + topic.ids(1)) == list(range(400))


def test_messages_that_come_singly_are_there_once_and_in_order(services):
    topic = given_topic(services, 2)
    writer, batch = topic.writer(), keyed(range(40))
    assert write_singly(writer, batch) == Written(written=40)
    assert write_singly(writer, batch) == Written(ignored=40)
    assert [topic.ids(0), topic.ids(1)] == [sorted(topic.ids(0)), sorted(topic.ids(1))]
    assert sorted(topic.ids(0) + topic.ids(1)) == list(range(40))


def test_singly_in_bulk_and_singly_again(services):
    topic = given_topic(services, 2)
    writer = topic.writer()
    write_singly(writer, keyed(range(10)))
    write(writer, keyed(range(30)))
    write_singly(writer, keyed(range(30, 40)))
    assert sorted(topic.ids(0) + topic.ids(1)) == list(range(40))


def test_everything_of_a_message_survives(topic):
    headers = [{"name": "a", "value": b"1"}, {"name": "a", "value": None}, {"name": "ü", "value": b""}]
    write(
        topic.writer(),
        given_batch(
            {"id": 1, "key": b"\xff", "value": b"\x00", "headers": headers, "timestamp": 1_234},
            {"id": 2, "key": None, "value": b"v"},
            {"id": 3, "key": b"k", "value": None, "headers": []},
            {"id": 4, "key": None, "value": None},
            {"id": 5, "key": b"", "value": b""},
        ),
    )
    ours = [("tidemark-writer", f"{topic.name}/out".encode())]
    topic.wait_for_transactions()
    first, *others = topic.read()
    assert (first.key(), first.value(), first.timestamp()[1]) == (b"\xff", b"\x00", 1_234)
    assert first.headers() == [("a", b"1"), ("a", None), ("ü", b""), *ours, ("tidemark-id", b"1")]
    assert [(m.key(), m.value(), m.timestamp()[1]) for m in others] == [
        (None, b"v", SENT_AT),
        (b"k", None, SENT_AT),
        (None, None, SENT_AT),
        (b"", b"", SENT_AT),
    ]
    assert [m.headers() for m in others] == [[*ours, ("tidemark-id", b"%d" % id_)] for id_ in (2, 3, 4, 5)]


def test_a_reader_of_another_make_sees_the_same(topic):
    write(topic.writer(), keyed(range(20)))
    options = topic.kafka.client_options() | {"isolation_level": "read_committed"}
    with KafkaConsumer(
        topic.name, auto_offset_reset="earliest", consumer_timeout_ms=3_000, **options
    ) as consumer:
        found = [int(dict(record.headers)["tidemark-id"]) for record in islice(consumer, 20)]
    assert found == list(range(20))


def test_a_large_message_is_the_topic_s_business(services):
    topic = given_topic(services, 1, **{"max.message.bytes": "3000000"})
    assert write(topic.writer(), given_batch({"id": 1, "value": b"v" * 2_000_000})).written == 1
    with pytest.raises(TargetFailed, match=r"did not take ids 2 to 2 in partition 0: .*too large"):
        write(topic.writer(), given_batch({"id": 2, "value": b"v" * 4_000_000}))
    assert topic.ids() == [1]


def test_it_works_with_tls_and_a_password(services, topic):
    marked = read_environment_connection("kafka_marked", os.environ)
    assert marked is not None
    topic.kafka = KafkaConnection.from_airflow("kafka_marked", marked)
    assert write(topic.writer(), keyed(range(5))).written == 5
    assert topic.ids() == list(range(5))


# Bad messages


def test_everything_below_a_bad_message_is_there_and_nothing_above_in_its_partition(services, monkeypatch):
    monkeypatch.setattr(kafka_output, "MESSAGES_AT_ONCE", 7)
    topic = given_topic(services, 2)
    writer = topic.writer(transforms=[{"pick": {"fields": ["n"]}}])
    bad_id = 61
    messages = ({"id": i, "key": None, "value": b"bad" if i == bad_id else b'{"n":1}'} for i in range(100))
    batch = given_batch(*messages)
    writer.prepare()
    even, odd = writer.cut(BINDING, ())
    assert writer.write(even, Writing([batch], HELD)).written == 50
    with pytest.raises(BadMessage) as bad:
        writer.write(odd, Writing([batch], HELD))
    assert bad.value.id == bad_id
    assert topic.ids(1) == list(range(1, bad_id, 2))
    # Once it is acknowledged, the others follow.
    good = batch.filter(pa.array([i != bad_id for i in range(100)]))
    assert writer.write(odd, Writing([good], HELD)) == Written(written=19, ignored=30)
    assert topic.ids(1) == [i for i in range(1, 100, 2) if i != bad_id]


# Processes that die or come too late


def test_an_older_producer_is_stopped_and_changes_nothing(topic):
    older = OutputPartition(topic.target, 0)
    commit(older, range(3))
    newer = OutputPartition(topic.target, 0)
    with pytest.raises(Fenced, match=rf"tidemark\.{topic.name}\.out\.0") as fenced:
        commit(older, range(3, 6))
    assert fenced.value.partition == 0
    commit(newer, range(3, 5))
    assert topic.ids() == [0, 1, 2, 3, 4]
    newer.close()


def test_an_older_writer_that_comes_singly_is_stopped_too(topic, monkeypatch):
    writer = topic.writer()
    write_singly(writer, keyed(range(2)))
    OutputPartition(topic.target, 0).close()  # of another process
    with pytest.raises(Fenced):
        write_singly(writer, keyed(range(2, 3)))
    assert topic.ids() == [0, 1]
    assert write_singly(writer, keyed(range(2, 3))).written == 1


def test_a_lease_that_is_lost_stops_before_the_next_transaction(topic, monkeypatch):
    monkeypatch.setattr(kafka_output, "MESSAGES_AT_ONCE", 10)
    with pytest.raises(InterruptedError):
        write(topic.writer(), keyed(range(50)), lease=FakeLease(refuses_after=3))  # one to open, two to send
    assert topic.ids() == list(range(20))


def test_what_was_not_committed_is_never_seen(topic):
    def batches() -> Iterator[pa.RecordBatch]:
        yield keyed(range(kafka_output.MESSAGES_AT_ONCE + 10))
        raise OSError("the log cannot be read")

    writer = topic.writer()
    with pytest.raises(OSError, match="the log"):
        writer.write(Part(BINDING, (), 0), Writing(batches(), HELD))
    assert topic.ids() == list(range(kafka_output.MESSAGES_AT_ONCE))


def test_a_process_that_dies_in_its_transaction_leaves_nothing(topic):
    write(topic.writer(), keyed(range(3)))
    script = f"""
        import os
        from tidemark.connections import KafkaConnection
        from tidemark.writers.kafka.output import OutputPartition
        from tidemark.writers.kafka.target import TargetTopic
        kafka = KafkaConnection(servers={topic.kafka.servers!r})
        target = TargetTopic({topic.name!r}, "out", {topic.name!r}, "kafka_default", kafka)
        output = OutputPartition(target, 0)
        dead = {{"key": b"k", "value": b"dead", "headers": None, "timestamp": 1}}
        output._producer.begin(output._records({{**dead, "id": id_}} for id_ in range(3, 6)))
        output._producer._producer.flush(20)
        os.kill(os.getpid(), 9)
    """
    dead = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, timeout=60)
    assert dead.returncode == -9
    assert [message.value() for message in topic.read(isolation="read_uncommitted")][3:] == [b"dead"] * 3
    assert write(topic.writer(), keyed(range(10))) == Written(written=7, ignored=3)
    assert topic.ids() == list(range(10))
    assert b"dead" not in [message.value() for message in topic.read()]


def test_a_broker_that_stalls_is_an_error_and_nothing_is_doubled_afterwards(services, topic, monkeypatch):
    monkeypatch.setattr(kafka_target, "ANSWERS_WITHIN", 5.0)
    writer = topic.writer()
    write_singly(writer, keyed(range(3)))
    with stalled(services), pytest.raises(TargetFailed, match=r"did not take ids 3 to 3 in partition 0"):
        write_singly(writer, keyed(range(3, 4)))
    monkeypatch.setattr(kafka_target, "ANSWERS_WITHIN", 20.0)
    write_singly(writer, keyed(range(3, 8)))
    assert topic.ids() == list(range(8))


def test_a_commit_whose_answer_is_lost_is_neither_lost_nor_doubled(services, topic):
    output = OutputPartition(topic.target, 0)
    client = begin(output, range(3))
    with stalled(services):
        with pytest.raises(KafkaException, match="_TIMED_OUT"):
            client.commit_transaction(1)  # is read when the broker goes on
        output.close()
    write(topic.writer(), keyed(range(5)))
    assert topic.ids() == list(range(5))


# Where a partition ends


def test_the_last_id_of_an_empty_partition_is_none(topic):
    assert find_last_id(topic.target, 0) == -1


def test_the_last_id_is_found_behind_the_markers_of_transactions(topic):
    output = OutputPartition(topic.target, 0)
    commit(output, range(5, 8))
    for _ in range(3 * last_id.FIRST_WINDOW):
        begin(output, range(900, 901)).abort_transaction(20)
    assert len(topic.read(isolation="read_uncommitted")) == 3 + 3 * last_id.FIRST_WINDOW
    assert find_last_id(topic.target, 0) == 7
    output.close()


def test_the_last_id_is_found_behind_what_others_sent(topic):
    write(topic.writer(), keyed(range(5)))
    topic.send_foreign(last_id.FIRST_WINDOW * last_id.GROWTH * 2)
    topic.send_foreign(3, ("tidemark-id", b"not a number"))
    topic.send_foreign(3, ("tidemark-id", b"999"), ("tidemark-writer", b"invoices/out"))
    assert find_last_id(topic.target, 0) == 4


def test_among_others_alone_there_is_no_last_id(topic):
    topic.send_foreign(200, ("tidemark-id", b"999"))
    assert find_last_id(topic.target, 0) == -1


def test_a_copy_of_an_old_message_does_not_take_the_last_id_back(topic):
    write(topic.writer(), keyed(range(5)))
    topic.send_foreign(1, ("tidemark-id", b"2"), ("tidemark-writer", f"{topic.name}/out".encode()))
    assert find_last_id(topic.target, 0) == 4


def test_messages_that_came_through_another_writer_count_by_their_last_headers(topic):
    headers = [{"name": "tidemark-writer", "value": b"a/b"}, {"name": "tidemark-id", "value": b"999"}]
    write(topic.writer(), given_batch({"id": 4, "headers": headers}))
    assert find_last_id(topic.target, 0) == 4
    assert write(topic.writer(), keyed(range(4, 6))) == Written(written=1, ignored=1)


def test_nothing_is_decided_behind_an_open_transaction_of_others(topic):
    write(topic.writer(), keyed(range(3)))
    topic.wait_for_transactions()
    output = OutputPartition(topic.target, 0)
    foreign = topic.foreign_transaction()
    commit(output, range(3, 6))  # committed, and no reader can see it yet
    assert topic.visible_ids() == [0, 1, 2]
    with pytest.raises(TargetFailed, match="another producer's transaction is open"):
        find_last_id(topic.target, 0, others_end_within=0.5)
    foreign.abort_transaction(20)
    assert find_last_id(topic.target, 0) == 5
    output.close()


# What may be acknowledged


def test_a_message_that_is_in_the_topic_cannot_be_acknowledged(topic):
    messages = keyed(range(3))
    topic.writer().write(Part(BINDING, (), 0), Writing([messages.slice(0, 2)], HELD))
    refusals = [topic.writer().refuses_acknowledgement(one) for one in messages.to_pylist()]
    assert [bool(one) for one in refusals] == [True, True, False]
    assert "it is in the topic already" in str(refusals[0])


# What cannot be written to


def test_a_topic_that_does_not_exist_is_refused_and_not_created(services):
    missing = Topic(services.kafka, 1)
    with pytest.raises(NoTargetTopic, match=f"Kafka has no topic {missing.name}.*tidemark topics create"):
        missing.writer().prepare()
    with pytest.raises(NoTargetTopic):
        missing.writer().is_reachable()
    with KafkaAdminClient(**services.kafka.client_options()) as admin:
        assert missing.name not in admin.list_topics()


def test_a_topic_that_answers_is_reachable(topic):
    topic.writer().is_reachable()


def test_a_broker_that_does_not_answer_is_an_error(topic, monkeypatch):
    monkeypatch.setattr(kafka_target, "ANSWERS_WITHIN", 2.0)
    topic.kafka = KafkaConnection(servers="127.0.0.1:1")
    with pytest.raises(TargetFailed, match=r"could not be looked at: .*Connection refused"):
        topic.writer().is_reachable()
    with pytest.raises(TargetFailed, match="could not be looked at"):
        topic.writer().shape  # noqa: B018
    writer = KafkaWriter(topic.name, topic.writer().declared, topic.kafka, partitions=1)
    with pytest.raises(TargetFailed, match=r"could not be opened for writing in partition 0: .*refused"):
        writer.write(Part(BINDING, (), 0), Writing([keyed(range(3))], HELD))


def test_a_changed_number_of_partitions_changes_the_shape(services):
    topic = given_topic(services, 2)
    before = topic.writer().shape
    with KafkaAdminClient(**services.kafka.client_options()) as admin:
        admin.create_partitions({topic.name: NewPartitions(3)})
    assert (before["partitions"], topic.writer().shape["partitions"]) == (2, 3)
