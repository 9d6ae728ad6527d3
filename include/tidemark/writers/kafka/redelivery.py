"""A dead letter sent to a kafka writer's topic after all, at the end of its partition, once.

It does not get the headers of what comes in id order: the largest of those says where the writer goes on.
Its own ones name the id and the writer, and tell a second attempt that the first was there: it looks from the
offset on that was the partition's end before the first. Order among the messages of a key is the caller's
business.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from tidemark.delivery.writer import Check
from tidemark.writers.kafka.last_id import offsets_of
from tidemark.writers.kafka.output import produce
from tidemark.writers.kafka.target import (
    ANSWERS_WITHIN,
    Complaints,
    Fenced,
    Target,
    TargetFailed,
    client_options,
    consuming,
    is_fenced,
)

REDELIVERED_ID = "tidemark-redelivered-id"
REDELIVERED_BY = "tidemark-redelivered-writer"
_WHAT = "could not be read"


def end_of(target: Target, partition: int) -> int:
    """The offset behind everything that is in a partition, open transactions included."""
    with consuming(target, _WHAT, "read_uncommitted") as consumer:
        return offsets_of(consumer, TopicPartition(target.topic, partition))[1]


def send_after_all(
    target: Target, message: Mapping[str, Any], partition: int, since: int, lease: Check
) -> None:
    """Send a message unless it is there from an offset on."""
    complaints = Complaints()
    producer = Producer(
        {
            **client_options(target, complaints),
            "transactional.id": target.transactional_id(partition),
            "acks": "all",
            "message.max.bytes": 1_000_000_000,
            "allow.auto.create.topics": False,
        }
    )
    try:
        # Ends what an attempt before this one may have left open, so that what is found then is the truth.
        producer.init_transactions(ANSWERS_WITHIN)
        if _is_there(target, partition, int(message["id"]), since):
            return
        lease.check()
        producer.begin_transaction()
        produce(producer, target, partition, message, REDELIVERED_BY, REDELIVERED_ID)
        producer.commit_transaction(ANSWERS_WITHIN)
    except KafkaException as error:
        if is_fenced(error):
            raise Fenced(target, partition) from error
        what = f"did not take id {message['id']} in partition {partition}"
        raise TargetFailed(target, what, complaints.about(error)) from error
    finally:
        producer.purge()
        with suppress(KafkaException):
            producer.close()


def _is_there(target: Target, partition: int, id_: int, since: int) -> bool:
    """Whether an attempt has committed the message."""
    place = TopicPartition(target.topic, partition, since)
    with consuming(target, _WHAT) as consumer:
        begin, end = offsets_of(consumer, place)
        if max(begin, since) >= end:
            return False
        consumer.assign([TopicPartition(target.topic, partition, max(begin, since))])
        while True:
            message = consumer.poll(ANSWERS_WITHIN)
            if message is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no messages within the time"))
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return False
            if error is not None:
                raise KafkaException(error)
            headers = dict(message.headers() or ())
            found = headers.get(REDELIVERED_BY), headers.get(REDELIVERED_ID)
            if found == (target.origin.encode(), str(id_).encode()):
                return True
            if (message.offset() or 0) >= end - 1:
                return False
