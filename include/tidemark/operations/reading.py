"""Operations as producers send them, and as their topic has them.

One set of rules for both: what is accepted is what the topic may hold. Names are lower-cased before they are
judged; unknown fields are ignored, as the original does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tidemark.operations.corrections import CORRECTION_HEADER, Correction
from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import EventName, ObjectOperation, object_key
from tidemark.operations.times import milliseconds

LONGEST_NAME = 1_024
"""The most bytes of a type, of an id and of a parent."""
MOST_PARENTS = 256

_EVENTS = {str(event): event for event in EventName}


class _Sent(msgspec.Struct):
    """The fields of an operation, of any type: what is wrong is said in our words."""

    event: Any = None
    timestamp: Any = None
    parents: Any = None
    type: Any = None
    id: Any = None


_decode = msgspec.json.Decoder(_Sent).decode


@dataclass(frozen=True, slots=True)
class RecordedOperation:
    """An operation in its topic.

    Attributes:
        operation: The operation.
        correction: What makes it a correction of a synchronisation; None for an operation of a producer.
    """

    operation: ObjectOperation
    correction: Correction | None = None


def read_operation(text: bytes, received: int | None = None) -> ObjectOperation:
    """The operation that a JSON object says.

    Args:
        text: The JSON.
        received: When it was received, in ms since 1970: the timestamp of an operation that names none. None:
            it must name one.

    Raises:
        BadOperation: It is refused.
    """
    try:
        sent = _decode(text)
    except msgspec.ValidationError:
        raise BadOperation("it is not a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadOperation(f"it is not JSON ({error})") from None
    return ObjectOperation(
        _event(sent.event),
        _timestamp(sent.timestamp, received),
        _parents(sent.parents),
        _type(sent.type),
        _name("id", sent.id),
    )


def read_record(
    key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] | None
) -> RecordedOperation:
    """The operation of a record of the topic. Raises ``BadOperation``."""
    if value is None:
        raise BadOperation("it has no value: deletes are operations too, with `event` `delete`")
    operation = read_operation(value)
    if key != object_key(operation.type, operation.id):
        raise BadOperation("its key is not the `type/id` of its value")
    for name, text in headers or ():
        if name == CORRECTION_HEADER:
            return RecordedOperation(operation, Correction.from_header(text))
    return RecordedOperation(operation)


def _event(sent: Any) -> EventName:
    if isinstance(sent, str) and (event := _EVENTS.get(sent.lower())):
        return event
    raise BadOperation("its `event` is not one of insert, update and delete")


def _timestamp(sent: Any, received: int | None) -> int:
    if sent is None and received is not None:
        return received
    if not isinstance(sent, str):
        raise BadOperation("its `timestamp` is not a text by RFC 3339")
    return milliseconds(sent)


def _parents(sent: Any) -> tuple[str, ...]:
    if not isinstance(sent, list):
        raise BadOperation("its `parents` are not a list; an object without parents has an empty one")
    if len(sent) > MOST_PARENTS:
        raise BadOperation(f"it has more than {MOST_PARENTS} `parents`")
    return tuple([_name("parents", each) for each in sent])


def _type(sent: Any) -> str:
    found = _name("type", sent).lower()
    if "/" in found:
        raise BadOperation("its `type` has a slash, which separates type and id in keys")
    return found


def _name(field: str, sent: Any) -> str:
    if not isinstance(sent, str) or not sent:
        what = "one of its `parents`" if field == "parents" else f"its `{field}`"
        raise BadOperation(f"{what} is not a text of at least one character")
    if len(sent) > LONGEST_NAME or len(sent.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        what = "one of its `parents`" if field == "parents" else f"its `{field}`"
        raise BadOperation(f"{what} has more than {LONGEST_NAME} bytes")
    return sent
