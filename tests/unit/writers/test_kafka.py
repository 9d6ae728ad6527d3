"""The kafka writer without Kafka: where a message goes, what is counted, what is kept open and what is not.

The partitions are stood in for by lists; what real ones do is in tests/system/test_kafka_writer.py.
"""

import pickle

import pyarrow as pa
import pytest
from tests.support.leases import FakeLease
from tests.support.log_samples import SENT_AT, given_binding
from tests.support.memory_partition import MemoryPartition

from tidemark.connections import KafkaConnection
from tidemark.delivery.writer import BadMessage, Later, Part, TargetIdentity, TargetReplaced, Writing, Written
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.writers.kafka import output as kafka_output
from tidemark.writers.kafka import writer as kafka
from tidemark.writers.kafka.kind import KafkaDeclaration
from tidemark.writers.kafka.target import DescribedTopic, Fenced, NoTargetTopic, TargetFailed, TargetTopic
from tidemark.writers.kafka.writer import KafkaWriter, partition_of

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000, 100, ("orders", 0, 0, 100))
PICK = [{"pick": {"fields": ["n"]}}]


def given_writer(partitions: int | None = 2, **keys: object) -> KafkaWriter:
    declared = {"name": "out", "kind": "kafka", "topic": "copy"} | keys
    connection = KafkaConnection(servers="127.0.0.1:1")
    return KafkaWriter(
        "orders", KafkaDeclaration.model_validate(declared, context={}), connection, partitions
    )


def given_batch(*messages: dict[str, object]) -> pa.RecordBatch:
    plain = {"t": 1, "write_time": 1, "topic": "orders", "partition": 0, "timestamp": SENT_AT}
    plain |= {"timestamp_type": 0, "key": None, "value": b"{}", "namespace": "orders"}
    return pa.RecordBatch.from_pylist(
        [plain | {"offset": message["id"]} | message for message in messages], schema=LOG_SCHEMA
    )


def numbered(*ids: int) -> pa.RecordBatch:
    """Messages without keys, which go to the partition that their id says."""
    return given_batch(*({"id": id_} for id_ in ids))


@pytest.fixture
def topic(monkeypatch):
    monkeypatch.setattr(kafka_output, "OutputPartition", MemoryPartition)
    monkeypatch.setattr(kafka_output, "_kept", {})
    for name, empty in {"holds": {}, "opened": [], "closed": []}.items():
        monkeypatch.setattr(MemoryPartition, name, empty)
    return MemoryPartition


def write(writer, number, *batches, lease=None):
    return writer.write(Part(BINDING, (), number), Writing(batches, lease or FakeLease()))


def write_singly(writer, id_, lease=None):
    part = Part(BINDING, (), first_id=id_, last_id=id_)
    return writer.write(part, Writing([numbered(id_)], lease or FakeLease()))


# Where a message goes


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
@pytest.mark.parametrize("count", [1, 3, 12])
def test_a_key_goes_where_kafka_s_own_producers_send_it(key, hashed, count):
    """The hashes are those of Kafka's UtilsTest.testMurmur2."""
    assert partition_of(key, 7, count) == (hashed & 0x7FFF_FFFF) % count


def test_without_a_key_the_id_decides():
    assert [partition_of(None, id_, 3) for id_ in range(6)] == [0, 1, 2, 0, 1, 2]


def test_an_empty_key_is_a_key():
    assert len({partition_of(b"", id_, 12) for id_ in range(12)}) == 1


# Parts


def test_a_binding_is_one_part_per_partition_and_each_gets_all_files():
    files = (object(), object())
    assert given_writer(3).cut(BINDING, files) == [Part(BINDING, files, number) for number in range(3)]


def test_the_parts_together_write_every_message_once(topic):
    writer = given_writer(3)
    for number in range(3):
        write(writer, number, numbered(100, 101, 102, 103), numbered(104, 105))
    assert topic.holds == {0: [102, 105], 1: [100, 103], 2: [101, 104]}


def test_a_part_without_a_number_serves_every_partition(topic):
    assert write(given_writer(3), None, numbered(100, 101, 102, 103)) == Written(written=4)
    assert topic.holds == {0: [102], 1: [100, 103], 2: [101]}


def test_a_partition_without_messages_is_not_opened(topic):
    assert write(given_writer(2), 1, numbered(100, 102)) == Written()
    assert topic.opened == []


# Counts


def test_every_message_is_counted_by_one_part_only(topic):
    writer, batch = given_writer(2, namespaces="^in$"), numbered(100, 101, 102)
    strangers = given_batch(*({"id": id_, "namespace": "in"} for id_ in (103, 104)))
    results = [write(writer, number, batch, strangers) for number in range(2)]
    assert results == [Written(written=1, filtered=2), Written(written=1, filtered=1)]


def test_what_is_there_already_is_ignored(topic):
    topic.holds[0] = [100, 102]
    assert write(given_writer(1), 0, numbered(100, 101, 102, 103)) == Written(written=1, ignored=3)
    assert topic.holds[0] == [100, 102, 103]


