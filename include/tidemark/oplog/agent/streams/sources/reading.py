"""What is read for one client, records of the topic or rows of the collection, as its events. Blocks.

A reading gives one chunk after the other. Each has the client's position after it, so that a reading can be
given up between two chunks and taken up by another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemark.kafka.errors import OffsetGone
from tidemark.operations.operation import ObjectOperation
from tidemark.oplog.agent.streams.errors import Unjudged
from tidemark.oplog.agent.streams.sources.object_store import ObjectName, ObjectStore
from tidemark.oplog.model.event_ids import ReplicationId
from tidemark.oplog.model.follower import MOST_BYTES, StreamShape
from tidemark.oplog.model.images import ObjectRow, event_of, needs_before
from tidemark.oplog.model.judged_operations import JudgedOperations, TopicRecord
from tidemark.oplog.model.server_sent_events import OperationData
from tidemark.oplog.model.vector import MovingVector

MOST_RECORDS = 1_000
"""Of one chunk, before the filter."""


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """Some of the events of a reading.

    Attributes:
        data: Their bytes; may be empty.
        count: How many they are.
        position: The id of the client's place after them.
        is_last: Whether the reading is over.
    """

    data: bytes
    count: int
    position: bytes
    is_last: bool


class RecordReading:
    """Records of the topic, from Kafka or from the commit log.

    Attributes:
        vector: What the client has; moved forward by every chunk.
    """

    def __init__(
        self,
        records: Iterator[TopicRecord],
        ends: Mapping[int, int],
        judge: JudgedOperations,
        vector: MovingVector,
        shape: StreamShape,
        data: OperationData,
    ) -> None:
        """``ends``: the next offsets of the partitions that are read, when everything is read."""
        self.vector = vector
        self._records, self._ends, self._judge = records, ends, judge
        self._shape, self._data = shape, data
        self._failed: OffsetGone | Unjudged | None = None

    def next(self) -> ReadChunk:
        """The next chunk.

        Raises:
            OffsetGone: Kafka has removed what comes next.
            Unjudged: What comes next is a correction that cannot be judged any more.
        """
        shape, vector, before = self._shape, self.vector, self.vector.offsets
        parts: list[bytes] = []
        try:
            is_last = self._collect(parts)
        except (OffsetGone, Unjudged):
            # The client counts as having what was collected, so it is sent; the next call finds the error.
            if vector.offsets == before:
                raise
            is_last = False
        if is_last:
            for partition, end in self._ends.items():
                vector.move(partition, end)
        return ReadChunk(b"".join(parts), len(parts), shape.prefix + vector.text, is_last)

    def _collect(self, parts: list[bytes]) -> bool:
        """Collect the next events; whether there are no more."""
        if self._failed is not None:
            raise self._failed
        shape, vector, format_, size = self._shape, self.vector, self._shape.format, 0
        try:
            for read, record in enumerate(self._records, 1):
                operation = self._judged(record)
                vector.move(record.partition, record.offset + 1)
                if operation is not None and shape.filter.admits(operation.type, operation.parents):
                    data = self._data.encode(operation)
                    event = format_.event(operation.event, shape.prefix + vector.text, data)
                    parts.append(event)
                    size += len(event)
                if read == MOST_RECORDS or size >= MOST_BYTES:
                    return False
        except (OffsetGone, Unjudged) as error:
            self._failed = error
            raise
        return True

    def _judged(self, record: TopicRecord) -> ObjectOperation | None:
        try:
            return self._judge.operation(record)
        except OffsetGone:
            raise Unjudged(record.partition, record.offset) from None


@dataclass(frozen=True, slots=True)
class RowBounds:
    """Which rows of a collection are wanted.

    Attributes:
        after: Only those after this time; None: all that are not deleted.
        until: The last time of which the client may have a part.
        beyond: Only those from these offsets on; None: of all partitions, whatever their offset.
    """

    after: int | None = None
    until: int = 0
    beyond: Sequence[int | None] | None = None

    def wants(self, row: ObjectRow) -> bool:
        """Whether the newest row of an object is wanted."""
        if self.after is None:
            return not row.is_deleted
        return row.t > self.after and not self.is_known(row)

    def is_known(self, row: ObjectRow) -> bool:
        """Whether a row after the bound is one that the client has been told of, or will be otherwise."""
        if self.beyond is None:
            return False
        first = self.beyond[row.partition]
        return first is None or row.offset < first

    def before(self, versions: Sequence[ObjectRow]) -> ObjectRow | None:
        """The row that the client may have, of an object's rows with the newest first."""
        assert self.after is not None
        return next((row for row in versions if row.t <= self.after or self.is_known(row)), None)


class RowReading:
    """Rows of the collection."""

    def __init__(
        self,
        store: ObjectStore,
        begin: ReplicationId,
        bounds: RowBounds,
        shape: StreamShape,
        data: OperationData,
    ) -> None:
        """Begins at the token of an id."""
        self._store, self._bounds = store, bounds
        self._shape, self._data = shape, data
        self._before, self._after = (each.encode() for each in begin.around_token)
        self._events = self._read(begin)
        self.token = begin.token
        """The last token that was read. Rows that have it too may follow."""

    def next(self) -> ReadChunk:
        """The next chunk: of one page, so that a filter that admits nothing advances."""
        before, after, format_ = self._before, self._after, self._shape.format
        parts: list[bytes] = []
        size, is_last = 0, True
        for found in self._events:
            if isinstance(found, int):
                self.token, is_last = found, False
                break
            self.token, name, operation = found
            event = format_.event(name, b"%b%d%b" % (before, self.token, after), self._data.encode(operation))
            parts.append(event)
            size += len(event)
            if size >= MOST_BYTES:
                is_last = False
                break
        return ReadChunk(b"".join(parts), len(parts), b"%b%d%b" % (before, self.token, after), is_last)

    def _read(self, begin: ReplicationId) -> Iterator[tuple[int, str, ObjectOperation] | int]:
        """The events of all pages, with their tokens; the last token after each page."""
        for page in self._store.rows(begin.t, begin.token):
            yield from self._chosen(page)
            if page:
                yield page[-1].token

    def _chosen(self, page: Sequence[ObjectRow]) -> Iterator[tuple[int, str, ObjectOperation]]:
        """The events that the client is sent for a page."""
        bounds, filter_ = self._bounds, self._shape.filter
        wanted = [row for row in page if bounds.wants(row)]
        versions: Mapping[ObjectName, Sequence[ObjectRow]] = {}
        if bounds.after is not None:
            unclear = [_name(row) for row in wanted if needs_before(row, filter_)]
            versions = self._store.versions(unclear, bounds.after, bounds.until) if unclear else {}
        for row in wanted:
            before = bounds.before(versions.get(_name(row), ())) if bounds.after is not None else None
            found = event_of(row, before, filter_)
            if found is not None:
                yield row.token, found[0], found[1]


def _name(row: ObjectRow) -> ObjectName:
    return row.operation.type, row.operation.id
