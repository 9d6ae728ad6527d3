"""The manifest: which files *are* the log.

A manifest is immutable; publishing writes a new one and changes one control row to name it. Nothing here
touches a file system: ``files.py`` does.
"""

import builtins
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256

from tidemark.log.binding import NOTHING_YET
from tidemark.log.errors import BadBinding

MAX_FILES_PER_SEGMENT = 200


@dataclass(frozen=True, slots=True)
class LogFile:
    """One Parquet file: what one binding took from one Kafka partition."""

    path: str
    """Relative to the log's folder, so that a log can be moved."""
    t: int
    topic: str
    partition: int
    first_id: int
    last_id: int
    """First and last id a message in the file has; the binding may own more on both sides."""
    count: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of files with consecutive ids. The last one of a manifest is the active segment."""

    files: tuple[LogFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all its files."""
        return sum(f.bytes for f in self.files)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that was published up to the binding at ``t``."""

    pipeline: str
    segments: tuple[Segment, ...] = ()
    t: int = 0
    end: int = NOTHING_YET
    compacted_below: int = 0

    @property
    def files(self) -> Iterator[LogFile]:
        """All files, oldest first."""
        return (f for segment in self.segments for f in segment.files)

    @property
    def bytes(self) -> int:
        """The size of the log."""
        return sum(segment.bytes for segment in self.segments)

    @property
    def count(self) -> int:
        """The number of messages in the log."""
        return sum(f.count for f in self.files)

    def files_at(self, t: int) -> tuple[LogFile, ...]:
        """The files of one binding, in id order."""
        return tuple(f for f in self.files if f.t == t)

    def with_binding(self, t: int, end: int, files: Sequence[LogFile], segment_bytes: int) -> "Manifest":
        """The manifest after publishing one more binding; a segment is closed when it is full."""
        if t <= self.t or end <= self.end:
            raise BadBinding(f"{self.pipeline}: t={t} end={end} does not follow t={self.t} end={self.end}.")
        segments = list(self.segments) or [Segment(())]
        for file in sorted(files, key=lambda f: f.first_id):
            active = segments[-1]
            if active.files and (active.bytes >= segment_bytes or len(active.files) >= MAX_FILES_PER_SEGMENT):
                segments.append(Segment((file,)))
            else:
                segments[-1] = Segment((*active.files, file))
        return replace(self, segments=tuple(s for s in segments if s.files), t=t, end=end)

    def to_bytes(self) -> builtins.bytes:
        """The manifest file's content; the same manifest gives the same bytes."""
        return (json.dumps(asdict(self), indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: builtins.bytes) -> "Manifest":
        """The manifest a file holds."""
        body = json.loads(data)
        segments = tuple(Segment(tuple(LogFile(**f) for f in s["files"])) for s in body.pop("segments"))
        return cls(segments=segments, **body)


def digest_of(data: bytes) -> str:
    """The digest that names a manifest's content."""
    return sha256(data).hexdigest()
