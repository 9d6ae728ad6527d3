"""One tail for many threads: which readers are kept, which are closed."""

import pytest
from confluent_kafka import KafkaError
from tests.support.fake_kafka import NOWHERE, FakeConsumer, message

from tidemark.kafka import consumer
from tidemark.kafka.errors import KafkaFailure, OffsetGone
from tidemark.kafka.tail import KafkaTail

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def made(monkeypatch) -> list[FakeConsumer]:
    monkeypatch.setattr(consumer, "Consumer", FakeConsumer)
    monkeypatch.setattr(FakeConsumer, "made", [])
    return FakeConsumer.made


def given_tail(most_idle: int = 8) -> KafkaTail:
    return KafkaTail(NOWHERE, "tails", 0.01, isolation="read_committed", most_idle=most_idle)


def test_every_partition_of_a_topic_has_its_offsets():
    assert given_tail().offsets("orders") == {0: (0, 9), 1: (1, 9)}


def test_a_topic_that_is_gone_is_no_failure():
    assert given_tail().offsets("refunds") is None


def test_reads_of_a_partition_one_after_the_other_share_a_reader(made):
    tail = given_tail()
    for _ in range(3):
        FakeConsumer.messages = [message(3)]
        assert [one.offset for one in tail.records("orders", 1, 3, 4)] == [3]
    assert tail.offsets_of("orders", 1) == (1, 9)
    assert len(made) == 1


def test_an_idle_reader_serves_another_partition(made):
    tail = given_tail()
    for partition in (1, 0, 1):
        tail.offsets_of("orders", partition)
    assert len(made) == 1


def test_reads_at_the_same_time_have_a_reader_each(made):
    FakeConsumer.messages = [message(3), message(3)]
    tail = given_tail()
    reads = [tail.records("orders", 1, 3, 9) for _ in range(2)]
    assert [next(read).offset for read in reads] == [3, 3]
    assert len(made) == 2


def test_a_read_that_is_given_up_keeps_its_reader(made):
    FakeConsumer.messages = [message(3)]
    tail = given_tail()
    read = tail.records("orders", 1, 3, 9)
    next(read)
    read.close()
    assert tail.offsets_of("orders", 1) == (1, 9)
    assert [one.is_closed for one in made] == [False]


def test_an_offset_that_is_gone_keeps_its_reader(made):
    FakeConsumer.messages = [message(3, KafkaError(KafkaError._AUTO_OFFSET_RESET))]
    with pytest.raises(OffsetGone):
        list(given_tail().records("orders", 1, 3, 9))
    assert [one.is_closed for one in made] == [False]


def test_a_failure_closes_its_reader(made):
    FakeConsumer.messages = []
    with pytest.raises(KafkaFailure):
        list(given_tail().records("orders", 1, 3, 9))
    assert [one.is_closed for one in made] == [True]


def test_a_tail_may_keep_no_reader(made):
    given_tail(most_idle=0).offsets_of("orders", 1)
    assert [one.is_closed for one in made] == [True]


def test_a_closed_tail_has_closed_its_readers(made):
    tail = given_tail()
    tail.offsets_of("orders", 1)
    tail.close()
    assert [one.is_closed for one in made] == [True]
