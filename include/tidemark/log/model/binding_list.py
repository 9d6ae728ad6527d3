"""Binding lists: bindings that have left the control plane, in immutable files that the manifest names.

A list holds whole, consecutive bindings. The manifest has one line per list. Whenever 16 lines of one level
are at the end, they move into a file of their own, and one line of the next level names that file: so the
number of lines grows with the logarithm of the number of bindings. No list is ever written again.
Nothing here touches a file system or decides that a row may be removed: ``log/bindings`` does.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, Self

from tidemark.log.errors import BadBinding
from tidemark.log.model.binding import NOTHING_YET, Binding, Slice, TopicPartition


@dataclass(frozen=True, slots=True)
class ListSizes:
    """How large lists become.

    Attributes:
        bindings: The greatest number of bindings in a list; fewer are worth a list only after ``span``.
        characters: The size of its bindings at which a list is closed: reading one takes bounded memory.
        span: The time in µs after which bindings become a list although they are few.
        fanout: How many lines of one level become one line of the next.
    """

    bindings: int = 1_000
    characters: int = 16_000_000
    span: int = 24 * 3600 * 1_000_000
    fanout: int = 16


SIZES = ListSizes()


@dataclass(frozen=True, slots=True)
class BindingList:
    """One line of the manifest: a file with bindings (level 0), or a file with lines of the level below.

    Attributes:
        path: Relative to the log's folder.
        digest: The SHA-256 of the file's content.
        first_id: The first id that its first binding owns.
        last_id: The last id that its last binding owns.
        first_t: The time of its first binding.
        last_t: The time of its last binding.
        count: The number of bindings in it and below it.
        level: 0 for a list of bindings.
    """

    path: str
    digest: str
    first_id: int
    last_id: int
    first_t: int
    last_t: int
    count: int
    level: int = 0

    @property
    def runs_path(self) -> str:
        """The file with the keys of the runs that made its bindings."""
        return f"{self.path}.runs"

    def to_row(self) -> dict[str, Any]:
        """The line in the manifest."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class BindingLists:
    """What the manifest says about bindings.

    Attributes:
        lines: The lists, oldest first.
        unlisted: The number of published bindings after the last list, as far as they were counted.
        since: The time of the first of those; None before the first publication, 0 where it is not known
            because an earlier version wrote the manifest.
    """

    lines: tuple[BindingList, ...] = ()
    unlisted: int = 0
    since: int | None = None

    @property
    def last_id(self) -> int:
        """The last id of the bindings in lists."""
        return self.lines[-1].last_id if self.lines else NOTHING_YET

    @property
    def last_t(self) -> int:
        """The time of the last binding in a list; −1 without lists."""
        return self.lines[-1].last_t if self.lines else NOTHING_YET

    @property
    def count(self) -> int:
        """The number of bindings in lists."""
        return sum(line.count for line in self.lines)

    def with_published(self, t: int, *, is_first: bool) -> Self:
        """After the publication of another binding, or of the first one of the log."""
        since = self.since
        if since is None:
            since = t if is_first else 0
        return replace(self, unlisted=self.unlisted + 1, since=since)

    def with_list(self, line: BindingList, since: int) -> Self:
        """With another list; ``since`` is the time of the first binding that is in no list."""
        if line.first_id != self.last_id + 1 or line.first_t <= self.last_t:
            raise BadBinding(
                f"{line.path} has ids from {line.first_id} on, but the lists before it end at {self.last_id}."
            )
        unlisted = max(self.unlisted - line.count, 0)
        return replace(self, lines=(*self.lines, line), unlisted=unlisted, since=since)

    def foldable(self, sizes: ListSizes = SIZES) -> tuple[BindingList, ...]:
        """The last lines, where they are to become one line of the next level; empty where they are not."""
        last = self.lines[-sizes.fanout :]
        return last if len(last) == sizes.fanout and len({line.level for line in last}) == 1 else ()

    def with_fold(self, line: BindingList) -> Self:
        """With one line instead of the last ones, which it stands for."""
        kept = tuple(one for one in self.lines if one.last_id < line.first_id)
        return replace(self, lines=(*kept, line))

    def is_due(self, now: int, keep: int, sizes: ListSizes = SIZES) -> bool:
        """Whether so many bindings are probably older than ``keep`` (µs) that a list is worth it.

        Estimated from their number and the time they took, so that asking costs nothing.
        """
        if self.since is None:
            return False
        old = now - keep - self.since
        if old <= 0:
            return False
        return old >= sizes.span or self.unlisted * old >= sizes.bindings * max(now - self.since, 1)

    def to_row(self) -> dict[str, Any]:
        """The manifest's entry."""
        return {
            "lists": [line.to_row() for line in self.lines],
            "unlisted": self.unlisted,
            "since": self.since,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any] | None) -> Self:
        """From the manifest's entry; manifests of earlier versions have none."""
        if row is None:
            return cls()
        return cls(tuple(BindingList(**line) for line in row["lists"]), row["unlisted"], row["since"])


