"""Records of the topic as valid operations: everything that reads the topic judges them here, in one way.

A record that is no operation is skipped and counted: the pipeline's writer stops at it and tells its
operator, and a stream goes on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidemark.operations.corrections import FARTHEST
from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import ObjectOperation
from tidemark.operations.reading import read_record
from tidemark.oplog.model.correction_window import CorrectionWindow, EarlierOperation, short_key

Headers = Sequence[tuple[str, bytes | None]]


class TopicRecord(NamedTuple):
    """A record of the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None


class LookBack(NamedTuple):
    """Offsets of one partition to look back at.

    Attributes:
        partition: The partition.
        needed: The first offset that is needed.
        first: The first offset that is worth to be read with it, at or before ``needed``.
        end: The offset after the last one.
    """

    partition: int
    needed: int
    first: int
    end: int


class LookedBack(NamedTuple):
    """What was found: every operation from ``first`` on, which is at or before what was needed."""

    first: int
    operations: Sequence[EarlierOperation]

    @classmethod
    def of(cls, first: int, records: Iterable[TopicRecord]) -> "LookedBack":
        """What these records say. They are read one by one: memory holds their keys."""
        return cls(first, list(_operations(records)))


LookingBack = Callable[[LookBack], LookedBack]
"""Reads earlier records. Raises ``OffsetGone``, or another error, where those that are needed are gone."""


@dataclass(slots=True)
class RecordCounts:
    """What was read: records, void corrections among them, and records that are no operations."""

    received: int = 0
    void: int = 0
    bad: int = 0


class JudgedOperations:
    """Judges the records of a reader, which come in the order of their offsets within each partition.

    Attributes:
        counts: What was read so far.
    """

    def __init__(self, topic_id: str, look_back: LookingBack) -> None:
        self._topic_id, self._look_back = topic_id, look_back
        self._windows: dict[int, CorrectionWindow] = {}
        self.counts = RecordCounts()

    def begin(self, partition: int, first: int) -> None:
        """A partition is read from here on. Without it, it is read from its first record on."""
        self._windows[partition] = CorrectionWindow(self._topic_id, first)

    def operation(self, record: TopicRecord) -> ObjectOperation | None:
        """The operation of a record; None where it is void, or no operation."""
        partition, offset, key, value, headers = record
        counts = self.counts
        counts.received += 1
        window = self._windows.get(partition)
        if window is None:
            window = self._windows[partition] = CorrectionWindow(self._topic_id, offset)
        try:
            read = read_record(key, value, headers)
        except BadOperation:
            counts.bad += 1
            return None
        name, correction = key or b"", read.correction
        if correction is not None:
            while (needed := window.missing(offset, name, correction)) is not None:
                self._extend(window, partition, needed)
        if window.note(offset, name, correction):
            return read.operation
        counts.void += 1
        return None

    def _extend(self, window: CorrectionWindow, partition: int, needed: int) -> None:
        # As far as any correction that comes can reach: a reader looks back once, as a rule.
        first = max(min(needed, window.known_from - FARTHEST), 0)
        found = self._look_back(LookBack(partition, needed, first, window.known_from))
        if found.first > needed:
            raise ValueError(f"partition {partition} was read from {found.first} on, and {needed} is needed")
        window.look_back(found.first, found.operations)


def _operations(records: Iterable[TopicRecord]) -> Iterator[EarlierOperation]:
    for _, offset, key, value, headers in records:
        try:
            read = read_record(key, value, headers)
        except BadOperation:
            continue
        yield EarlierOperation(offset, short_key(key or b""), read.correction)
