"""Reading partitions by offset: what is handed out, where a read ends, and what is an error."""

import pytest
from confluent_kafka import KafkaError
from tests.support.fake_kafka import EOF, NOWHERE, FakeConsumer, message

from tidemark.kafka import consumer
from tidemark.kafka.consumer import READ_UNCOMMITTED, PartitionReader, WhenGone
from tidemark.kafka.errors import KafkaFailure, OffsetGone, UnknownTopic

pytestmark = pytest.mark.unit


@pytest.fixture
def reader(monkeypatch) -> PartitionReader:
    monkeypatch.setattr(consumer, "Consumer", FakeConsumer)
    return PartitionReader(NOWHERE, "readers", 0.01)


def test_a_reader_joins_no_group_and_creates_no_topic(reader):
    options = FakeConsumer.options
    assert (options["enable.auto.commit"], options["allow.auto.create.topics"]) == (False, False)
    assert (options["isolation.level"], options["auto.offset.reset"]) == ("read_committed", "error")


def test_a_reader_may_begin_at_what_is_left(monkeypatch):
    monkeypatch.setattr(consumer, "Consumer", FakeConsumer)
    PartitionReader(NOWHERE, "readers", 1, isolation=READ_UNCOMMITTED, when_gone=WhenGone.BEGIN_AT_EARLIEST)
    assert FakeConsumer.options["auto.offset.reset"] == "earliest"
    assert FakeConsumer.options["isolation.level"] == "read_uncommitted"


def test_the_partitions_of_a_topic(reader):
    assert reader.partitions("orders") == (0, 1)


def test_a_topic_that_does_not_exist(reader):
    with pytest.raises(UnknownTopic):
        reader.partitions("refunds")


def test_the_offsets_of_a_partition(reader):
    assert reader.offsets("orders", 1) == (1, 9)


def test_offsets_that_do_not_come_are_an_error(reader, monkeypatch):
    monkeypatch.setattr(FakeConsumer, "get_watermark_offsets", lambda *_, **__: None)
    with pytest.raises(KafkaFailure, match="no offsets: no answer, or an open transaction, for"):
        reader.offsets("orders", 1)


@pytest.mark.parametrize(
    ("messages", "offsets"),
    [
        pytest.param([message(3), message(4), message(5)], [3, 4], id="up to the end"),
        pytest.param([message(3), message(4, EOF), message(4)], [3, 4], id="over an end that moves"),
        pytest.param([message(3), message(5, EOF)], [3], id="a marker at the end"),
        pytest.param([message(3), message(6)], [3], id="markers, and more behind them"),
    ],
)
def test_records_are_read_up_to_the_end_that_was_named(reader, messages, offsets):
    FakeConsumer.messages = list(messages)
    assert [one.offset for one in reader.records("orders", 1, 3, 5)] == offsets
    assert FakeConsumer.assigned == [("orders", 1, 3)]


def test_an_empty_range_asks_for_nothing(reader):
    FakeConsumer.assigned = []
    assert list(reader.records("orders", 0, 5, 5)) == []
    assert FakeConsumer.assigned == []


def test_a_record_has_its_parts(reader):
    FakeConsumer.messages = [message(3, value=b"v", headers=[("a", b"1"), ("b", None)])]
    (record,) = reader.records("orders", 0, 3, 4)
    assert (record.offset, record.key, record.value, record.timestamp) == (3, b"k", b"v", 7)
    assert (record.timestamp_type, list(record.headers)) == (1, [("a", b"1"), ("b", None)])


def test_a_record_without_a_timestamp(reader):
    FakeConsumer.messages = [message(3, timestamp=(0, -1))]
    (record,) = reader.records("orders", 0, 3, 4)
    assert (record.timestamp, record.timestamp_type) == (None, 0)


def test_records_that_do_not_come_are_an_error_and_not_an_end(reader):
    FakeConsumer.messages = []
    with pytest.raises(KafkaFailure, match="no answer"):
        list(reader.records("orders", 0, 3, 5))


def test_an_offset_that_is_gone_is_told_from_other_errors(reader):
    FakeConsumer.messages = [message(3, KafkaError(KafkaError._AUTO_OFFSET_RESET))]
    with pytest.raises(OffsetGone):
        list(reader.records("orders", 0, 3, 5))