NO_BINDING_LISTS = BindingLists()


@dataclass(frozen=True, slots=True)
class LastBound:
    """The last offset of a partition before a list, with the binding that bound it."""

    topic: str
    partition: int
    offset: int
    base: int
    t: int

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return self.topic, self.partition

    @property
    def binding(self) -> Binding:
        """The part of the binding that is known here: its time, its first id and this one offset."""
        return Binding(
            self.t, self.base, (Slice(self.topic, self.partition, self.offset, self.offset + 1),), ""
        )


@dataclass(frozen=True)
class ListedBindings:
    """The content of a list of level 0.

    Attributes:
        before: For every partition that was ever bound before the list, its last offset there.
        bindings: The bindings, oldest first.
    """

    before: tuple[LastBound, ...]
    bindings: tuple[Binding, ...]

    def __post_init__(self) -> None:
        for older, younger in zip(self.bindings, self.bindings[1:], strict=False):
            if younger.base != older.end + 1 or younger.t <= older.t:
                raise BadBinding(f"The binding at {younger.t} does not follow the one at {older.t}.")

    @property
    def after(self) -> tuple[LastBound, ...]:
        """``before`` of the next list."""
        found = {one.place: one for one in self.before}
        for binding in self.bindings:
            for s in binding.slices:
                one = LastBound(s.topic, s.partition, s.upper - 1, binding.base, binding.t)
                found[one.place] = one
        return tuple(found[place] for place in sorted(found))

    def to_line(self, path: str, digest: str) -> BindingList:
        """The line that names the list."""
        first, last = self.bindings[0], self.bindings[-1]
        return BindingList(path, digest, first.base, last.end, first.t, last.t, len(self.bindings))

    def to_bytes(self) -> bytes:
        """The list's file: compressed lines, first the offsets before it, then one binding a line."""
        before = [[one.topic, one.partition, one.offset, one.base, one.t] for one in self.before]
        # Without ``last_bound``: with the offsets before it, one list answers what that is for.
        bindings = (replace(one, last_bound={}) if one.last_bound else one for one in self.bindings)
        lines = [json.dumps({"before": before}), *(one.to_json() for one in bindings)]
        return gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The content of a list's file."""
        head, *lines = gzip.decompress(data).decode().splitlines()
        before = tuple(LastBound(*one) for one in json.loads(head)["before"])
        return cls(before, tuple(Binding.from_json(line) for line in lines))


def lines_to_bytes(lines: Sequence[BindingList]) -> bytes:
    """The file of a line above level 0."""
    return (json.dumps([line.to_row() for line in lines], indent=1, sort_keys=True) + "\n").encode()


def lines_from_bytes(data: bytes) -> tuple[BindingList, ...]:
    """The lines in such a file."""
    return tuple(BindingList(**row) for row in json.loads(data))


def fold(lines: Sequence[BindingList], path: str) -> tuple[BindingList, bytes]:
    """The line that names these consecutive lines, and the content of its file."""
    data, first, last = lines_to_bytes(lines), lines[0], lines[-1]
    count = sum(line.count for line in lines)
    ids, times = (first.first_id, last.last_id), (first.first_t, last.last_t)
    return BindingList(path, sha256(data).hexdigest(), *ids, *times, count, first.level + 1), data


def archivable(bindings: Iterable[Binding], passed: int, before: int, newest: int) -> Iterator[Binding]:
    """Those of the oldest bindings that may leave the control plane.

    ``passed`` is the last id that every consumer has finished with, ``before`` the time (µs) that they must
    be older than, and ``newest`` the time of the newest binding, which always stays.
    """
    for binding in bindings:
        if binding.end > passed or binding.t >= before or binding.t >= newest:
            return
        yield binding


def cut_lists(bindings: Sequence[Binding], sizes: ListSizes = SIZES) -> list[tuple[Binding, ...]]:
    """Consecutive bindings divided into lists; a rest that fills no list waits, unless there is nothing
    else."""
    found: list[tuple[Binding, ...]] = []
    current: list[Binding] = []
    size = 0
    for binding in bindings:
        current.append(binding)
        size += len(binding.to_json())
        if len(current) >= sizes.bindings or size >= sizes.characters:
            found.append(tuple(current))
            current, size = [], 0
    return found or ([tuple(current)] if current else [])
