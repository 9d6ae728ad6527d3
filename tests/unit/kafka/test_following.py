"""Following a topic without end: what is handed out, where partitions end, and what is an error."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from tests.support.fake_kafka import EOF, NOWHERE, FakeConsumer, message

from tidemark.kafka.errors import KafkaFailure, OffsetGone, UnknownTopic
from tidemark.kafka.tail import FollowedRecord, TopicFollower

pytestmark = pytest.mark.unit


class Following(FakeConsumer):
    """Hands out what a test put there, as many as it is asked for."""

    def list_topics(self, topic: str, timeout: float) -> Any:
        found = super().list_topics(topic, timeout)
        return SimpleNamespace(topics=found.topics, cluster_id="cluster")

    def get_watermark_offsets(self, place: Any, timeout: float = 0, cached: bool = False) -> Any:
        return place.partition, 9

    def consume(self, count: int, timeout: float) -> list[Any]:
        found = self.messages[:count]
        del self.messages[:count]
        return found


def follower(*messages: Any, topic: str = "orders") -> TopicFollower:
    Following.messages = list(messages)
    return TopicFollower(NOWHERE, topic, "agents", 0.01, Following)


def test_it_joins_no_group_and_reads_committed_records_only() -> None:
    follower()
    options = Following.options
    assert (options["enable.auto.commit"], options["auto.offset.reset"]) == (False, "error")
    assert options["isolation.level"] == "read_committed"


def test_every_partition_is_followed_from_its_own_offset() -> None:
    follower().begin((3, 7))
    assert Following.assigned == [("orders", 0, 3), ("orders", 1, 7)]


def test_records_are_handed_out_in_order() -> None:
    found = follower(message(3, value=b"v"), message(5, partition=1)).next(500, 0.05)
    assert found.records == [
        FollowedRecord(0, 3, b"k", b"v", []),
        FollowedRecord(1, 5, b"k", None, []),
    ]


def test_the_end_of_a_partition_is_where_its_markers_end() -> None:
    found = follower(message(3), message(6, EOF)).next(500, 0.05)
    assert (len(found.records), found.ends) == (1, {0: 6})


def test_no_more_is_handed_out_than_was_asked_for() -> None:
    following = follower(message(3), message(4), message(5))
    assert [len(following.next(2, 0.05).records) for _ in range(2)] == [2, 1]


def test_nothing_is_no_error() -> None:
    assert follower().next(500, 0.05).records == []


def test_an_offset_that_is_gone_is_told() -> None:
    gone = KafkaError(KafkaError._AUTO_OFFSET_RESET)
    with pytest.raises(OffsetGone):
        follower(message(3, gone)).next(500, 0.05)


def test_another_error_is_a_failure() -> None:
    with pytest.raises(KafkaFailure):
        follower(message(3, KafkaError(KafkaError._TRANSPORT))).next(500, 0.05)


def test_a_topic_has_a_cluster_and_partitions() -> None:
    assert follower().describe() == ("cluster", 2)


def test_a_topic_that_does_not_exist() -> None:
    with pytest.raises(UnknownTopic):
        follower(topic="refunds").describe()


def test_offsets_and_how_far_one_is_behind() -> None:
    following = follower()
    assert (following.offsets(1), following.behind(1, 4), following.behind(1, 12)) == ((1, 9), 5, 0)


def test_offsets_that_do_not_come_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Following, "get_watermark_offsets", lambda *_, **__: None)
    with pytest.raises(KafkaFailure, match="no offsets"):
        follower().offsets(0)


def test_it_disconnects_at_the_end_of_a_block() -> None:
    with follower():
        pass
    assert Following.made[-1].is_closed
