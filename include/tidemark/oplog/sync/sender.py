"""Sends the corrections of a synchronisation: reads on, sends a batch, reads on, until all are settled.

Keeps nothing: what an earlier attempt has sent is found in the topic. Joins no group and commits nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from tidemark.faults import FaultPoint, reach
from tidemark.operations.errors import BadOperation
from tidemark.operations.reading import read_record
from tidemark.oplog.sync.sending import Outgoing, Place, Sending, Settled

Headers = Sequence[tuple[str, bytes | None]]


class TopicRecord(Protocol):
    """A record of the topic."""

    @property
    def offset(self) -> int:
        """Its offset."""

    @property
    def key(self) -> bytes | None:
        """Its key."""

    @property
    def value(self) -> bytes | None:
        """Its value."""

    @property
    def headers(self) -> Headers:
        """Its headers."""


class OperationTopic(Protocol):
    """The topic of the operations."""

    def ends(self) -> Mapping[int, int]:
        """The next offset of every partition, as far as records can be read."""

    def records(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, TopicRecord]]:
        """The records of these offsets by partition, the second of each not included; in their order."""

    def send(self, corrections: Sequence[Outgoing]) -> Sequence[Place]:
        """Send to the partitions that the corrections name. Returns their places once all are safe."""


def send_corrections(
    sending: Sending, topic: OperationTopic, settle: Callable[[Sequence[Settled]], object]
) -> None:
    """Send what has to be sent. ``settle`` gets every correction about which nothing more has to be done."""
    while True:
        read_on(sending, topic)
        batch = sending.batch()
        settle(sending.take_settled())
        if not batch:
            return
        reach(FaultPoint.SYNC_BATCH_READ)
        sending.acknowledge(topic.send(batch))
        reach(FaultPoint.SYNC_BATCH_SENT)


def read_on(sending: Sending, topic: OperationTopic) -> None:
    """Read every partition to its end, and at least as far as this sender has written."""
    ends = topic.ends()
    sending.refuse_truncated(ends)
    ranges = {
        partition: (first, max(ends.get(partition, first), sending.needed(partition)))
        for partition, first in sending.next_offsets.items()
    }
    for partition, record in topic.records(
        {number: one for number, one in ranges.items() if one[0] < one[1]}
    ):
        if record.key is None or not sending.wants(record.key):
            continue
        try:
            recorded = read_record(record.key, record.value, record.headers)
        except BadOperation:
            continue  # it says nothing: the collection stops there until an operator has passed it
        sending.meet(partition, record.offset, recorded)
    for partition, (_, end) in ranges.items():
        sending.read_to(partition, end)
