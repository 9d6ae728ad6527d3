"""What Kafka's topics hold right now, and which of them are not read at all."""

from types import TracebackType
from uuid import UUID

import pytest
from kafka.errors import KafkaTimeoutError
from kafka.structs import TopicPartition as KafkaPartition

from tidemark.connections import KafkaConnection
from tidemark.errors import TidemarkError
from tidemark.kafka import admin
from tidemark.log.model.binding import Available, Offsets
from tidemark.log.source import (
    CompactedTopic,
    KafkaUnreachable,
    NoSuchTopic,
    SourceTopics,
    WatchedSource,
    read_available,
    read_still_available,
)

pytestmark = pytest.mark.unit

CONNECTION = KafkaConnection(servers="broker:9092")
UNKNOWN_TOPIC = 3
"""Kafka's error code."""
ID_1, ID_2, ID_3, ID_9 = (f"00000000-0000-0000-0000-{number:012d}" for number in (1, 2, 3, 9))


class Client:
    """A client that is there as long as it is used."""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None


class Broker:
    """Topics with the offsets of their partitions, their cleanup policies and their ids."""

    def __init__(self, topics: dict[str, list[Offsets]], policies: dict[str, str]) -> None:
        self.offsets, self.policies = topics, policies
        self.topic_ids = {topic: UUID(int=number) for number, topic in enumerate(topics, 1)}
        self.consumer_options: dict[str, object] = {}
        self.asked: list[str] = []
        self.connected = 0
        self.described: list[str] = []

    def consumer(self, **options: object) -> "Consumer":
        self.consumer_options = options
        self.connected += 1
        return Consumer(self)

    def admin(self, **options: object) -> "Admin":
        return Admin(self)


class Consumer(Client):
    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def topics(self) -> set[str]:
        return set(self.broker.offsets)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(len(self.broker.offsets[topic]))) if topic in self.broker.offsets else None

    def beginning_offsets(self, places: list[KafkaPartition]) -> dict[KafkaPartition, int]:
        self.broker.asked.append("offsets")
        return {place: self.broker.offsets[place.topic][place.partition].earliest for place in places}

    def end_offsets(
        self, places: list[KafkaPartition], timeout_ms: int | None = None
    ) -> dict[KafkaPartition, int]:
        if any(place.topic not in self.broker.offsets for place in places):
            raise KafkaTimeoutError
        return {place: self.broker.offsets[place.topic][place.partition].latest for place in places}


class Admin(Client):
    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def describe_topics(self, topics: list[str]) -> list[dict[str, object]]:
        self.broker.asked.append("topic ids")
        self.broker.described += topics
        ids = self.broker.topic_ids
        return [
            {"error_code": 0, "name": topic, "topic_id": ids[topic]}
            if topic in ids
            else {"error_code": UNKNOWN_TOPIC, "name": topic, "topic_id": UUID(int=0)}
            for topic in topics
        ]

    def describe_configs(self, resources, config_filter):
        names = [resource.name for resource in resources]
        policies = {name: self.broker.policies.get(name, "delete") for name in names}
        return {"topic": {name: {"cleanup.policy": {"value": policy}} for name, policy in policies.items()}}


@pytest.fixture
def broker(monkeypatch) -> Broker:
    topics = {
        "orders": [Offsets(0, 5), Offsets(3, 9)],
        "eu.orders": [Offsets(0, 2)],
        "eu.refunds": [Offsets(0, 0)],
        "state": [Offsets(0, 7)],
    }
    broker = Broker(topics, {"state": "compact,delete"})
    monkeypatch.setattr(admin, "KafkaConsumer", broker.consumer)
    monkeypatch.setattr(admin, "KafkaAdminClient", broker.admin)
    return broker


def given_source(topics: list[str], prefixes: list[str] | None = None) -> SourceTopics:
    return SourceTopics("shop", topics, prefixes or [], "read_committed")


@pytest.mark.usefixtures("broker")
def test_every_partition_of_a_topic_has_its_offsets():
    assert read_available(given_source(["orders"]), CONNECTION).offsets == {
        ("orders", 0): Offsets(0, 5),
        ("orders", 1): Offsets(3, 9),
    }


@pytest.mark.usefixtures("broker")
def test_a_prefix_finds_every_topic_that_begins_with_it():
    found = read_available(given_source([], ["eu."]), CONNECTION)
    assert set(found.offsets) == {("eu.orders", 0), ("eu.refunds", 0)}


@pytest.mark.usefixtures("broker")
def test_a_topic_that_is_named_and_matches_a_prefix_is_read_once():
    assert len(read_available(given_source(["eu.orders"], ["eu."]), CONNECTION).offsets) == 2


def test_a_prefix_is_listed_anew_each_time(broker):
    before = read_available(given_source([], ["eu."]), CONNECTION)
    broker.offsets["eu.returns"] = [Offsets(0, 1)]
    after = read_available(given_source([], ["eu."]), CONNECTION)
    assert set(after.offsets) - set(before.offsets) == {("eu.returns", 0)}


@pytest.mark.usefixtures("broker")
def test_a_prefix_that_finds_nothing_is_no_error():
    assert read_available(given_source([], ["us."]), CONNECTION) == Available({}, {})


@pytest.mark.usefixtures("broker")
def test_a_topic_that_does_not_exist_is_refused_by_name():
    with pytest.raises(
        NoSuchTopic, match=r"^shop: Kafka has no topic ordres\. Nothing was bound\."
    ) as refusal:
        read_available(given_source(["orders", "ordres"]), CONNECTION)
    assert (refusal.value.pipeline, refusal.value.topic) == ("shop", "ordres")


