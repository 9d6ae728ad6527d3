"""The files of binding lists in a log's folder: written once, read with their digests verified.

A list's name has the time of the publication that names it and an attempt's own id: no two attempts share a
name, and a sweep leaves the file alone until the log has reached that time. Beside every list is an index of
the runs that made its bindings. A missing or damaged file raises an error that names it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from uuid import uuid4

from tidemark.log.errors import FileDamaged
from tidemark.log.files import run_index
from tidemark.log.files.folder import Folder
from tidemark.log.model.binding import Binding
from tidemark.log.model.binding_list import BindingList, ListedBindings, fold, lines_from_bytes

BINDINGS = "bindings"
BINDING_LIST = re.compile(rf"{BINDINGS}/(?P<t>\d{{20}})-[0-9a-f]{{12}}-\d+\.(jsonl\.gz|json)(\.runs)?")


class BindingListWriter:
    """Writes the lists of one publication."""

    def __init__(self, pipeline: str, root: str, t: int) -> None:
        self._folder = Folder(pipeline, root)
        self.reader = BindingListReader(pipeline, root)
        self._stem = f"{BINDINGS}/{t:020d}-{uuid4().hex[:12]}"
        self._written = 0

    def write(self, listed: ListedBindings) -> BindingList:
        """Write a list and the index of its runs; returns its line."""
        data = listed.to_bytes()
        line = listed.to_line(self._name("jsonl.gz"), sha256(data).hexdigest())
        runs = run_index.encode(run_index.run_key(binding.run_id) for binding in listed.bindings)
        self._put(line, data, runs)
        return line

    def fold(self, lines: Sequence[BindingList]) -> BindingList:
        """Write lines of one level into a file of their own; returns the line of the next level."""
        line, data = fold(lines, self._name("json"))
        keys = (key for one in lines for key in self.reader.run_keys(one))
        self._put(line, data, run_index.encode(keys))
        return line

    def _name(self, suffix: str) -> str:
        self._written += 1
        return f"{self._stem}-{self._written}.{suffix}"

    def _put(self, line: BindingList, data: bytes, runs: bytes) -> None:
        # Not in the area of a binding: the publication of that binding would remove it.
        self._folder.write_once(line.runs_path, runs, BINDINGS)
        self._folder.write_once(line.path, data, BINDINGS)


class BindingListReader:
    """Reads the lists that a manifest names; holds one list in memory at a time."""

    def __init__(self, pipeline: str, root: str) -> None:
        self._folder = Folder(pipeline, root)

    def read(self, line: BindingList) -> ListedBindings:
        """The content of a line of level 0; raises ``FileMissing`` or ``FileDamaged``."""
        return ListedBindings.from_bytes(self._bytes(line))

    def children(self, line: BindingList) -> tuple[BindingList, ...]:
        """The lines that a line above level 0 names; raises ``FileMissing`` or ``FileDamaged``."""
        return lines_from_bytes(self._bytes(line))

    def leaves(
        self, lines: Sequence[BindingList], is_wanted: Callable[[BindingList], bool], *, newest: bool = False
    ) -> Iterator[BindingList]:
        """The wanted lines of level 0, oldest first, or newest first; reads no file of an unwanted line."""
        for line in reversed(lines) if newest else lines:
            if is_wanted(line):
                if line.level:
                    yield from self.leaves(self.children(line), is_wanted, newest=newest)
                else:
                    yield line

    def every_line(self, lines: Sequence[BindingList]) -> Iterator[BindingList]:
        """All lines, also those above level 0."""
        for line in lines:
            yield line
            if line.level:
                yield from self.every_line(self.children(line))

    def find_run(self, lines: Sequence[BindingList], run_id: str) -> Binding | None:
        """The binding that a run has made; None where it is in none of these lines.

        Reads a few hundred keys a line, however many bindings there are.
        """
        key = run_index.run_key(run_id)
        for line in reversed(lines):
            if not self._has_key(line, key):
                continue
            if line.level:
                found = self.find_run(self.children(line), run_id)
            else:
                found = next((one for one in self.read(line).bindings if one.run_id == run_id), None)
            if found is not None:
                return found
        return None

    def run_keys(self, line: BindingList) -> list[int]:
        """The keys of all runs of a line; raises ``FileMissing`` or ``FileDamaged``."""
        data = self._folder.read(line.runs_path)
        try:
            keys = run_index.decode(data)
        except run_index.BlockDamaged:
            keys = []
        if len(keys) != line.count:
            raise self._runs_damaged(line)
        return keys

    def _has_key(self, line: BindingList, key: int) -> bool:
        with self._folder.open(line.runs_path) as source:
            if source.size() != run_index.size_of(line.count):
                raise self._runs_damaged(line)
            try:
                return run_index.has_key(
                    key, line.count, lambda offset, length: bytes(source.read_at(length, offset))
                )
            except run_index.BlockDamaged:
                raise self._runs_damaged(line) from None

    def _runs_damaged(self, line: BindingList) -> FileDamaged:
        found = self._folder.digest(line.runs_path)
        return FileDamaged(self._folder.owner, self._folder.at(line.runs_path), "its checksums", found)

    def _bytes(self, line: BindingList) -> bytes:
        data = self._folder.read(line.path)
        if (found := sha256(data).hexdigest()) != line.digest:
            raise FileDamaged(self._folder.owner, self._folder.at(line.path), line.digest, found)
        return data


def files_of(reader: BindingListReader, lines: Sequence[BindingList]) -> Iterator[str]:
    """The paths of all files that these lines name, directly or below."""
    for line in reader.every_line(lines):
        yield line.path
        yield line.runs_path
