"""One partition of a target topic with its transactional producer.

Messages are sent in transactions: a reader sees all messages of one or none. Opening a partition fences the
former producer, and completes or aborts its open transaction. After that, the end of the partition shows what
was committed, also where the response to a commit was lost. Nothing is repaired here: a producer that failed
is closed, and the next one reads the partition's end again.
"""

import atexit
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any, Self

from tidemark.delivery.writer import BadMessage, Check
from tidemark.kafka.producer import RecordToSend
from tidemark.writers.kafka.last_id import ID_HEADER, WHAT, WRITER_HEADER, find_last_id
from tidemark.writers.kafka.target import TargetTopic, blaming, producer_of, reading

MESSAGES_AT_ONCE = 5_000
BYTES_AT_ONCE = 8_000_000
"""The bounds of a transaction: readers of the partition wait while it is open."""


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


class OutputPartition:
    """A partition that is open for writing."""

    def __init__(self, target: TargetTopic, partition: int) -> None:
        self._target, self._partition = target, partition
        self._waiting: list[Mapping[str, Any]] = []
        self._bytes = 0
        self._producer = producer_of(target, partition)
        with self._closing_on_failure("could not be opened for writing"):
            self._producer.open()
            self.last_id = find_last_id(target, partition)

    def add(self, message: Mapping[str, Any], lease: Check) -> None:
        """Buffer a message, with ids ascending; commits where the buffer is full."""
        self._waiting.append(message)
        self._bytes += len(message["value"] or b"") + len(message["key"] or b"")
        if len(self._waiting) >= MESSAGES_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            self.commit(lease)

    def commit(self, lease: Check) -> None:
        """Send the buffered messages in one transaction."""
        if not self._waiting:
            return
        lease.check()
        first, last = self._waiting[0]["id"], self._waiting[-1]["id"]
        with self._closing_on_failure(f"did not take ids {first} to {last}"):
            self._producer.commit(self._records(self._waiting))
        self.last_id = last
        self._waiting, self._bytes = [], 0

    def _records(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[RecordToSend]:
        for message in messages:
            yield record_of(self._target, self._partition, message, WRITER_HEADER, ID_HEADER)

    def close(self) -> None:
        """Close the producer; uncommitted messages never become visible."""
        self._producer.close()

    @contextmanager
    def _closing_on_failure(self, what: str) -> Iterator[None]:
        try:
            with blaming(self._target, what, self._partition):
                yield
        except BaseException:
            self.close()
            raise


def record_of(
    target: TargetTopic, partition: int, message: Mapping[str, Any], writer_header: str, id_header: str
) -> RecordToSend:
    """A message as it is in the log, with headers that name its writer and its id."""
    headers = [(header["name"], header["value"]) for header in message["headers"] or ()]
    headers.append((writer_header, target.origin.encode()))
    headers.append((id_header, str(message["id"]).encode()))
    return RecordToSend(
        target.topic, message["key"], message["value"], headers, message["timestamp"] or 0, partition
    )


class Outputs:
    """The partitions that one part is written to, each opened for its first message.

    With ``keep`` they stay open in this process for the next parts, as long as nothing fails.
    """

    def __init__(self, target: TargetTopic, lease: Check, *, keep: bool) -> None:
        self._target, self._lease, self._keep = target, lease, keep
        self._open: dict[int, OutputPartition] = {}

    def __enter__(self) -> Self:
        return self

    def __getitem__(self, partition: int) -> OutputPartition:
        if partition not in self._open:
            kept = _kept.get(_key(self._target, partition)) if self._keep else None
            self._open[partition] = kept or self._take(partition)
        return self._open[partition]

    def _take(self, partition: int) -> OutputPartition:
        # Opening fences the former producer, which only the holder of the lease may do.
        self._lease.check()
        _drop(self._target, partition)
        output = OutputPartition(self._target, partition)
        if self._keep:
            _kept[_key(self._target, partition)] = output
        return output

    def commit(self) -> None:
        """Send all buffered messages."""
        for output in self._open.values():
            output.commit(self._lease)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._keep and (error is None or isinstance(error, BadMessage)):
            return
        for partition, output in self._open.items():
            if self._keep:
                _kept.pop(_key(self._target, partition), None)
            output.close()


_kept: dict[tuple[int, TargetTopic, int], OutputPartition] = {}


def _key(target: TargetTopic, partition: int) -> tuple[int, TargetTopic, int]:
    return os.getpid(), target, partition  # a forked process has the dictionary, but not the connections


def _drop(target: TargetTopic, partition: int) -> None:
    if kept := _kept.pop(_key(target, partition), None):
        kept.close()


def let_go(target: TargetTopic) -> None:
    """Close partitions that earlier parts have left open: another process may have written since."""
    for process, of, partition in list(_kept):
        if (process, of) == (os.getpid(), target):
            _drop(target, partition)


@atexit.register
def _close_all() -> None:
    for process, target, partition in list(_kept):
        if process == os.getpid():
            _drop(target, partition)
