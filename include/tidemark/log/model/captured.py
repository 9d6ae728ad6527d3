"""What the capture of one binding produced: recorded before anything of it is visible.

Pure values. The same capture gives the same record, byte for byte.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256

from tidemark.log.model.manifest import LogFile
from tidemark.log.model.statistics import FileStatistics


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """One file as the manifest will list it, and what the capture counted in it."""

    file: LogFile
    statistics: FileStatistics


@dataclass(frozen=True, slots=True)
class Captured:
    """All files of one binding, in id order."""

    t: int
    captured_files: tuple[CapturedFile, ...]
    rows_read: int
    """Records that Kafka gave."""

    @property
    def files(self) -> tuple[LogFile, ...]:
        """The files as the manifest will list them."""
        return tuple(one.file for one in self.captured_files)

    @property
    def statistics(self) -> Iterator[FileStatistics]:
        """What was counted, file by file."""
        return (one.statistics for one in self.captured_files)

    @property
    def digest(self) -> str:
        """What an audit names, so that it speaks of exactly this capture."""
        return sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """The record's content."""
        files = [
            {"file": one.file.to_row(), "statistics": asdict(one.statistics)} for one in self.captured_files
        ]
        body = {"t": self.t, "files": files, "rows_read": self.rows_read}
        return (json.dumps(body, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Captured":
        """The record a file holds."""
        body = json.loads(data)
        files = (
            CapturedFile(LogFile(**one["file"]), FileStatistics(**one["statistics"])) for one in body["files"]
        )
        return cls(body["t"], tuple(files), body["rows_read"])
