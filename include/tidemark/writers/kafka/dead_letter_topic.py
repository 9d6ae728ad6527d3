"""Dead letters in a Kafka topic, with the headers that users of Kafka Connect's dead letter queues know.

A message keeps its key, value, headers and timestamp. It is there, acknowledged by all replicas in sync,
before the acknowledgement is recorded; a command that died in between sends it again, so the same letter may
come twice, with the same ``tidemark.id`` and ``tidemark.writer``. Never creates the topic.
"""

from collections.abc import Sequence
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tidemark.connections import KafkaConnection
from tidemark.delivery.dead_letters.store import DeadLetter
from tidemark.delivery.writer import BadMessage
from tidemark.errors import with_fields
from tidemark.writers.errors import WriterError
from tidemark.writers.kafka.target import ANSWERS_WITHIN, Complaints, Target, client_options, count_partitions

CONNECT = "__connect.errors."
STAGE = "TASK_PUT"
"""Kafka Connect's name for what a writer does with a message."""
FAILURE = f"{BadMessage.__module__}.{BadMessage.__qualname__}"


@with_fields
class LettersNotSent(WriterError):
    """The topic for dead letters did not take a copy, so nothing was acknowledged."""

    pipeline: str
    topic: str
    connection: str
    problem: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: the dead letters' topic {self.topic} (connection {self.connection}) did not "
            f"take the copy: {self.problem.rstrip('.')}. Nothing was acknowledged. Mend it, or take "
            "`dead_letters` out of the pipeline's file, and try again."
        )


def headers_of(letter: DeadLetter) -> list[tuple[str, str | bytes | None]]:
    """The message's own headers, then Kafka Connect's, then who let it pass and why."""
    message = letter.message
    own = [(header["name"], header["value"]) for header in message["headers"] or ()]
    connect = {
        "topic": message["topic"],
        "partition": message["partition"],
        "offset": message["offset"],
        "connector.name": f"{letter.pipeline}/{letter.writer}",
        "task.id": 0,
        "stage": STAGE,
        "exception.class.name": FAILURE if letter.failed else None,
        "exception.message": letter.error if letter.failed else None,
    }
    ours = {"id": letter.id, "writer": letter.writer, "by": letter.who, "reason": letter.reason}
    named = {f"{CONNECT}{name}": value for name, value in connect.items()}
    named |= {f"tidemark.{name}": value for name, value in ours.items()}
    return [*own, *((name, str(value).encode()) for name, value in named.items() if value is not None)]


class DeadLetterTopic:
    """A topic that gets a copy of every dead letter of a pipeline."""

    def __init__(self, pipeline: str, topic: str, connection_id: str, connection: KafkaConnection) -> None:
        self._target = Target(pipeline, "dead letters", topic, connection_id, connection)

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """See ``DeadLetters.keep``."""
        count_partitions(self._target)  # says what to do where the topic is missing
        complaints, refused = Complaints(), list[KafkaError]()
        producer = Producer(
            {
                **client_options(self._target, complaints),
                "enable.idempotence": True,
                "acks": "all",
                "message.max.bytes": 1_000_000_000,
                "message.timeout.ms": round(ANSWERS_WITHIN * 1000),
                "allow.auto.create.topics": False,
            }
        )

        def sent(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                refused.append(error)

        try:
            for letter in letters:
                producer.produce(
                    self._target.topic,
                    value=letter.message["value"],
                    key=letter.message["key"],
                    timestamp=letter.message["timestamp"] or 1,  # the client takes 0 for the time of sending
                    headers=headers_of(letter),
                    on_delivery=sent,
                )
            left = producer.flush(ANSWERS_WITHIN * 2)
        except (KafkaException, BufferError) as error:
            raise self._failed(str(error)) from error
        finally:
            producer.purge()
            with suppress(KafkaException):
                producer.close()
        if refused:
            raise self._failed(complaints.about(KafkaException(refused[0])))
        if left:
            raise self._failed(f"{left} copies were not acknowledged in time")

    def _failed(self, problem: str) -> LettersNotSent:
        target = self._target
        return LettersNotSent(target.pipeline, target.topic, target.connection_id, problem)
