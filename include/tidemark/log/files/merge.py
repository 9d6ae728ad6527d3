"""Merges the messages of several files in id order, also where the id ranges of the files overlap.

Files of one partition never overlap, so at most one file of each partition is open at a time. Memory holds
one batch of each open file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.log.model.binding import TopicPartition
from tidemark.log.model.manifest import LogFile

Read = Callable[[LogFile], Iterable[pa.RecordBatch]]
"""Reads the messages of a file in id order, with at least the column ``id``."""


def entwined(files: Iterable[LogFile]) -> Iterator[list[LogFile]]:
    """The files, which must be ordered by first id, in groups whose id ranges overlap; most have one file."""
    together: list[LogFile] = []
    last_id = -1
    for file in files:
        if together and file.first_id > last_id:
            yield together
            together = []
        together.append(file)
        last_id = max(last_id, file.last_id)
    if together:
        yield together


def lanes(files: Iterable[LogFile]) -> list[list[LogFile]]:
    """The files of each partition, in id order."""
    found: dict[TopicPartition, list[LogFile]] = {}
    for file in sorted(files, key=lambda one: one.first_id):
        found.setdefault(file.place, []).append(file)
    return list(found.values())


def merged(files: Iterable[LogFile], read: Read) -> Iterator[pa.RecordBatch]:
    """All messages of these files, in id order; the files must be ordered by first id."""
    for together in entwined(files):
        if len(together) == 1:
            yield from (batch for batch in read(together[0]) if batch.num_rows)
        else:
            yield from _merged([_Lane(lane, read) for lane in lanes(together)])


def _merged(given: Sequence["_Lane"]) -> Iterator[pa.RecordBatch]:
    at_work = [lane for lane in given if lane.advance()]
    while at_work:
        # No lane has further messages up to this id outside its current batch.
        limit = min(lane.last_id for lane in at_work)
        taken = [batch for lane in at_work if (batch := lane.take(limit)).num_rows]
        if len(taken) == 1:
            yield taken[0]
        else:
            yield from pa.Table.from_batches(taken).sort_by("id").combine_chunks().to_batches()
        at_work = [lane for lane in at_work if lane.is_left or lane.advance()]


@dataclass
class _Lane:
    """The files of one partition while they are read."""

    files: Sequence[LogFile]
    read: Read

    def __post_init__(self) -> None:
        self._batches = (batch for file in self.files for batch in self.read(file) if batch.num_rows)
        self._batch: pa.RecordBatch | None = None
        self._ids = np.empty(0, np.int64)

    def advance(self) -> bool:
        """Read the next batch; False where there is none."""
        self._batch = next(self._batches, None)
        if self._batch is not None:
            self._ids = self._batch.column("id").to_numpy()
        return self._batch is not None

    @property
    def is_left(self) -> bool:
        """Whether the batch has messages that were not taken."""
        return self._batch is not None and self._batch.num_rows > 0

    @property
    def last_id(self) -> int:
        """The last id of the batch."""
        return int(self._ids[-1])

    def take(self, limit: int) -> pa.RecordBatch:
        """Take the messages of the batch up to an id."""
        if self._batch is None:
            raise ValueError("no batch was read")
        count = int(np.searchsorted(self._ids, limit, side="right"))
        taken = self._batch.slice(0, count)
        self._batch, self._ids = self._batch.slice(count), self._ids[count:]
        return taken
