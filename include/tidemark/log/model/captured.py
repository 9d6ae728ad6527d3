"""The result of a capture: its files and their statistics, recorded before any of them is visible to readers.

Values only. The same capture gives the same record, byte for byte.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256

from tidemark.log.model.manifest import LogFile
from tidemark.log.model.statistics import FileStatistics


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """One file as the manifest will list it, with the statistics of its messages."""

    file: LogFile
    statistics: FileStatistics


@dataclass(frozen=True, slots=True)
class Captured:
    """The capture of one binding.

    Attributes:
        t: The binding.
        captured_files: Its files, in id order.
        rows_read: The number of records that were read from Kafka.
    """

    t: int
    captured_files: tuple[CapturedFile, ...]
    rows_read: int

    @property
    def files(self) -> tuple[LogFile, ...]:
        """The files as the manifest will list them."""
        return tuple(one.file for one in self.captured_files)

    @property
    def statistics(self) -> Iterator[FileStatistics]:
        """The statistics of each file."""
        return (one.statistics for one in self.captured_files)

    @property
    def digest(self) -> str:
        """The digest of the record, by which an audit refers to exactly this capture."""
        return sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """The content of the record's file."""
        files = [
            {"file": one.file.to_row(), "statistics": asdict(one.statistics)} for one in self.captured_files
        ]
        body = {"t": self.t, "files": files, "rows_read": self.rows_read}
        return (json.dumps(body, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Captured":
        """The record in a file."""
        body = json.loads(data)
        files = (
            CapturedFile(LogFile(**one["file"]), FileStatistics(**one["statistics"])) for one in body["files"]
        )
        return cls(body["t"], tuple(files), body["rows_read"])
