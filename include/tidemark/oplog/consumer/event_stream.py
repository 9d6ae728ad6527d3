"""Server-sent events: from bytes, cut anywhere, to blocks of fields. Bounded: endless lines are refused.

Written for this stream and not taken from a library, because a library drops blocks without data (their ids
are positions), holds a line of any length in memory, and decodes what is skipped. By the standard otherwise:
lines end in LF, CR or CRLF; several data lines are joined by LF; a block that has no empty line after it does
not exist.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.oplog.consumer.errors import StreamGarbled

MOST_BYTES = 1 << 20
"""Of a line, and of the lines of a block. An operation has 300 kB at most."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two empty lines.

    Attributes:
        event: The name of the event; empty where there is none.
        data: The data; None where there is none.
        id: The id; None where the block has none.
        retry: How long to wait before a connection is made again, in ms; None where the block says nothing.
    """

    event: bytes
    data: bytes | None
    id: bytes | None
    retry: int | None


class EventStreamParser:
    """Takes the bytes of one connection, returns its blocks."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # of a line whose end has not come yet
        self._rest_size = 0
        self._ended_in_cr = False
        self._is_first = True
        self._begin_block()

    def _begin_block(self) -> None:
        self._event = b""
        self._data: list[bytes] = []
        self._data_size = 0
        self._id: bytes | None = None
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> Iterator[Block]:
        """The blocks that these bytes complete. Raises ``StreamGarbled`` for a line or block without end."""
        for line in self._lines(chunk):
            if line:
                self._take(line)
            else:
                block = Block(
                    self._event, b"\n".join(self._data) if self._data else None, self._id, self._retry
                )
                self._begin_block()
                if block.event or block.data is not None or block.id is not None or block.retry is not None:
                    yield block
        _limit(self._rest_size)

    def _lines(self, chunk: bytes) -> list[bytes]:
        if self._ended_in_cr and chunk:  # a LF that follows belongs to the same line end
            self._ended_in_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._ended_in_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = chunk.split(b"\n")
        self._rest.append(first)
        self._rest_size += len(first)
        if not others:
            return []
        lines = [b"".join(self._rest), *others[:-1]]
        self._rest, self._rest_size = [others[-1]], len(others[-1])
        if self._is_first:
            self._is_first = False
            lines[0] = lines[0].removeprefix(_BOM)
        return lines

    def _take(self, line: bytes) -> None:
        _limit(len(line))
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data_size += len(value) + 1
            _limit(self._data_size)
            self._data.append(value)
        elif name == b"event":
            self._event = value
        elif name == b"id":
            self._id = value
        elif name == b"retry" and value.isdigit() and len(value) < 12:
            self._retry = int(value)
        # Comments, whose name is empty, and unknown fields are ignored.


def _limit(size: int) -> None:
    if size > MOST_BYTES:
        raise StreamGarbled(f"a line or block has more than {MOST_BYTES} bytes")
