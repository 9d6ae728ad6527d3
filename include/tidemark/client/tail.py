"""The tail of a journal in Kafka: the actions of one entity in a partition, from an offset to a mark."""

from collections.abc import Iterator

from tidemark.client.errors import BadRecord, TailUnreadable
from tidemark.connections import KafkaConnection
from tidemark.journal.action import Action
from tidemark.journal.codec.json_text import storable
from tidemark.journal.codec.record import read_action, read_key
from tidemark.journal.errors import Undecodable
from tidemark.kafka.consumer import ReadRecord
from tidemark.kafka.errors import KafkaFailure, OffsetGone
from tidemark.kafka.tail import KafkaTail

_REPLACED = "\ufffd"


class JournalTail:
    """The partitions of one topic."""

    def __init__(self, topic: str, connection: KafkaConnection, isolation: str, patience: float) -> None:
        self._topic = topic
        self._kafka = KafkaTail(connection, "tidemark-journal", patience, isolation=isolation)

    def actions(self, key: str, partition: int, first: int, mark: int) -> Iterator[tuple[int, Action]]:
        """See ``Tail.actions``. The mark itself is read too, so that the end of the range is certain."""
        wanted = storable(key).encode()
        is_odd = _REPLACED in key
        for record in self._records(key, partition, first, mark):
            found = record.key
            if found != wanted and not (is_odd and found is not None and read_key(found) == key):
                continue
            try:
                action = read_action(
                    found, record.value, record.timestamp, record.timestamp_type, record.headers
                )
            except Undecodable as error:
                raise BadRecord(self._topic, key, partition, record.offset, error.reason) from None
            if action is not None:
                yield record.offset, action

    def end(self, key: str, partition: int) -> int:
        """See ``Tail.end``."""
        try:
            return self._kafka.end(self._topic, partition)
        except KafkaFailure as error:
            raise TailUnreadable(self._topic, key, partition, 0, 0, error.reason) from error

    def _records(self, key: str, partition: int, first: int, mark: int) -> Iterator[ReadRecord]:
        position = first
        try:
            for record in self._kafka.records(self._topic, partition, first, mark + 1):
                position = record.offset + 1
                if record.offset < mark:
                    yield record
        except OffsetGone:
            raise
        except KafkaFailure as error:
            raise TailUnreadable(self._topic, key, partition, position, mark, error.reason) from error

    def close(self) -> None:
        """Closes idle consumers; those in use close when their read ends."""
        self._kafka.close()
