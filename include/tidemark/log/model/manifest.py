"""The manifest: which files form the log.

A manifest is immutable. Publishing writes a new one and changes the control row that names the current one.
It lists the files of the active segment. Closed segments are lines that name lists (``segment_list``), which
are read where their ids are asked for. So the cost of a publication does not depend on the age of the log.
Nothing here touches a file system: ``log/files`` does.
"""

import builtins
import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol

from tidemark.log.errors import BadBinding, ManifestFormatUnknown
from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition
from tidemark.log.model.binding_list import NO_BINDING_LISTS, BindingLists

MAX_FILES_PER_SEGMENT = 200
FORMAT = 2
"""The version of the manifest's form. The first one had no such field and listed all files of the log."""
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
        row = {name: getattr(self, name) for name in self.__slots__}
        if self.first_t == self.t:  # older versions did not have this field: equal records keep equal bytes
            del row["first_t"]
        return row


@dataclass(frozen=True, slots=True)
class Segment:
    """A group of files, ordered by first id.

    The id ranges of two files of the same partition never overlap. Those of different partitions may, where a
    file has messages of several bindings.
    """

    files: tuple[LogFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all its files in bytes."""
        return sum(f.bytes for f in self.files)

    @property
    def count(self) -> int:
        """The number of messages."""
        return sum(f.count for f in self.files)

    @property
    def segments(self) -> int:
        """1: the number of segments, as a line has it."""
        return 1

    @property
    def file_count(self) -> int:
        """The number of files."""
        return len(self.files)

    @property
    def surplus(self) -> int:
        """The number of files beyond one per partition."""
        return len(self.files) - len({file.place for file in self.files})

    @property
    def first_id(self) -> int:
        """The lowest id of a message."""
        return min(file.first_id for file in self.files)

    @property
    def last_id(self) -> int:
        """The highest id of a message."""
        return max(file.last_id for file in self.files)

    @property
    def first_t(self) -> int:
        """The oldest binding with a message in the segment."""
        return min(file.first_t for file in self.files)

    @property
    def t(self) -> int:
        """The newest binding with a message in the segment."""
        return max(file.t for file in self.files)


@dataclass(frozen=True, slots=True)
class ListLine:
    """A line of a manifest or of an index: names an immutable list, with the totals of all files below it.

    Attributes:
        path: The list, relative to the log's folder.
        digest: The SHA-256 of its content.
        level: 0 for a segment's list of files; else the list is an index of lines of the level below.
        segments: The number of segments.
        file_count: The number of files.
        surplus: The number of files beyond one per partition and segment: merging can remove so many.
        count: The number of messages.
        bytes: The size of all files.
        first_id: The lowest id of a message.
        last_id: The highest id of a message.
        first_t: The oldest binding with a message in it.
        t: The newest binding with a message in it.
    """

    path: str
    digest: str
    level: int
    segments: int
    file_count: int
    surplus: int
    count: int
    bytes: int
    first_id: int
    last_id: int
    first_t: int
    t: int

    def to_row(self) -> dict[str, Any]:
        """The line in manifests and indexes."""
        return {name: getattr(self, name) for name in self.__slots__}


ClosedPart = ListLine | Segment
"""Closed segments of a manifest: a line, or a segment whose list is not written yet."""


class ListReader(Protocol):
    """Reads the lists that lines name; refuses damaged ones."""

    def read_segment(self, line: ListLine) -> Segment:
        """The segment of a line of level 0."""

    def read_index(self, line: ListLine) -> tuple[ListLine, ...]:
        """The lines below a line of a higher level."""


class NoLists:
    """The reader of a manifest without lines."""

    def read_segment(self, line: ListLine) -> Segment:
        """Never called for such a manifest."""
        raise LookupError(line.path)

    def read_index(self, line: ListLine) -> tuple[ListLine, ...]:
        """Never called for such a manifest."""
        raise LookupError(line.path)


NO_FILES = Segment(())


@dataclass(frozen=True)
class Manifest:
    """The log after the publication of the binding at ``t``.

    Attributes:
        pipeline: The pipeline's name.
        closed: The closed segments, ordered by first id.
        active: The active segment: its ids are above all others. It ends with a whole binding.
        t: The newest published binding.
        end: The last id of the log, whether a message has it or not.
        compacted_below: Compaction may have removed messages with ids below this one.
        policies: The compaction policies that were ever applied: they decide how the rest may be used.
        lists: Reads the lists that the lines of ``closed`` name.
        bindings: The lists of bindings that have left the control plane.
    """

    pipeline: str
    closed: tuple[ClosedPart, ...] = ()
    active: Segment = NO_FILES
    t: int = 0
    end: int = NOTHING_YET
    compacted_below: int = 0
    policies: tuple[str, ...] = ()
    bindings: BindingLists = NO_BINDING_LISTS
    lists: ListReader = field(default=NoLists(), compare=False, repr=False)

    @property
    def keeps_state(self) -> bool:
        """Whether replaying the remaining messages of a journal gives every entity its current state."""
        return self.compacted_below == 0 or self.policies == (JOURNAL,)

    @property
    def segment_count(self) -> int:
        """The number of segments."""
        return sum(part.segments for part in self._parts)

    @property
    def file_count(self) -> int:
        """The number of files."""
        return sum(part.file_count for part in self._parts)

    @property
    def closed_segment_count(self) -> int:
        """The number of closed segments."""
        return sum(part.segments for part in self.closed)

    @property
    def closed_file_count(self) -> int:
        """The number of files of closed segments: those that merging makes few."""
        return sum(part.file_count for part in self.closed)

    @property
    def bytes(self) -> int:
        """The size of the log in bytes."""
        return sum(part.bytes for part in self._parts)

    @property
    def count(self) -> int:
        """The number of messages in the log."""
        return sum(part.count for part in self._parts)

    @property
    def _parts(self) -> tuple[ClosedPart, ...]:
        return (*self.closed, self.active) if self.active.files else self.closed

    @property
    def files(self) -> Iterator[LogFile]:
        """All files, ordered by first id. Lists are read one after the other, as far as the caller goes."""
        return self.files_where(lambda one: True)

    def files_between(self, first_id: int, last_id: int) -> Iterator[LogFile]:
        """The files that may have messages of an id range, ordered by first id; reads no other list."""
        return self.files_where(lambda one: one.first_id <= last_id and one.last_id >= first_id)

    def files_newest(self, may_have: Callable[[ClosedPart | LogFile], bool]) -> Iterator[LogFile]:
        """As ``files_where``, but the file with the highest last id first: lists are read backwards."""
        return self.files_where(may_have, lambda one: -one.last_id)

    def files_where(
        self,
        may_have: Callable[[ClosedPart | LogFile], bool],
        order: Callable[[ClosedPart | LogFile], int] = lambda one: one.first_id,
    ) -> Iterator[LogFile]:
        """The files that ``may_have`` selects, ordered by first id.

        It is asked by id range and t range: about lines first, and only lists that it selects are read.
        ``order`` must be no greater for a list than for what is in it.
        """
        waiting: list[tuple[int, int, ClosedPart | LogFile]] = []
        number = 0

        def push(found: Iterable[ClosedPart | LogFile]) -> None:
            nonlocal number
            for one in found:
                if may_have(one):
                    number += 1
                    heapq.heappush(waiting, (order(one), number, one))

        push(self._parts)
        while waiting:
            _, _, one = heapq.heappop(waiting)
            if isinstance(one, LogFile):
                yield one
            elif isinstance(one, ListLine) and one.level:
                push(self.lists.read_index(one))
            else:
                push(self.segment_of(one).files)

    def last_id_before(self, t: int) -> int:
        """The highest id of the files with messages of bindings before ``t`` only; −1 where there is none."""
        earlier = NOTHING_YET
        waiting: list[ClosedPart | LogFile] = list(self._parts)
        while waiting:
            one = waiting.pop()
            if one.t < t:
                earlier = max(earlier, one.last_id)
            elif one.first_t < t and not isinstance(one, LogFile):
                if isinstance(one, ListLine) and one.level:
                    waiting += self.lists.read_index(one)
                else:
                    waiting += self.segment_of(one).files
        return earlier

    def segment_of(self, leaf: ClosedPart) -> Segment:
        """The segment of a leaf; reads its list where there is one."""
        return leaf if isinstance(leaf, Segment) else self.lists.read_segment(leaf)

    def leaves(self, parts: Iterable[ClosedPart] | None = None) -> Iterator[ClosedPart]:
        """The closed segments, or those below ``parts``, in order: reads indexes, but no segment's list."""
        for part in self.closed if parts is None else parts:
            if isinstance(part, ListLine) and part.level:
                yield from self.leaves(self.lists.read_index(part))
            else:
                yield part

    @property
    def segments(self) -> Iterator[Segment]:
        """All segments in order, the active one last. Lists are read as far as the caller goes."""
        yield from (self.segment_of(leaf) for leaf in self.leaves())
        if self.active.files:
            yield self.active

    def files_of(self, binding: Binding) -> tuple[LogFile, ...]:
        """The files that may have messages of a binding, in id order.

        They may have messages of other bindings too, so a reader must restrict itself to the binding's ids.
        """
        owned = binding.owned
        found = [
            (owned[file.place], file)
            for file in self.files_between(binding.base, binding.end)
            if file.place in owned and file.may_have(*owned[file.place])
        ]
        return tuple(file for _, file in sorted(found, key=lambda one: (one[0], one[1].first_id)))

    def with_binding(self, t: int, end: int, files: Sequence[LogFile], segment_bytes: int) -> "Manifest":
        """The manifest after the publication of another binding.

        A full active segment is closed first: one with ``segment_bytes`` or ``MAX_FILES_PER_SEGMENT`` files.
        It is never closed within a binding: so the newest binding needs no list, and a binding of many
        partitions is one list.
        """
        if t <= self.t or end <= self.end:
            raise BadBinding(f"{self.pipeline}: t={t} end={end} does not follow t={self.t} end={self.end}.")
        closed, active = self.closed, self.active.files
        is_full = self.active.bytes >= segment_bytes or len(active) >= MAX_FILES_PER_SEGMENT
        if files and active and is_full:
            closed, active = (*closed, self.active), ()
        added = sorted(files, key=lambda f: f.first_id)
        bindings = self.bindings.with_published(t, is_first=self.end == NOTHING_YET)
        active_ = Segment((*active, *added))
        return replace(self, closed=closed, active=active_, t=t, end=end, bindings=bindings)

    def with_segments(self, closed: Iterable[ClosedPart], active: Segment) -> "Manifest":
        """The manifest with other segments of the same messages."""
        parts = tuple(part for part in closed if part.file_count)
        return replace(self, closed=parts, active=active)

    def compacted(self, below: int, policy: str) -> "Manifest":
        """The manifest with the mark that ids below ``below`` were compacted by a policy."""
        return replace(
            self,
            compacted_below=max(self.compacted_below, below),
            policies=tuple(sorted({*self.policies, policy})),
        )

    def to_bytes(self) -> builtins.bytes:
        """The content of the manifest's file; equal manifests give equal bytes.

        The lists of all closed segments must be written: see ``LogFolder.write_manifest``.
        """
        lines = [part.to_row() for part in self.closed if isinstance(part, ListLine)]
        if len(lines) < len(self.closed):
            raise ValueError(f"{self.pipeline}: a closed segment has no list yet")
        body: dict[str, Any] = {
            "format": FORMAT,
            "pipeline": self.pipeline,
            "t": self.t,
            "end": self.end,
            "compacted_below": self.compacted_below,
            "policies": self.policies,
            "closed": lines,
            "active": [file.to_row() for file in self.active.files],
        }
        if self.bindings != NO_BINDING_LISTS:
            body["bindings"] = self.bindings.to_row()
        return rows_to_bytes(body)

    @classmethod
    def from_bytes(cls, data: builtins.bytes, lists: ListReader | None = None) -> "Manifest":
        """The manifest in a file; one of the first form has its closed segments in memory."""
        body = json.loads(data)
        policies = tuple(body.pop("policies", ()))
        if "format" not in body:
            segments = [Segment(tuple(LogFile(**f) for f in s["files"])) for s in body.pop("segments")]
            old = cls.of_segments(segments=segments, policies=policies, **body)
            return replace(old, lists=lists or NoLists())
        if (found := body.pop("format")) != FORMAT:
            raise ManifestFormatUnknown(body["pipeline"], found, FORMAT)
        bindings = BindingLists.from_row(body.pop("bindings", None))
        closed = tuple(ListLine(**row) for row in body.pop("closed"))
        active = Segment(tuple(LogFile(**row) for row in body.pop("active")))
        return cls(
            closed=closed,
            active=active,
            policies=policies,
            bindings=bindings,
            lists=lists or NoLists(),
            **body,
        )

    @classmethod
    def of_segments(
        cls,
        pipeline: str,
        segments: Sequence[Segment],
        t: int = 0,
        end: int = NOTHING_YET,
        compacted_below: int = 0,
        policies: tuple[str, ...] = (),
    ) -> "Manifest":
        """A manifest without lists; the last segment is the active one."""
        active = segments[-1] if segments else NO_FILES
        return cls(pipeline, tuple(segments[:-1]), active, t, end, compacted_below, policies)


def rows_to_bytes(body: dict[str, Any]) -> builtins.bytes:
    """A JSON document in which every row of a list has a line of its own."""
    fields = []
    for name in sorted(body):
        value = body[name]
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(row, sort_keys=True) for row in value)
            fields.append(f"{json.dumps(name)}: [\n{rows}\n]")
        else:
            fields.append(f"{json.dumps(name)}: {json.dumps(value)}")
    return ("{" + ",\n".join(fields) + "}\n").encode()


def digest_of(data: builtins.bytes) -> str:
    """The SHA-256 of the content of a manifest or a list."""
    return sha256(data).hexdigest()
