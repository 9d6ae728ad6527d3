"""One line of a dump as the object that it is about. The rules are those for operations.

So what a dump says can be sent. This reads any line, and says what is wrong with a bad one; blocks of good
lines are read faster in ``blocks``.
"""

from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import ObjectOperation
from tidemark.operations.reading import read_operation

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class DumpLine(NamedTuple):
    """An object of a dump.

    Attributes:
        type: Its type, in lower case.
        id: Its id.
        timestamp: Its last modification, in ms since 1970.
        parents: The objects above it.
        line: The number of its line.
    """

    type: str
    id: str
    timestamp: int
    parents: tuple[str, ...]
    line: int


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
