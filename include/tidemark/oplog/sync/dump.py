"""Dumps of a source: JSON lines, plain or gzip, each the type, id, timestamp and parents of one object.

Read as a stream, once. Every bad line is named; none is tolerated, because an object whose line is bad would
be deleted. The rules for a line are those for an operation, so that what a dump says can be sent.
"""

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec
from pyarrow import fs

from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import ObjectOperation
from tidemark.operations.reading import read_operation
from tidemark.operations.times import milliseconds
from tidemark.oplog.sync.errors import DumpRefused, DumpUnreadable, StartRefused

NEWEST = "newest"
"""The start that is the greatest timestamp in the dump."""
STDIN = "-"
LONGEST_LINE = 4 << 20
"""In bytes. The longest object, with every character escaped, has less."""
MOST_BAD_LINES = 10_000
"""After so many, what was given is no dump: the rest is not read."""

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class DumpLine(NamedTuple):
    """An object of a dump.

    Attributes:
        number: The number of its line.
        type: Its type, in lower case.
        id: Its id.
        timestamp: Its last modification, in ms since 1970.
        parents: The objects above it.
    """

    number: int
    type: str
    id: str
    timestamp: int
    parents: tuple[str, ...]


def read_line(text: bytes) -> ObjectOperation:
    """The object in a line, as the operation that would say the same. Raises ``BadOperation``.

    Unlike an operation, a line may leave its parents out, or null: it has none then.
    """
    line = text.strip()
    if line[:1] == b"{" and line[-1:] == b"}":
        with suppress(BadOperation):
            # Of two fields with one name the last one counts: parents are a default, the event is not.
            return read_operation(b'{"parents":[],' + line[1:-1] + b',"event":"update"}')
    return _read_with_reason(line)


def _read_with_reason(line: bytes) -> ObjectOperation:
    """The same, slowly: for lines that are bad or unusual."""
    if not line:
        raise BadOperation("it is empty")
    try:
        sent = _decode(line)
    except msgspec.ValidationError:
        raise BadOperation("it is not a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadOperation(f"it is not JSON ({error})") from None
    sent["event"] = "update"
    if sent.get("parents") is None:
        sent["parents"] = []
    return read_operation(_encode(sent))


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

    def objects(self) -> Iterator[DumpLine]:
        """The objects in the order of their lines. Raises ``DumpRefused`` at the end where lines are bad."""
        bad: list[tuple[int, str]] = []
        for text in self._texts():
            self.lines += 1
            try:
                if len(text) > LONGEST_LINE:
                    raise BadOperation(f"it is longer than {LONGEST_LINE:,} bytes")
                found = read_line(text)
            except BadOperation as error:
                bad.append((self.lines, str(error)))
                self._show(f"{self._name}: line {self.lines}: {error}")
                if len(bad) == MOST_BAD_LINES:
                    raise DumpRefused(self._name, tuple(bad), is_cut_short=True) from None
                continue
            if self.newest is None or found.timestamp > self.newest:
                self.newest = found.timestamp
            if not bad:
                yield DumpLine(self.lines, found.type, found.id, found.timestamp, found.parents)
        if bad:
            raise DumpRefused(self._name, tuple(bad))

    def _texts(self) -> Iterator[bytes]:
        """The lines; of one that is too long, only its beginning."""
        stream = io.BufferedReader(self._source, _CHUNK)
        try:
            while text := stream.readline(LONGEST_LINE + 1):
                yield text
                rest = text
                while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
                    rest = stream.readline(LONGEST_LINE + 1)
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
    whole = io.BufferedReader(_Begun(first, stream), _CHUNK)
    return cast("BinaryIO", gzip.GzipFile(fileobj=whole) if first == _GZIP else whole)
