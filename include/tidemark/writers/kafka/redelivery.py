"""Redelivery of a dead letter to a kafka writer's topic: at the end of its partition, exactly once.

It does not get the headers of regular messages, because the largest id in those is where the writer
continues. Its own headers name the id and the writer. A retry searches for them from the offset that was the
partition's end before the first attempt. The order among messages of a key is checked by the caller.
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
    """Send a message unless the partition has it at offset ``since`` or later."""
    what = f"did not take id {message['id']}"
    with blaming(target, what, partition), closing(producer_of(target, partition)) as producer:
        # Completes or aborts the transaction of an earlier attempt, so that the search is conclusive.
        producer.open()
        if not _is_there(target, partition, int(message["id"]), since):
            lease.check()
            producer.commit([record_of(target, partition, message, REDELIVERED_BY, REDELIVERED_ID)])


def _is_there(target: TargetTopic, partition: int, id_: int, since: int) -> bool:
    """Whether an earlier attempt has committed the message."""
    wanted = (target.origin.encode(), str(id_).encode())
    with reading(target, WHAT) as reader:
        begin, end = reader.offsets(target.topic, partition)
        for record in reader.records(target.topic, partition, max(begin, since), end):
            headers = dict(record.headers)
            if (headers.get(REDELIVERED_BY), headers.get(REDELIVERED_ID)) == wanted:
                return True
    return False
