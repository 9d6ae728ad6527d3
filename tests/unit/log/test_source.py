"""What Kafka's topics hold right now, and which of them are not read at all."""

from types import TracebackType

import pytest
from kafka.errors import KafkaTimeoutError
from kafka.structs import TopicPartition as KafkaPartition

from tidemark.connections import KafkaConnection
from tidemark.errors import TidemarkError
from tidemark.log import source
from tidemark.log.binding import Offsets
from tidemark.log.source import CompactedTopic, KafkaUnreachable, NoSuchTopic, SourceTopics, read_offsets

pytestmark = pytest.mark.unit

CONNECTION = KafkaConnection(servers="broker:9092")


class Client:
    """A client that is there as long as it is used."""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None


class Broker:
    """Topics with the offsets of their partitions, and their cleanup policies."""

    def __init__(self, topics: dict[str, list[Offsets]], policies: dict[str, str]) -> None:
        self.offsets, self.policies = topics, policies
        self.consumer_options: dict[str, object] = {}

    def consumer(self, **options: object) -> "Consumer":
        self.consumer_options = options
        return Consumer(self)

    def admin(self, **options: object) -> "Admin":
        return Admin(self)


class Consumer(Client):
    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def topics(self) -> set[str]:
        return set(self.broker.offsets)

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(range(len(self.broker.offsets[topic])))

    def beginning_offsets(self, places: list[KafkaPartition]) -> dict[KafkaPartition, int]:
        return {place: self.broker.offsets[place.topic][place.partition].earliest for place in places}

    def end_offsets(self, places: list[KafkaPartition]) -> dict[KafkaPartition, int]:
        return {place: self.broker.offsets[place.topic][place.partition].latest for place in places}


class Admin(Client):
    def __init__(self, broker: Broker) -> None:
        self.broker = broker

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
    monkeypatch.setattr(source, "KafkaConsumer", broker.consumer)
    monkeypatch.setattr(source, "KafkaAdminClient", broker.admin)
    return broker


def given_source(topics: list[str], prefixes: list[str] | None = None) -> SourceTopics:
    return SourceTopics("shop", topics, prefixes or [], "read_committed")


@pytest.mark.usefixtures("broker")
def test_every_partition_of_a_topic_has_its_offsets():
    assert read_offsets(given_source(["orders"]), CONNECTION) == {
        ("orders", 0): Offsets(0, 5),
        ("orders", 1): Offsets(3, 9),
    }


@pytest.mark.usefixtures("broker")
def test_a_prefix_finds_every_topic_that_begins_with_it():
    assert set(read_offsets(given_source([], ["eu."]), CONNECTION)) == {("eu.orders", 0), ("eu.refunds", 0)}


@pytest.mark.usefixtures("broker")
def test_a_topic_that_is_named_and_matches_a_prefix_is_read_once():
    assert len(read_offsets(given_source(["eu.orders"], ["eu."]), CONNECTION)) == 2


def test_a_prefix_is_listed_anew_each_time(broker):
    before = read_offsets(given_source([], ["eu."]), CONNECTION)
    broker.offsets["eu.returns"] = [Offsets(0, 1)]
    after = read_offsets(given_source([], ["eu."]), CONNECTION)
    assert set(after) - set(before) == {("eu.returns", 0)}


@pytest.mark.usefixtures("broker")
def test_a_prefix_that_finds_nothing_is_no_error():
    assert read_offsets(given_source([], ["us."]), CONNECTION) == {}


@pytest.mark.usefixtures("broker")
def test_a_topic_that_does_not_exist_is_refused_by_name():
    with pytest.raises(
        NoSuchTopic, match=r"^shop: Kafka has no topic ordres\. Nothing was bound\."
    ) as refusal:
        read_offsets(given_source(["orders", "ordres"]), CONNECTION)
    assert (refusal.value.pipeline, refusal.value.topic) == ("shop", "ordres")


@pytest.mark.parametrize("chosen", [given_source(["orders", "state"]), given_source([], ["sta"])])
@pytest.mark.usefixtures("broker")
def test_a_topic_whose_records_vanish_one_by_one_is_refused_by_name(chosen):
    with pytest.raises(CompactedTopic, match=r"^shop: topic state has cleanup\.policy=compact") as refusal:
        read_offsets(chosen, CONNECTION)
    assert (refusal.value.pipeline, refusal.value.topic) == ("shop", "state")


def test_offsets_are_read_as_the_records_will_be(broker):
    read_offsets(given_source(["orders"]), CONNECTION)
    assert broker.consumer_options["isolation_level"] == "read_committed"


def test_a_kafka_that_does_not_answer_is_named(monkeypatch):
    def nobody(**options: object) -> Client:
        raise KafkaTimeoutError

    monkeypatch.setattr(source, "KafkaConsumer", nobody)
    with pytest.raises(KafkaUnreachable, match=r"^shop: Kafka does not answer at broker:9092 \(") as refusal:
        read_offsets(given_source(["orders"]), CONNECTION)
    assert (refusal.value.pipeline, refusal.value.servers) == ("shop", "broker:9092")


@pytest.mark.parametrize("error", [KafkaUnreachable, NoSuchTopic, CompactedTopic])
def test_refusals_are_for_a_person(error):
    assert issubclass(error, TidemarkError)
