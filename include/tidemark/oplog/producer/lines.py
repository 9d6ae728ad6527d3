"""Lines of operations: checked before they are sent, cut into requests, chosen for a second attempt. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidemark.operations.errors import BadOperation
from tidemark.operations.reading import read_operation
from tidemark.oplog.producer.errors import LineRefused

MOST_LINES = 1_000
MOST_BYTES = 500_000
"""Of a request; half of what an agent takes unless its file says otherwise."""


@dataclass(frozen=True, slots=True)
class OperationLine:
    """An operation as its sender wrote it.

    Attributes:
        number: Its line in the input, from 1 on.
        key: The object that it is about.
        text: The JSON, on one line.
    """

    number: int
    key: bytes
    text: bytes


def read_lines(lines: Iterable[bytes]) -> Iterator[OperationLine]:
    """The operations of lines of JSON; blank lines are skipped. Raises ``LineRefused`` at a bad one."""
    good = 0
    for number, line in enumerate(lines, 1):
        if text := line.strip():
            try:
                operation = read_operation(text, received=0)
            except BadOperation as bad:
                raise LineRefused(number, str(bad), good) from None
            good += 1
            yield OperationLine(number, operation.key, text)


def requests_of(lines: Iterable[OperationLine]) -> Iterator[list[OperationLine]]:
    """The lines in parts that one request may have.

    What precedes a line that is refused is a part of its own, before the error is raised.
    """
    part: list[OperationLine] = []
    size = 0
    source = iter(lines)
    while True:
        try:
            line = next(source, None)
        except LineRefused:
            if part:
                yield part
            raise
        if part and (line is None or len(part) == MOST_LINES or size + len(line.text) > MOST_BYTES):
            yield part
            part, size = [], 0
        if line is None:
            return
        part.append(line)
        size += len(line.text) + 1


def to_send_again(sent: Sequence[OperationLine], acknowledged: Iterable[int]) -> list[OperationLine]:
    """What a second attempt has to send, after an answer that acknowledges only some lines of a request.

    An acknowledged line is sent again if an earlier one of the same object was not: otherwise the earlier
    one would come last, and a deleted object would be back.

    Args:
        sent: The lines of the request.
        acknowledged: Their numbers in the request, from 1 on.
    """
    arrived = set(acknowledged)
    missing: set[bytes] = set()
    again = []
    for number, line in enumerate(sent, 1):
        if number not in arrived or line.key in missing:
            missing.add(line.key)
            again.append(line)
    return again
