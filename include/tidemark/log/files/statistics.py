"""Computes the statistics of a captured file, batch by batch. Keeps no messages."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import CapturedFile
from tidemark.log.model.manifest import LogFile
from tidemark.log.model.statistics import FileStatistics


class FileTally:
    """The statistics of one slice's file so far; ``is_declared`` tells which namespaces are declared."""

    COLUMNS: ClassVar = ["id", "topic", "partition", "offset", "timestamp", "namespace"]
    """The columns that ``count`` needs."""
    COUNTED: ClassVar = (
        *("first_id", "last_id", "first_offset", "last_offset", "disorder", "misnumbered", "strangers"),
        *("null_keys", "null_values", "first_timestamp", "last_timestamp"),
    )
    """The attributes that are fields of ``FileStatistics``."""

    def __init__(self, binding: Binding, slice_: Slice, is_declared: Callable[[str], bool]) -> None:
        self._binding, self._slice, self._is_declared = binding, slice_, is_declared
        self._shift = binding.shifts[slice_.topic, slice_.partition]
        self.rows = self.disorder = self.misnumbered = self.strangers = 0
        self.null_keys = self.null_values = 0
        self.first_id = self.last_id = self.first_offset = self.last_offset = -1
        self.first_timestamp = self.last_timestamp = 0

    def count(self, batch: pa.RecordBatch) -> None:
        """Count the messages of a batch; batches must come in the order of the file."""
        if batch.num_rows == 0:
            return
        ids, offsets = batch.column("id").to_numpy(), batch.column("offset").to_numpy()
        lowest, highest = pc.min_max(batch.column("timestamp")).as_py().values()
        if self.rows == 0:
            self.first_id, self.first_offset = int(ids[0]), int(offsets[0])
            self.first_timestamp, self.last_timestamp = lowest, highest
        else:
            self.disorder += int(offsets[0] <= self.last_offset)
            self.first_timestamp = min(self.first_timestamp, lowest)
            self.last_timestamp = max(self.last_timestamp, highest)
        self.disorder += int(np.count_nonzero(np.diff(offsets) <= 0))
        self.misnumbered += int(np.count_nonzero(ids - offsets != self._shift))
        self.last_id, self.last_offset = int(ids[-1]), int(offsets[-1])
        self.rows += batch.num_rows
        for namespace in pc.value_counts(batch.column("namespace")).to_pylist():
            if not self._is_declared(namespace["values"]):
                self.strangers += namespace["counts"]

    def count_nulls(self, metadata: pq.FileMetaData) -> None:
        """Take the numbers of null keys and values from the footer, so that the widest columns are not
        read.
        """
        self.null_keys, self.null_values = _nulls(metadata, "key"), _nulls(metadata, "value")

    def conclude(self, path: str, size: int, digest: str) -> CapturedFile:
        """The file with its statistics, after all its batches were counted."""
        s, t, first = self._slice, self._binding.t, self._slice.lower + self._shift
        place, owned = (s.topic, s.partition), (first, first + s.width - 1)
        file = LogFile(path, t, *place, self.first_id, self.last_id, self.rows, size, digest)
        counted: dict[str, Any] = {name: getattr(self, name) for name in self.COUNTED}
        statistics = FileStatistics(
            path,
            *place,
            s.lower,
            s.upper,
            *owned,
            rows_written=self.rows,
            bytes=size,
            digest=digest,
            **counted,
        )
        return CapturedFile(file, statistics)


def _nulls(metadata: pq.FileMetaData, column: str) -> int:
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    return sum(chunk.statistics.null_count for chunk in chunks if chunk.path_in_schema == column)
