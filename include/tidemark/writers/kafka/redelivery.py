"""A dead letter sent to a kafka writer's topic after all, at the end of its partition, once.

It does not get the headers of what comes in id order: the largest of those says where the writer goes on.
Its own ones name the id and the writer, and tell a second attempt that the first was there: it looks from the
offset on that was the partition's end before the first. Order among the messages of a key is the caller's
business.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from tidemark.delivery.writer import Check
from tidemark.writers.kafka.last_id import WHAT
from tidemark.writers.kafka.output import record_of
from tidemark.writers.kafka.target import TargetTopic, blaming, producer_of, reading

REDELIVERED_ID = "tidemark-redelivered-id"
REDELIVERED_BY = "tidemark-redelivered-writer"


def send_after_all(
    target: TargetTopic, message: Mapping[str, Any], partition: int, since: int, lease: Check
) -> None:
    """Send a message unless it is there from an offset on."""
    what = f"did not take id {message['id']}"
    with blaming(target, what, partition), closing(producer_of(target, partition)) as producer:
        # Ends what an attempt before this one may have left open, so that what is found then is the truth.
        producer.open()
        if not _is_there(target, partition, int(message["id"]), since):
            lease.check()
            producer.commit([record_of(target, partition, message, REDELIVERED_BY, REDELIVERED_ID)])


def _is_there(target: TargetTopic, partition: int, id_: int, since: int) -> bool:
    """Whether an attempt has committed the message."""
    wanted = (target.origin.encode(), str(id_).encode())
    with reading(target, WHAT) as reader:
        begin, end = reader.offsets(target.topic, partition)
        for record in reader.records(target.topic, partition, max(begin, since), end):
            headers = dict(record.headers)
            if (headers.get(REDELIVERED_BY), headers.get(REDELIVERED_ID)) == wanted:
                return True
    return False
