"""Dumps of a source: JSON lines, plain or gzip, each the type, id, timestamp and parents of one object.

Read as a stream, once. Every bad line is named; none is tolerated, because an object whose line is bad would
be deleted.
"""

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from tidemark.operations.errors import BadOperation
from tidemark.operations.times import milliseconds
from tidemark.oplog.sync.dump.blocks import read_block
from tidemark.oplog.sync.dump.lines import DumpLine, read_line
from tidemark.oplog.sync.errors import DumpRefused, DumpUnreadable, StartRefused
from tidemark.oplog.sync.file_columns import dump_batch

NEWEST = "newest"
"""The start that is the greatest timestamp in the dump."""
STDIN = "-"
LONGEST_LINE = 4 << 20
"""In bytes. The longest object, with every character escaped, has less."""
MOST_BAD_LINES = 10_000
"""After so many, what was given is no dump: the rest is not read."""

_GZIP = b"\x1f\x8b"
LINES_AT_ONCE = 25_000
CHUNK = 1 << 20


class DumpReader:
    """Reads a dump once, from its first line to its last."""

    def __init__(self, name: str, stream: BinaryIO, show: Callable[[str], object]) -> None:
        """``show`` gets a text about every bad line."""
        self._name, self._show = name, show
        self._source = _Digesting(_unpacked(stream))
        self.lines = 0
        self.newest: int | None = None
        """The greatest timestamp so far."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the lines, unpacked. Final once all were read."""
        return self._source.digest.hexdigest()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The objects in the order of their lines, in the columns of ``DUMP``.

        Raises ``DumpRefused`` at the end where lines are bad; after the first of them nothing is returned.
        """
        bad: list[tuple[int, str]] = []
        for lines in self._blocks():
            found = read_block(lines, self.lines + 1)
            if found is None:
                objects = list(self._one_by_one(lines, bad))
                found = dump_batch(objects) if objects else None
            self.lines += len(lines)
            if found is not None:
                newest = pc.max(found.column("timestamp")).as_py()
                self.newest = newest if self.newest is None else max(newest, self.newest)
                if not bad:
                    yield found
        if bad:
            raise DumpRefused(self._name, tuple(bad))

    def _one_by_one(self, lines: Sequence[bytes], bad: list[tuple[int, str]]) -> Iterator[DumpLine]:
        for number, text in enumerate(lines, self.lines + 1):
            try:
                if len(text) > LONGEST_LINE:
                    raise BadOperation(f"it is longer than {LONGEST_LINE:,} bytes")
                one = read_line(text)
            except BadOperation as error:
                bad.append((number, str(error)))
                self._show(f"{self._name}: line {number}: {error}")
                if len(bad) == MOST_BAD_LINES:
                    raise DumpRefused(self._name, tuple(bad), is_cut_short=True) from None
                continue
            yield DumpLine(one.type, one.id, one.timestamp, one.parents, number)

    def _blocks(self) -> Iterator[list[bytes]]:
        """The lines without white space around them, some at a time."""
        texts = self._texts()
        while lines := list(islice(texts, LINES_AT_ONCE)):
            yield lines

    def _texts(self) -> Iterator[bytes]:
        """The lines without white space around them; of one that is too long, only its beginning."""
        stream = io.BufferedReader(self._source, CHUNK)
        try:
            while text := stream.readline(LONGEST_LINE + 1):
                yield text if len(text) > LONGEST_LINE else text.strip()
                while len(text) > LONGEST_LINE and not text.endswith(b"\n"):
                    text = stream.readline(LONGEST_LINE + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise DumpUnreadable(self._name, f"after line {self.lines}: {error}") from None


@contextmanager
def opened_dump(
    dump: str, show: Callable[[str], object], stdin: BinaryIO | None = None
) -> Iterator[DumpReader]:
    """The dump at a path or a URI, or ``-`` for what ``stdin`` has. Raises ``DumpUnreadable``."""
    if dump == STDIN and stdin is not None:
        yield DumpReader("the dump on standard input", stdin, show)
        return
    try:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", dump):
            files, path = fs.FileSystem.from_uri(dump)
            stream = cast("BinaryIO", files.open_input_stream(path, compression=None))
        else:
            stream = Path(dump).open("rb")  # noqa: SIM115  (the block below closes it)
    except (OSError, ValueError) as error:
        raise DumpUnreadable(dump, getattr(error, "strerror", None) or str(error)) from None
    with stream:
        try:
            reader = DumpReader(dump, stream, show)
        except OSError as error:
            raise DumpUnreadable(dump, error.strerror or str(error)) from None
        yield reader


def parse_start(text: str) -> int | None:
    """The start of a dump in ms since 1970, from a date; None for ``newest``. Raises ``StartRefused``."""
    given = text.strip()
    if given.lower() == NEWEST:
        return None
    try:
        return milliseconds(given)
    except BadOperation as error:
        raise StartRefused(text, str(error).replace("its `timestamp` ", "")) from None


def run_key(digest: str, start: int) -> str:
    """The key of a synchronisation: the same for the same dump with the same start, whatever runs it."""
    return sha256(f"{digest} {start}".encode()).hexdigest()[:32]


class _Digesting(io.RawIOBase):
    """Computes the digest of what is read through it."""

    def __init__(self, source: BinaryIO) -> None:
        self._source, self.digest = source, sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._source.read(len(buffer))
        self.digest.update(found)
        buffer[: len(found)] = found
        return len(found)


class _Begun(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first, self._rest = first, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found, self._first = self._first[: len(buffer)], self._first[len(buffer) :]
        found = found or self._rest.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


def _unpacked(stream: BinaryIO) -> BinaryIO:
    """The stream, unpacked where its first bytes say that it is packed: names of files may say anything."""
    first = stream.read(len(_GZIP))
    whole = io.BufferedReader(_Begun(first, stream), CHUNK)
    return cast("BinaryIO", gzip.GzipFile(fileobj=whole) if first == _GZIP else whole)
