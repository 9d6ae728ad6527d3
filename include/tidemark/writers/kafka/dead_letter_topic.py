"""Dead letters in a Kafka topic, with the headers that users of Kafka Connect's dead letter queues know.

A message keeps its key, value, headers and timestamp. All in-sync replicas have it before the acknowledgement
is recorded. A command that is retried after a crash sends it again, so delivery is at least once: a duplicate
has the same ``tidemark.id`` and ``tidemark.writer``. Never creates the topic.
"""

from collections.abc import Sequence

from tidemark.connections import KafkaConnection
from tidemark.delivery.dead_letters.store import DeadLetter
from tidemark.delivery.writer import BadMessage
from tidemark.errors import with_fields
from tidemark.kafka.errors import NotAllAcknowledged
from tidemark.kafka.producer import RecordToSend, send_all
from tidemark.writers.errors import WriterError
from tidemark.writers.kafka.target import ANSWERS_WITHIN, TargetTopic, count_partitions

CONNECT = "__connect.errors."
STAGE = "TASK_PUT"
"""Kafka Connect's name for the stage in which a sink writes a message."""
FAILURE = f"{BadMessage.__module__}.{BadMessage.__qualname__}"


@with_fields
class LettersNotSent(WriterError):
    """A copy could not be sent to the topic for dead letters, so nothing was acknowledged."""

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


def headers_of(letter: DeadLetter) -> list[tuple[str, bytes | None]]:
    """The message's own headers, then Kafka Connect's, then the operator who acknowledged it and the
    reason."""
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
        self._target = TargetTopic(pipeline, "dead letters", topic, connection_id, connection)

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """See ``DeadLetters.keep``."""
        count_partitions(self._target)  # raises with a remedy where the topic is missing
        try:
            send_all(self._target.connection, map(self._record_of, letters), ANSWERS_WITHIN)
        except NotAllAcknowledged as error:
            target = self._target
            raise LettersNotSent(target.pipeline, target.topic, target.connection_id, error.reason) from error

    def _record_of(self, letter: DeadLetter) -> RecordToSend:
        message = letter.message
        return RecordToSend(
            self._target.topic,
            message["key"],
            message["value"],
            headers_of(letter),
            message["timestamp"] or 0,
        )