@pytest.mark.usefixtures("broker")
def test_i15_a_topic_that_does_not_exist_needs_a_person_who_is_told_the_command():
    with pytest.raises(
        NoSuchTopic, match="Create it with: tidemark topics create shop; or correct"
    ) as refusal:
        read_available(given_source(["ordres"]), CONNECTION)
    assert refusal.value.needs_person


@pytest.mark.parametrize("chosen", [given_source(["orders", "state"]), given_source([], ["sta"])])
@pytest.mark.usefixtures("broker")
def test_a_topic_whose_records_vanish_one_by_one_is_refused_by_name(chosen):
    with pytest.raises(CompactedTopic, match=r"^shop: topic state has cleanup\.policy=compact") as refusal:
        read_available(chosen, CONNECTION)
    assert (refusal.value.pipeline, refusal.value.topic) == ("shop", "state")


def test_offsets_are_read_as_the_records_will_be(broker):
    read_available(given_source(["orders"]), CONNECTION)
    assert broker.consumer_options["isolation_level"] == "read_committed"


# Which topics these are


@pytest.mark.usefixtures("broker")
def test_every_topic_has_its_id():
    found = read_available(given_source(["orders"], ["eu."]), CONNECTION)
    assert found.topic_ids == {"orders": ID_1, "eu.orders": ID_2, "eu.refunds": ID_3}


def test_a_topic_made_again_has_another_id(broker):
    broker.topic_ids["orders"] = UUID(int=9)
    assert read_available(given_source(["orders"]), CONNECTION).topic_ids == {"orders": ID_9}


def test_a_topic_that_goes_away_while_it_is_looked_at_has_no_id(broker):
    del broker.topic_ids["eu.orders"]
    assert read_available(given_source([], ["eu."]), CONNECTION).topic_ids == {"eu.refunds": ID_3}


def test_ids_are_asked_for_before_offsets(broker):
    """Old ids with the offsets of a topic made again are noticed next time, the other way round never."""
    read_available(given_source(["orders"]), CONNECTION)
    assert broker.asked == ["topic ids", "offsets"]


def test_where_no_topic_is_found_no_id_is_asked_for(broker):
    """Kafka would answer with all topics."""
    read_available(given_source([], ["us."]), CONNECTION)
    assert "topic ids" not in broker.asked


# What is still there of topics that are bound


@pytest.mark.usefixtures("broker")
def test_topics_that_are_bound_are_looked_at_by_name():
    assert read_still_available(given_source(["orders"]), CONNECTION, ["orders", "eu.orders"]) == Available(
        {("orders", 0): Offsets(0, 5), ("orders", 1): Offsets(3, 9), ("eu.orders", 0): Offsets(0, 2)},
        {"orders": ID_1, "eu.orders": ID_2},
    )


@pytest.mark.usefixtures("broker")
def test_a_bound_topic_that_is_gone_is_simply_not_there():
    found = read_still_available(given_source(["orders"]), CONNECTION, ["orders", "gone"])
    assert (found.topic_ids, {topic for topic, _ in found.offsets}) == ({"orders": ID_1}, {"orders"})


def test_a_bound_topic_that_is_gone_is_not_asked_for(broker):
    """Where Kafka makes topics by itself, the question alone would make it again."""
    read_still_available(given_source(["orders"]), CONNECTION, ["orders", "gone"])
    assert broker.described == ["orders"]


@pytest.mark.usefixtures("broker")
def test_a_bound_topic_that_is_compacted_by_now_can_still_be_read():
    found = read_still_available(given_source(["state"]), CONNECTION, ["state"])
    assert found.offsets == {("state", 0): Offsets(0, 7)}


@pytest.mark.usefixtures("broker")
def test_when_every_bound_topic_is_gone_nothing_is_there():
    assert read_still_available(given_source(["orders"]), CONNECTION, ["gone"]) == Available({}, {})


# Declared


@pytest.mark.parametrize(
    ("topic", "declared"),
    [("orders", True), ("orders2", False), ("eu.orders", True), ("eu", False), ("new.eu.orders", False)],
)
def test_a_topic_is_declared_by_name_or_by_prefix(topic, declared):
    assert given_source(["orders"], ["eu."]).declares(topic) is declared


def test_without_a_prefix_only_names_are_declared():
    assert not given_source(["orders"]).declares("")


# Refusals


def test_a_kafka_that_does_not_answer_is_named(monkeypatch):
    def unreachable(**options: object) -> Client:
        raise KafkaTimeoutError

    monkeypatch.setattr(admin, "KafkaConsumer", unreachable)
    with pytest.raises(KafkaUnreachable, match=r"^shop: Kafka does not answer at broker:9092 \(") as refusal:
        read_available(given_source(["orders"]), CONNECTION)
    assert (refusal.value.pipeline, refusal.value.servers) == ("shop", "broker:9092")


def test_a_source_that_is_watched_connects_anew_after_an_error_on_the_way(broker):
    watched = WatchedSource(given_source(["orders"]), CONNECTION)
    watched.ends([("orders", 0)])
    with pytest.raises(KafkaUnreachable, match="KafkaTimeoutError"):
        watched.ends([("deleted", 0)])
    assert watched.ends([("orders", 0)]) == {("orders", 0): 5}
    assert broker.connected == 2


@pytest.mark.parametrize("error", [KafkaUnreachable, NoSuchTopic, CompactedTopic])
def test_refusals_are_for_a_person(error):
    assert issubclass(error, TidemarkError)
