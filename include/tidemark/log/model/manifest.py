"""The manifest: the list of files that form the log.

A manifest is immutable. Publishing writes a new one and changes the control row that names the current one.
Nothing here touches a file system: ``log/files`` does.
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
from tidemark.log.model.binding_list import NO_LISTS, BindingLists

MAX_FILES_PER_SEGMENT = 200
SAME_AS_T = -1
JOURNAL = "journal"
"""The compaction policy that preserves the state of every entity of a journal."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One Parquet file with messages of one Kafka partition, in id order.

    A captured file has messages of one binding, a compacted file may have messages of several.

    Attributes:
        path: Relative to the log's folder, so that a log can be moved.
        t: The newest binding with a message in the file.
        topic: The topic's name.
        partition: The partition's number.
        first_id: The id of the first message; its binding may own lower ones.
        last_id: The id of the last message; its binding may own higher ones.
        count: The number of messages.
        bytes: The size of the file.
        digest: The SHA-256 of its content.
        first_t: The oldest binding with a message in the file.
    """

    path: str
    t: int
    topic: str
    partition: int
    first_id: int
    last_id: int
    count: int
    bytes: int
    digest: str
    first_t: int = SAME_AS_T

    def __post_init__(self) -> None:
        if self.first_t == SAME_AS_T:
            object.__setattr__(self, "first_t", self.t)

    @property
    def place(self) -> TopicPartition:
        """The Kafka partition of the messages."""
        return self.topic, self.partition

    def may_have(self, first_id: int, last_id: int) -> bool:
        """Whether the file may have messages with ids from ``first_id`` to ``last_id``."""
        return self.first_id <= last_id and self.last_id >= first_id

    def most(self, first_id: int, last_id: int) -> int:
        """The greatest possible number of messages with ids from ``first_id`` to ``last_id``."""
        ids = min(self.last_id, last_id) - max(self.first_id, first_id) + 1
        return max(min(self.count, ids), 0)

    def to_row(self) -> dict[str, Any]:
        """The file's entry in manifests and records of captures."""
        row = asdict(self)
        if self.first_t == self.t:  # older versions did not have this field: equal manifests keep equal bytes
            del row["first_t"]
        return row


@dataclass(frozen=True, slots=True)
class Segment:
    """A group of files. The last segment of a manifest is the active one: its ids are above all others.

    The id ranges of two files of the same partition never overlap. Those of different partitions may, where a
    file has messages of several bindings.
    """

    files: tuple[LogFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all its files in bytes."""
        return sum(f.bytes for f in self.files)


@dataclass(frozen=True)
class Manifest:
    """The log after the publication of the binding at ``t``.

    Attributes:
        pipeline: The pipeline's name.
        segments: The files of the log.
        t: The newest published binding.
        end: The last id of the log, whether a message has it or not.
        compacted_below: Compaction may have removed messages with ids below this one.
        policies: The compaction policies that were ever applied: they decide how the rest may be used.
        bindings: The lists of bindings that have left the control plane.
    """

    pipeline: str
    segments: tuple[Segment, ...] = ()
    t: int = 0
    end: int = NOTHING_YET
    compacted_below: int = 0
    policies: tuple[str, ...] = ()
    bindings: BindingLists = NO_LISTS

    @property
    def keeps_state(self) -> bool:
        """Whether replaying the remaining messages of a journal gives every entity its current state."""
        return self.compacted_below == 0 or self.policies == (JOURNAL,)

    @property
    def files(self) -> Iterator[LogFile]:
        """All files, segment by segment; within a segment ordered by first id."""
        return (f for segment in self.segments for f in segment.files)

    @property
    def bytes(self) -> int:
        """The size of the log in bytes."""
        return sum(segment.bytes for segment in self.segments)

    @property
    def count(self) -> int:
        """The number of messages in the log."""
        return sum(f.count for f in self.files)

    def files_of(self, binding: Binding) -> tuple[LogFile, ...]:
        """The files that may have messages of a binding, in id order.

        They may have messages of other bindings too, so a reader must restrict itself to the binding's ids.
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
        """The files of every partition in id order; they do not overlap."""
        found: dict[TopicPartition, list[LogFile]] = {}
        for file in sorted(self.files, key=lambda one: one.first_id):
            found.setdefault(file.place, []).append(file)
        return found

    def with_binding(self, t: int, end: int, files: Sequence[LogFile], segment_bytes: int) -> "Manifest":
        """The manifest after the publication of another binding; a full segment is closed.

        A segment is full at ``segment_bytes`` or at ``MAX_FILES_PER_SEGMENT`` files.
        """
        if t <= self.t or end <= self.end:
            raise BadBinding(f"{self.pipeline}: t={t} end={end} does not follow t={self.t} end={self.end}.")
        segments = list(self.segments) or [Segment(())]
        for file in sorted(files, key=lambda f: f.first_id):
            active = segments[-1]
            if active.files and (active.bytes >= segment_bytes or len(active.files) >= MAX_FILES_PER_SEGMENT):
                segments.append(Segment((file,)))
            else:
                segments[-1] = Segment((*active.files, file))
        bindings = self.bindings.with_published(t, is_first=self.end == NOTHING_YET)
        segments_ = tuple(s for s in segments if s.files)
        return replace(self, segments=segments_, t=t, end=end, bindings=bindings)

    def with_compacted(self, segments: Sequence[Segment], below: int, policy: str) -> "Manifest":
        """The manifest after a compaction of the ids below ``below``, with these segments."""
        return replace(
            self,
            segments=tuple(s for s in segments if s.files),
            compacted_below=max(self.compacted_below, below),
            policies=tuple(sorted({*self.policies, policy})),
        )

    def to_bytes(self) -> builtins.bytes:
        """The content of the manifest's file; equal manifests give equal bytes."""
        body: dict[str, Any] = {
            "pipeline": self.pipeline,
            "segments": [{"files": [file.to_row() for file in segment.files]} for segment in self.segments],
            "t": self.t,
            "end": self.end,
            "compacted_below": self.compacted_below,
        }
        if self.policies:
            body["policies"] = self.policies
        if self.bindings != NO_LISTS:
            body["bindings"] = self.bindings.to_row()
        return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: builtins.bytes) -> "Manifest":
        """The manifest in a file."""
        body = json.loads(data)
        segments = tuple(Segment(tuple(LogFile(**f) for f in s["files"])) for s in body.pop("segments"))
        policies = tuple(body.pop("policies", ()))
        bindings = BindingLists.from_row(body.pop("bindings", None))
        return cls(segments=segments, policies=policies, bindings=bindings, **body)


def digest_of(data: bytes) -> str:
    """The SHA-256 of a manifest's content."""
    return sha256(data).hexdigest()
