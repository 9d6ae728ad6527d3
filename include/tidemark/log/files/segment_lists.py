"""The lists of a log's closed segments, in ``lists/`` of its folder.

The name of a list has the ``t`` of the publication it is written for and the id of one attempt. So no name is
used twice, and a list is no orphan before the log has reached its ``t``. A few lists are kept in memory,
because adjacent bindings are in the same list.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import count
from threading import Lock
from typing import Any, TypeVar
from uuid import uuid4

from tidemark.log.errors import ListDamaged
from tidemark.log.files.folder import Folder
from tidemark.log.model.manifest import ClosedPart, ListLine, Manifest, Segment, digest_of
from tidemark.log.model.segment_list import Put, index_from_bytes, listed, segment_from_bytes, with_lists

LISTS = "lists"
MOST_KEPT = 16
"""The number of lists in memory. A list has a few hundred files, or as many as a binding has."""
PLAN_DIGITS = 12
"""The number of digits of a plan's digest in the names of its files."""

_Content = TypeVar("_Content")


class SegmentLists:
    """Writes and reads the lists of one log."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"_folder": self._folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_folder"])  # type: ignore[misc]

    def write(
        self, manifest: Manifest, plan: str | None = None, written: dict[str, str] | None = None
    ) -> Manifest:
        """Write the lists that a manifest lacks, under new names; returns the manifest that names them.

        ``plan`` is the digest of the plan of a compaction or a merge that the lists belong to. ``written``
        has the paths of lists, by digest, that earlier attempts at the same publication have written: they
        are named again, and new ones are added to it.
        """
        return with_lists(manifest, self._put(manifest.t, plan, {} if written is None else written))

    def write_parts(self, parts: Iterable[ClosedPart], t: int, plan: str) -> tuple[ClosedPart, ...]:
        """Write the lists of segments that a plan makes; returns their lines, which no manifest has yet."""
        return tuple(listed(parts, self._put(t, plan, {})))

    def _put(self, t: int, plan: str | None, written: dict[str, str]) -> Put:
        attempt, numbers = uuid4().hex[:12], count()
        ending = f"-{plan[:PLAN_DIGITS]}" if plan else ""

        def put(data: bytes) -> tuple[str, str]:
            digest = digest_of(data)
            if digest not in written:
                path = f"{LISTS}/{t:020d}-{attempt}-{next(numbers)}{ending}.json"
                # Not in the area of a binding: the publication of that binding would remove it.
                self._folder.write_once(path, data, LISTS)
                written[digest] = path
            return written[digest], digest

        return put

    def read_segment(self, line: ListLine) -> Segment:
        """The segment of a line of level 0; raises ``FileMissing`` or ``ListDamaged``."""
        return self._read(line, segment_from_bytes)

    def read_index(self, line: ListLine) -> tuple[ListLine, ...]:
        """The lines of an index; raises ``FileMissing`` or ``ListDamaged``."""
        return self._read(line, index_from_bytes)

    def _read(self, line: ListLine, parse: Callable[[bytes], _Content]) -> _Content:
        with self._lock:
            if line.path in self._kept:
                self._kept.move_to_end(line.path)
                kept: _Content = self._kept[line.path]
                return kept
        data = self._folder.read(line.path)
        if digest_of(data) != line.digest:
            raise ListDamaged(self._folder.owner, self._folder.at(line.path), line.digest, digest_of(data))
        content = parse(data)
        with self._lock:
            self._kept[line.path] = content
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return content
