"""Records of a small binding: the columns of the log, and files whose bytes depend on the records alone."""

from hashlib import sha256

import pyarrow.parquet as pq
import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE
from tests.support.fake_kafka import EOF, NOWHERE, FakeConsumer, message
from tests.support.log_samples import given_binding

from tidemark.kafka import consumer
from tidemark.log import kafka_records
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.kafka_records import RecordReader

pytestmark = pytest.mark.unit

BINDING = given_binding(5_000, 10, ("orders", 0, 7, 10), ("orders", 1, 0, 2))


def record(offset: int, partition: int = 0, **values):
    return message(offset, topic="orders", partition=partition, **values)


@pytest.fixture
def capture(monkeypatch, tmp_path):
    monkeypatch.setattr(consumer, "Consumer", FakeConsumer)

    def captured(*messages, area: str = "area"):
        (tmp_path / area).mkdir()
        monkeypatch.setattr(FakeConsumer, "messages", list(messages))
        count = RecordReader(NOWHERE, "read_committed", 0.01).write_records(
            BINDING, BINDING.slices, str(tmp_path / area)
        )
        return count, sorted((tmp_path / area).glob("*.parquet"))

    return captured


ALL = [record(7), record(0, 1), record(8), record(1, 1), record(9)]


def test_one_file_a_slice_with_the_ids_of_the_binding(capture):
    count, files = capture(*ALL)
    tables = [pq.read_table(file) for file in files]
    assert count == 5
    assert sorted(table["id"].to_pylist() for table in tables) == [[10, 11, 12], [13, 14]]
    assert all(table.schema.equals(LOG_SCHEMA) for table in tables)


def test_the_columns_of_a_record(capture):
    given = record(7, key=None, value=b"v", headers=[("a", b"1"), ("b", None)], timestamp=(1, 99))
    _, files = capture(given, record(8, error=EOF), record(10, error=EOF), record(2, 1, error=EOF))
    assert pq.read_table(files[0]).to_pylist() == [
        {
            "id": 10,
            "t": 5_000,
            "write_time": 5_000,
            "topic": "orders",
            "partition": 0,
            "offset": 7,
            "timestamp": 99,
            "timestamp_type": 0,
            "key": None,
            "value": b"v",
            "headers": [{"name": "a", "value": b"1"}, {"name": "b", "value": None}],
            "namespace": "orders",
        }
    ]


@pytest.mark.parametrize(
    ("given", "stamp", "kind"),
    [
        ((TIMESTAMP_CREATE_TIME, 7), 7, 0),
        ((TIMESTAMP_LOG_APPEND_TIME, 8), 8, 1),
        ((TIMESTAMP_NOT_AVAILABLE, 0), -1, -1),
    ],
)
def test_timestamps_are_numbered_as_spark_numbers_them(capture, given, stamp, kind):
    end = [record(10, error=EOF), record(2, 1, error=EOF)]
    _, files = capture(record(7, timestamp=given), *end)
    row = pq.read_table(files[0]).to_pylist()[0]
    assert (row["timestamp"], row["timestamp_type"], row["headers"]) == (stamp, kind, None)


def test_a_slice_that_ends_with_markers_ends_at_the_end_of_the_partition(capture):
    count, _ = capture(record(7), record(10, error=EOF), record(0, 1), record(1, 1))
    assert count == 3


def test_records_beyond_the_slice_are_not_taken(capture):
    count, _ = capture(record(7), record(12), record(0, 1), record(1, 1), record(2, 1))
    assert count == 3


def test_the_same_records_give_the_same_bytes_in_whatever_order_partitions_answer(capture, monkeypatch):
    monkeypatch.setattr(kafka_records, "GROUP_BYTES", 2)  # a row group for every other record

    def digests(area, *messages):
        return sorted(sha256(file.read_bytes()).hexdigest() for file in capture(*messages, area=area)[1])

    in_turn = digests("first", *ALL)
    one_by_one = digests("second", *(one for number in (1, 0) for one in ALL if one.partition() == number))
    assert in_turn == one_by_one


def test_silence_is_an_error_and_the_next_read_has_a_new_client(capture, monkeypatch, tmp_path):
    from tidemark.kafka.errors import KafkaFailure

    monkeypatch.setattr(FakeConsumer, "made", [])
    reader = RecordReader(NOWHERE, "read_committed", 0.01)
    monkeypatch.setattr(consumer, "Consumer", FakeConsumer)
    monkeypatch.setattr(FakeConsumer, "messages", [record(7)])
    with pytest.raises(KafkaFailure):
        reader.write_records(BINDING, BINDING.slices, str(tmp_path))
    assert [one.is_closed for one in FakeConsumer.made] == [True]


def test_the_log_adopts_such_a_file(capture, tmp_path):
    _, files = capture(*ALL)
    folder = LogFolder("orders", str(tmp_path))
    adopted = [folder.adopt_file(BINDING, BINDING.slices, str(file)) for file in files]
    assert sorted(one.file.first_id for one in adopted) == [10, 13]
    assert all(one.statistics.misnumbered == 0 for one in adopted)
