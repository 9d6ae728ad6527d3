"""Which id a topic has: one made just now is waited for, one that is missing is said to be."""

from concurrent.futures import Future
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid

from tidemark.client import topic_ids
from tidemark.client.errors import NoJournalTopic, TopicUnconfirmed
from tidemark.client.topic_ids import KafkaTopics
from tidemark.connections import KafkaConnection
from tidemark.kafka import topics

pytestmark = pytest.mark.unit

UNKNOWN = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT))


class Described:
    topic_id = Uuid(1, 2)
    partitions = ()


class Broker:
    """Answers one after the other; the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0

    def poll(self, timeout: float) -> None:
        pass

    def describe_topics(self, topics: Any, **options: Any) -> dict[str, Future[Any]]:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        future: Future[Any] = Future()
        if isinstance(answer, KafkaException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return {"orders": future}


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(topic_ids, "ASKED_AGAIN_AFTER", 0.0)

    def asked(broker: Broker) -> str | None:
        monkeypatch.setattr(topics, "AdminClient", lambda options: broker)
        return KafkaTopics("orders", KafkaConnection(servers="127.0.0.1:1"), 1.0).ask("k")()

    return asked


def test_a_topic_that_was_made_just_now_is_waited_for(ask):
    broker = Broker(UNKNOWN, UNKNOWN, Described())
    assert (ask(broker), broker.asked) == (str(UUID("00000000-0000-0001-0000-000000000002")), 3)


def test_a_topic_that_does_not_become_known_does_not_exist(ask, monkeypatch):
    monkeypatch.setattr(topic_ids, "KNOWN_WITHIN", 0.0)
    with pytest.raises(NoJournalTopic):
        ask(Broker(UNKNOWN))


def test_any_other_failure_is_not_asked_again(ask):
    broker = Broker(SILENT)
    with pytest.raises(TopicUnconfirmed):
        ask(broker)
    assert broker.asked == 1
