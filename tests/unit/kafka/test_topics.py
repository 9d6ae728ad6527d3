"""What the brokers say of a topic, in our own values."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid
from confluent_kafka.admin._acl import AclOperation
from tests.support.fake_kafka import NOWHERE

from tidemark.kafka import topics
from tidemark.kafka.errors import KafkaFailure, UnknownTopic
from tidemark.kafka.topic_ids import kafka_text, librdkafka_text, uuid_of
from tidemark.kafka.topics import PartitionState, TopicDescription, TopicQuestions

pytestmark = pytest.mark.unit

LEADER, GONE = SimpleNamespace(id=1), SimpleNamespace(id=-1)


def described(operations: list[AclOperation] | None = None) -> Any:
    partitions = [
        SimpleNamespace(id=0, leader=LEADER, isr=[LEADER, LEADER]),
        SimpleNamespace(id=1, leader=None, isr=[LEADER, GONE, None]),
    ]
    return SimpleNamespace(topic_id=Uuid(1, 2), partitions=partitions, authorized_operations=operations)


class Admin:
    """Gives one answer to every question."""

    answer: Any = None

    def __init__(self, options: dict[str, Any]) -> None:
        pass

    def describe_topics(self, wanted: Any, **_: Any) -> dict[str, Future[Any]]:
        return {"orders": self._future()}

    def describe_configs(self, resources: list[Any], **_: Any) -> dict[Any, Future[Any]]:
        return {resources[0]: self._future()}

    def poll(self, timeout: float) -> None:
        pass

    def _future(self) -> "Future[Any]":
        future: Future[Any] = Future()
        if isinstance(self.answer, int):
            future.set_exception(KafkaException(KafkaError(self.answer)))
        else:
            future.set_result(self.answer)
        return future


@pytest.fixture
def questions(monkeypatch):
    monkeypatch.setattr(topics, "AdminClient", Admin)

    def given(answer: Any) -> TopicQuestions:
        monkeypatch.setattr(Admin, "answer", answer)
        return TopicQuestions(NOWHERE, 1.0)

    return given


def test_a_topic_has_its_id_its_leaders_and_its_replicas_in_sync(questions):
    assert questions(described()).describe("orders") == TopicDescription(
        UUID("00000000-0000-0001-0000-000000000002"),
        (PartitionState(0, True, 2), PartitionState(1, False, 1)),
    )


@pytest.mark.parametrize(
    ("operations", "allowed"),
    [(None, True), ([], True), (["READ"], False), (["READ", "WRITE"], True), (["ALL"], True)],
)
def test_what_the_brokers_allow(questions, operations, allowed):
    named = operations and [AclOperation[name] for name in operations]
    assert questions(described(named)).describe("orders", with_rights=True).may_write is allowed


def test_a_topic_that_does_not_exist(questions):
    with pytest.raises(UnknownTopic):
        questions(KafkaError.UNKNOWN_TOPIC_OR_PART).describe("orders")


def test_a_setting(questions):
    asked = questions({"cleanup.policy": SimpleNamespace(value="compact")})
    assert asked.setting("orders", "cleanup.policy") == "compact"


def test_a_setting_that_this_user_may_not_see(questions):
    assert questions(KafkaError.TOPIC_AUTHORIZATION_FAILED).setting("orders", "cleanup.policy") is None


def test_a_setting_that_was_not_answered(questions):
    with pytest.raises(KafkaFailure):
        questions(KafkaError._TIMED_OUT).setting("orders", "cleanup.policy")


@pytest.mark.parametrize("halves", [(-1, 2), (1, -2), (2**63 - 1, -(2**63))])
def test_an_id_is_written_as_the_client_prints_it(halves):
    """A kafka writer's row keeps the id of its topic in this form."""
    found = uuid_of(Uuid(*halves))
    assert found is not None
    assert librdkafka_text(found) == str(Uuid(*halves))


def test_kafka_s_own_tools_print_another_form():
    found = UUID("ffffffff-ffff-ffff-0000-000000000002")
    assert uuid_of(Uuid(-1, 2)) == found
    assert (librdkafka_text(found), kafka_text(found)) == ("//////////8AAAAAAAAAAg", "__________8AAAAAAAAAAg")


def test_a_broker_without_ids_says_zeroes():
    assert uuid_of(Uuid(0, 0)) is None
