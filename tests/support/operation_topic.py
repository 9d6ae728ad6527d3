"""A topic of operations in memory, with what its readers make of it: the reference for what sends to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemark.operations.corrections import CORRECTION_HEADER, is_void
from tidemark.operations.operation import EventName, ObjectOperation, encoded
from tidemark.operations.reading import RecordedOperation, read_record
from tidemark.oplog.sync.sender import Headers
from tidemark.oplog.sync.sending import Outgoing, Place

TOPIC_ID = "6a1f0f3c-8f5c-4a5e-9d9e-0d6b8c1f2a3b"


def operation(id_: str, event: str = "update", at: int = 0, *parents: str) -> ObjectOperation:
    """An operation on an object of type ``video``, at a time in seconds."""
    return ObjectOperation(EventName(event), at * 1_000, parents, "video", id_)


@dataclass(frozen=True)
class StoredRecord:
    """A record, as Kafka returns it."""

    offset: int
    key: bytes
    value: bytes
    headers: Headers = ()

    @property
    def recorded(self) -> RecordedOperation:
        return read_record(self.key, self.value, self.headers)


class MemoryTopic:
    """See the module. An object is in the partition that ``partition_of`` says."""

    def __init__(self, partitions: int = 1) -> None:
        self.logs: list[list[StoredRecord]] = [[] for _ in range(partitions)]
        self.sent: list[Outgoing] = []

    def partition_of(self, id_: str) -> int:
        return sum(id_.encode()) % len(self.logs)

    def append(self, one: ObjectOperation, headers: Headers = ()) -> Place:
        partition = self.partition_of(one.id)
        log = self.logs[partition]
        log.append(StoredRecord(len(log), one.key, encoded(one), headers))
        return partition, len(log) - 1

    def keep(self, partition: int, offset: int, key: bytes, value: bytes, headers: Headers) -> None:
        """A record that another topic has at this place."""
        self.logs[partition].append(StoredRecord(offset, key, value, headers))

    def append_correction(self, one: Outgoing) -> Place:
        assert one.partition == self.partition_of(one.operation.id)
        return self.append(one.operation, [(CORRECTION_HEADER, one.header.to_header())])

    # What a sender asks for

    def ends(self) -> Mapping[int, int]:
        return {number: len(log) for number, log in enumerate(self.logs)}

    def records(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, StoredRecord]]:
        for number, (first, end) in ranges.items():
            assert end <= len(self.logs[number]), "a read beyond the end would wait for ever"
            for record in self.logs[number][first:end]:
                yield number, record

    def send(self, corrections: Sequence[Outgoing]) -> list[Place]:
        self.sent += corrections
        return [self.append_correction(one) for one in corrections]

    # What readers make of it

    def valid(self, topic_id: str = TOPIC_ID) -> list[tuple[Place, RecordedOperation]]:
        """The operations that count, by partition and offset."""
        found = []
        for number, log in enumerate(self.logs):
            last: dict[bytes, int] = {}
            for record in log:
                one = record.recorded
                if one.correction and is_void(one.correction, record.offset, topic_id, last.get(record.key)):
                    continue
                last[record.key] = record.offset
                found.append(((number, record.offset), one))
        return found

    def state(self) -> dict[str, ObjectOperation]:
        """The newest operation of every object."""
        return {one.operation.id: one.operation for _, one in self.valid()}

    def places(self) -> dict[bytes, Place]:
        """The place of the newest operation of every object."""
        return {one.operation.key: place for place, one in self.valid()}