def test_what_a_transform_drops_is_ignored(topic):
    writer = given_writer(1, transforms=[{"skip": {"field": "n", "operator": ">", "match": 1}}])
    batch = given_batch({"id": 100, "value": b'{"n": 1}'}, {"id": 101, "value": b'{"n": 2}'})
    assert write(writer, 0, batch) == Written(written=1, ignored=1)
    assert topic.holds == {0: [101]}


# Bad messages


def test_everything_below_a_bad_message_is_there_and_nothing_of_the_part_above(topic):
    batch = given_batch(*({"id": id_, "value": b"bad" if id_ == 104 else b"{}"} for id_ in range(100, 108)))
    with pytest.raises(BadMessage) as bad:
        write(given_writer(2, transforms=PICK), 0, batch)
    assert bad.value.id == 104
    assert topic.holds == {0: [100, 102]}


def test_a_part_without_a_number_stops_all_partitions_at_a_bad_message(topic):
    batch = given_batch(*({"id": id_, "value": b"bad" if id_ == 103 else b"{}"} for id_ in range(100, 106)))
    with pytest.raises(BadMessage):
        write(given_writer(2, transforms=PICK), None, batch)
    assert topic.holds == {0: [100, 102], 1: [101]}


def test_a_bad_message_that_is_there_already_is_no_wall(topic):
    topic.holds[0] = [100]
    batch = given_batch({"id": 100, "value": b"bad"}, {"id": 101})
    assert write(given_writer(1, transforms=PICK), 0, batch) == Written(written=1, ignored=1)


def test_a_message_without_a_value_passes_the_transforms(topic):
    assert write(given_writer(1, transforms=PICK), 0, given_batch({"id": 100, "value": None})).written == 1


# What stays open


def test_messages_that_come_singly_leave_their_partitions_open(topic):
    writer = given_writer(2)
    for id_ in range(100, 106):
        write_singly(writer, id_)
    assert (topic.opened, topic.closed) == ([0, 1], [])
    assert topic.holds == {0: [100, 102, 104], 1: [101, 103, 105]}


def test_a_bulk_closes_what_it_opened_and_what_was_left_open(topic):
    writer = given_writer(1)
    write_singly(writer, 100)
    write(writer, 0, numbered(101))
    assert (topic.opened, topic.closed) == ([0, 0], [0, 0])


def test_after_a_failure_nothing_stays_open(topic):
    writer = given_writer(1)
    write_singly(writer, 100)
    with pytest.raises(InterruptedError):
        write_singly(writer, 101, FakeLease(refuses_after=0))
    assert topic.closed == [0]
    write_singly(writer, 101)
    assert topic.holds == {0: [100, 101]}


def test_the_lease_is_checked_before_another_producer_is_fenced(topic):
    with pytest.raises(InterruptedError):
        write(given_writer(1), 0, numbered(100), lease=FakeLease(refuses_after=0))
    assert topic.opened == []


def test_a_failure_while_reading_commits_nothing_more(topic):
    def batches():
        yield numbered(100)
        raise OSError("the log cannot be read")

    with pytest.raises(OSError, match="the log"):
        given_writer(1).write(Part(BINDING, (), 0), Writing(batches(), FakeLease()))
    assert (topic.holds, topic.closed) == ({}, [0])


# What callers rely on


def test_the_settings_that_shape_the_output():
    assert given_writer(12, namespaces="^a", transforms=PICK).shape == {
        "kind": "kafka",
        "topic": "copy",
        "namespaces": "^a",
        "transforms": [{"pick": {"namespaces": ".*", "fields": ["n"]}}],
        "partitions": 12,
    }


def test_building_a_writer_asks_no_service():
    assert given_writer(None).name == "out"


def test_a_count_that_was_asked_for_travels_with_the_writer(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "tidemark.writers.kafka.writer.count_partitions", lambda target: asked.append(target) or 3
    )
    writer = given_writer(None)
    parts = writer.cut(BINDING, ())
    there = pickle.loads(pickle.dumps(writer))
    assert there == writer
    assert there.cut(BINDING, ()) == parts
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NoTargetTopic, "orders/out: Kafka has no topic copy (connection kafka_default). Nothing was sent."),
        (lambda target: TargetFailed(target, "failed", "why."), "127.0.0.1:1) failed: why. What is not"),
        (lambda target: Fenced(target, 3), "transactional id tidemark.orders.out.3 writes to partition 3"),
    ],
)
def test_what_is_said_when_it_fails(error, said):
    target = TargetTopic("orders", "out", "copy", "kafka_default", KafkaConnection(servers="127.0.0.1:1"))
    assert said in str(error(target))


def test_the_topic_of_a_rendition_is_made_by_a_build():
    target = TargetTopic(
        "orders", "out.r2", "copy.r2", "kafka_default", KafkaConnection(servers="127.0.0.1:1")
    )
    assert str(NoTargetTopic(target)).endswith("Build it: tidemark renditions build orders out")


# Which topic it is


@pytest.fixture
def described(monkeypatch):
    """What the broker says, one answer after the other; the last one again and again."""
    answers = [DescribedTopic("first", 2)]

    def describe(_: TargetTopic) -> DescribedTopic:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(kafka, "describe_topic", describe)
    return answers


