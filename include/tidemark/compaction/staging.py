"""The working area of one plan: the log's files to read, and notes about them under ``staging``.

A note is named after the file that it is about, and its content depends on that file and the plan alone, so a
repeated task changes nothing. Notes are removed with the area when the plan is published or abandoned.
"""

import io
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidemark.log.files.folder import STAGING, Folder
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.manifest import LogFile

AREA = "compaction-"
"""The prefix of a plan's area under ``staging``; the digits of the plan's digest follow, for the sweep."""


@dataclass(frozen=True)
class Workplace:
    """The folder of a log, and the area in it that belongs to one plan.

    Attributes:
        plan: The plan's digest.
        look: A suffix of the area's name for a dry run, so that it shares no notes with other runs.
    """

    pipeline: str
    root: str
    plan: str
    look: str = field(default="", kw_only=True)

    @cached_property
    def log(self) -> LogFolder:
        """The log's files."""
        return LogFolder(self.pipeline, self.root)

    @cached_property
    def folder(self) -> Folder:
        """The folder of the log, for notes."""
        return Folder(self.pipeline, self.root)

    @property
    def area(self) -> str:
        """The name of the plan's area under ``staging``."""
        return AREA + self.plan[:12] + self.look

    def eligible(
        self, file: LogFile, watermark: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The messages of a file below the watermark, in id order; refuses a damaged file."""
        return self.log.read_file(file, columns, 0, watermark - 1)

    def may_lack_values(self, file: LogFile) -> bool:
        """Whether a file may hold messages without a value, by the statistics in its footer."""
        with self.folder.open(file.path) as source, pq.ParquetFile(source) as parquet:
            column = parquet.schema_arrow.names.index("value")
            for number in range(parquet.num_row_groups):
                statistics = parquet.metadata.row_group(number).column(column).statistics
                if statistics is None or not statistics.has_null_count or statistics.null_count:
                    return True
        return False

    def note_reach(self, file: LogFile, reach: NDArray[np.int64]) -> None:
        """Store the reach of a file's messages below the watermark (see ``journal_batches``)."""
        self._note("reach", file, reach)

    def reach(self, file: LogFile) -> NDArray[np.int64]:
        """The stored reach of a file's messages below the watermark, in id order."""
        return self._noted("reach", file)

    def note_dropped(self, file: LogFile, ids: NDArray[np.int64]) -> None:
        """Store the ids that are dropped from a file, in order."""
        self._note("dropped", file, ids)

    def dropped(self, file: LogFile) -> NDArray[np.int64]:
        """The stored ids that are dropped from a file, in order."""
        return self._noted("dropped", file)

    def is_noted(self, file: LogFile) -> bool:
        """Whether the ids that are dropped from a file are stored."""
        return self.folder.exists(self._path("dropped", file))

    def remove(self) -> None:
        """Remove all notes of the plan."""
        self.folder.remove_area(posixpath.join(STAGING, self.area))

    def _note(self, kind: str, file: LogFile, numbers: NDArray[np.int64]) -> None:
        sink, batch = io.BytesIO(), pa.record_batch([pa.array(numbers)], names=["number"])
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        self.folder.write_once(self._path(kind, file), sink.getvalue(), self.area)

    def _noted(self, kind: str, file: LogFile) -> NDArray[np.int64]:
        with pa.ipc.open_file(self.folder.read(self._path(kind, file))) as reader:
            numbers: NDArray[np.int64] = reader.read_all()["number"].to_numpy()
        return numbers

    def _path(self, kind: str, file: LogFile) -> str:
        name = posixpath.basename(file.path).removesuffix(".parquet")
        return posixpath.join(STAGING, self.area, f"{name}.{kind}")
