"""The manifest: which files *are* the log.

A manifest is immutable; publishing writes a new one and changes one control row to name it. Nothing here
touches a file system: ``files.py`` does.
"""

import builtins
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from tidemark.log.errors import BadBinding
from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition

MAX_FILES_PER_SEGMENT = 200
SAME_AS_T = -1
JOURNAL = "journal"
"""The policy that keeps the state of every entity of a journal."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One Parquet file with messages of one Kafka partition, in id order: as a capture wrote it, of one
    binding; after a compaction maybe of several.
    """

    path: str
    """Relative to the log's folder, so that a log can be moved."""
    t: int
    """The newest binding with a message in it."""
    topic: str
    partition: int
    first_id: int
    last_id: int
    """First and last id a message in the file has; the bindings may own more on both sides."""
    count: int
    bytes: int
    digest: str
    first_t: int = SAME_AS_T
    """The oldest binding with a message in it."""

    def __post_init__(self) -> None:
        if self.first_t == SAME_AS_T:
            object.__setattr__(self, "first_t", self.t)

    @property
    def place(self) -> TopicPartition:
        """Whose messages they are."""
        return self.topic, self.partition

    def may_have(self, first_id: int, last_id: int) -> bool:
        """Whether a message in it can have one of these ids."""
        return self.first_id <= last_id and self.last_id >= first_id

    def most(self, first_id: int, last_id: int) -> int:
        """How many messages with these ids it can hold at most."""
        ids = min(self.last_id, last_id) - max(self.first_id, first_id) + 1
        return max(min(self.count, ids), 0)

    def to_row(self) -> dict[str, Any]:
        """The file as manifests and records of captures list it."""
        row = asdict(self)
        if self.first_t == self.t:  # as it was written before there were others: the bytes stay the same
            del row["first_t"]
        return row


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of files. The last one of a manifest is the active segment: it lies above all others.

    Files of one partition never share ids. Those of different ones may lie between each other where several
    bindings went into a file.
    """

    files: tuple[LogFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all its files."""
        return sum(f.bytes for f in self.files)


@dataclass(frozen=True)
class Manifest:
    """Everything that was published up to the binding at ``t``."""

    pipeline: str
    segments: tuple[Segment, ...] = ()
    t: int = 0
    end: int = NOTHING_YET
    compacted_below: int = 0
    """Of the ids below this one, compaction may have taken messages out."""
    policies: tuple[str, ...] = ()
    """Those by which it did so: what may be done with what is left depends on all of them."""

    @property
    def keeps_state(self) -> bool:
        """Whether replaying what is left of a journal gives every entity the state it has."""
        return self.compacted_below == 0 or self.policies == (JOURNAL,)

    @property
    def files(self) -> Iterator[LogFile]:
        """All files, by segments; in one segment in the order of their first ids."""
        return (f for segment in self.segments for f in segment.files)

    @property
    def bytes(self) -> int:
        """The size of the log."""
        return sum(segment.bytes for segment in self.segments)

    @property
    def count(self) -> int:
        """The number of messages in the log."""
        return sum(f.count for f in self.files)

    def files_of(self, binding: Binding) -> tuple[LogFile, ...]:
        """The files that may hold messages of a binding, in the order of its ids.

        They may hold others too: whoever reads them asks for the binding's ids only.
        """
        found: list[LogFile] = []
        for place, (first_id, last_id) in binding.owned.items():
            own = self._by_place.get(place, [])
            begin = bisect_left(own, first_id, key=lambda file: file.last_id)
            end = bisect_right(own, last_id, lo=begin, key=lambda file: file.first_id)
            found += own[begin:end]
        return tuple(found)

    @cached_property
    def _by_place(self) -> Mapping[TopicPartition, list[LogFile]]:
        """The files of every partition, in id order: they do not overlap."""
        found: dict[TopicPartition, list[LogFile]] = {}
        for file in sorted(self.files, key=lambda one: one.first_id):
            found.setdefault(file.place, []).append(file)
        return found

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

    def with_compacted(self, segments: Sequence[Segment], below: int, policy: str) -> "Manifest":
        """The manifest after a compaction of what lies below an id, which has left these segments."""
        return replace(
            self,
            segments=tuple(s for s in segments if s.files),
            compacted_below=max(self.compacted_below, below),
            policies=tuple(sorted({*self.policies, policy})),
        )

    def to_bytes(self) -> builtins.bytes:
        """The manifest file's content; the same manifest gives the same bytes."""
        body: dict[str, Any] = {
            "pipeline": self.pipeline,
            "segments": [{"files": [file.to_row() for file in segment.files]} for segment in self.segments],
            "t": self.t,
            "end": self.end,
            "compacted_below": self.compacted_below,
        }
        if self.policies:
            body["policies"] = self.policies
        return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: builtins.bytes) -> "Manifest":
        """The manifest a file holds."""
        body = json.loads(data)
        segments = tuple(Segment(tuple(LogFile(**f) for f in s["files"])) for s in body.pop("segments"))
        policies = tuple(body.pop("policies", ()))
        return cls(segments=segments, policies=policies, **body)


def digest_of(data: bytes) -> str:
    """The digest that names a manifest's content."""
    return sha256(data).hexdigest()