def test_the_topic_s_id_tells_which_one_it_is(described):
    assert given_writer(None).identify() == TargetIdentity("first", "topic copy", {"partitions": 2})


def test_a_broker_without_ids_tells_nothing(described):
    described[:] = [DescribedTopic(None, 2)]
    assert given_writer(None).identify() is None


def test_bound_to_a_topic_it_writes_to_no_other(described, topic):
    writer = given_writer(None).bound_to(TargetIdentity("first", "topic copy", {"partitions": 2}))
    assert write(writer, 0, numbered(100)).written == 1
    described[:] = [DescribedTopic("second", 2)]
    with pytest.raises(TargetReplaced, match="its id was first and is second"):
        write(writer, 0, numbered(102))
    assert topic.holds == {0: [100]}


def test_nothing_is_promised_of_a_topic_that_was_made_again_meanwhile(described):
    writer = given_writer(None).bound_to(TargetIdentity("first", "topic copy", {"partitions": 2}))
    writer.settle(BINDING, 100, FakeLease())
    described[:] = [DescribedTopic("second", 2)]
    with pytest.raises(TargetReplaced) as error:
        writer.settle(BINDING, 100, FakeLease())
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_where_a_message_goes_or_why_it_goes_nowhere():
    drop = {"skip": {"field": "n", "operator": ">", "match": 1}}
    place = given_writer(2, namespaces="^in$", transforms=[drop]).placing()
    plain = {"key": None, "namespace": "in", "value": b'{"n": 1}', "timestamp": SENT_AT}
    plain |= {"topic": "orders", "partition": 0, "offset": 0}
    assert place(plain | {"id": 101, "value": b'{"n": 2}'}) == 1
    assert place(plain | {"id": 101, "value": b'{"n": 2}', "namespace": "out"}) is None
    assert place(plain | {"id": 101}) is None
    assert place(plain | {"id": 101, "value": b"bad"}) is None


# What may be acknowledged


@pytest.fixture
def ends(monkeypatch):
    """The last ids of the partitions."""
    ends = {0: 104, 1: 101}
    monkeypatch.setattr(kafka, "find_last_id", lambda target, partition: ends[partition])
    return ends


@pytest.mark.parametrize("id_", [101, 102, 104])
def test_what_is_in_the_topic_cannot_be_acknowledged(ends, id_):
    (message,) = numbered(id_).to_pylist()
    refusal = given_writer().refuses_acknowledgement(message)
    assert refusal is not None
    assert f"partition {id_ % 2} of copy is at id {ends[id_ % 2]}" in refusal


@pytest.mark.parametrize("id_", [103, 106])
def test_what_is_not_there_yet_can(ends, id_):
    (message,) = numbered(id_).to_pylist()
    assert given_writer().refuses_acknowledgement(message) is None


# Dead letters


def later_of(*messages: dict[str, object], is_whole: bool = True) -> Later:
    return Later(is_whole, lambda: [given_batch(*messages).select(["id", "topic", "key", "namespace"])])


@pytest.mark.parametrize(
    ("key", "later", "said"),
    [
        pytest.param(b"a", [], None, id="nothing since"),
        pytest.param(b"a", [{"id": 8, "key": b"b"}], None, id="other keys since"),
        pytest.param(
            b"a", [{"id": 8, "key": b"a"}], "id 8 with the same key was sent after it", id="same key"
        ),
        pytest.param(b"a", [{"id": 8, "key": b"a", "namespace": "x"}], None, id="kept out by the filter"),
        pytest.param(None, [{"id": 8, "key": None}], None, id="no key, no order"),
    ],
)
def test_i20_a_letter_must_not_come_after_what_is_newer(key, later, said):
    (message,) = given_batch({"id": 7, "key": key}).to_pylist()
    refusal = given_writer(namespaces="orders").refuses_redelivery(message, later_of(*later))
    assert (refusal is None) if said is None else (said in refusal and "Rebuild" in refusal)


def test_i20_what_compaction_may_have_removed_forbids_a_redelivery_only_where_there_is_an_order():
    keyed, keyless = given_batch({"id": 7, "key": b"a"}, {"id": 8}).to_pylist()
    writer, later = given_writer(), later_of(is_whole=False)
    assert "compaction may have removed" in writer.refuses_redelivery(keyed, later)
    assert writer.refuses_redelivery(keyless, later) is None


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"namespaces": "refunds"}, "its namespace orders is not one of this writer's"),
        ({"transforms": [{"pick": {"fields": ["n"]}}]}, "it still cannot be understood"),
        ({"transforms": [{"skip": {"field": "n", "operator": "==", "match": 2}}]}, "the transforms drop it"),
    ],
)
def test_i20_what_does_not_get_through_is_refused(keys, said):
    value = b"[]" if "pick" in str(keys) else b'{"n": 1}'
    (message,) = given_batch({"id": 7, "value": value}).to_pylist()
    assert said in given_writer(**keys).refuses_redelivery(message, later_of())
