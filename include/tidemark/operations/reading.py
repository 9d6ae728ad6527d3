"""Operations as producers send them, and as their topic has them.

One set of rules for both: what is accepted is what the topic may hold, and what is accepted can be encoded
and read again. Names are lower-cased before they are judged; unknown fields are ignored, as the original
does. Of a field that is there twice, the last one counts. Whatever the bytes are, the only error is
``BadOperation``.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from tidemark.operations.corrections import CORRECTION_HEADER, Correction
from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import EventName, ObjectOperation, object_key
from tidemark.operations.times import milliseconds

LONGEST_NAME = 1_024
"""The most bytes of a type, of an id and of a parent."""
MOST_PARENTS = 256

Headers = Sequence[tuple[str, bytes | None]]

_EVENTS = {str(event): event for event in EventName}
_SHORT = LONGEST_NAME // 4
"""So many characters are never more bytes than ``LONGEST_NAME``."""


class _Sent(msgspec.Struct, gc=False):
    """The fields of an operation with their types: what almost every operation is read by."""

    event: str
    parents: tuple[str, ...]
    type: str
    id: str
    timestamp: str | None = None


class _Anything(msgspec.Struct):
    """The same fields, of any type: what is wrong with them is said in our words."""

    event: Any = None
    timestamp: Any = None
    parents: Any = None
    type: Any = None
    id: Any = None


_decode = msgspec.json.Decoder(_Sent).decode
_decode_anything = msgspec.json.Decoder(_Anything).decode


class RecordedOperation(msgspec.Struct, frozen=True, gc=False):
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
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        sent = _read_anything(text, received)
    event = _EVENTS.get(sent.event) or _event(sent.event)
    timestamp = _timestamp(sent.timestamp, received)
    parents = sent.parents
    if len(parents) > MOST_PARENTS:
        raise BadOperation(f"it has more than {MOST_PARENTS} `parents`")
    for parent in parents:
        if not 0 < len(parent) <= _SHORT:
            _name("parents", parent)
    type_, id_ = _type(sent.type), sent.id
    if not 0 < len(id_) <= _SHORT:
        _name("id", id_)
    return ObjectOperation(event, timestamp, parents, type_, id_)


def read_record(key: bytes | None, value: bytes | None, headers: Headers | None) -> RecordedOperation:
    """The operation of a record of the topic. Raises ``BadOperation``."""
    if value is None:
        raise BadOperation("it has no value: deletes are operations too, with `event` `delete`")
    operation = read_operation(value)
    if key != object_key(operation.type, operation.id):
        raise BadOperation("its key is not the `type/id` of its value")
    return RecordedOperation(operation, _correction(headers) if headers else None)


def _correction(headers: Headers) -> Correction | None:
    found = [text for name, text in headers if name == CORRECTION_HEADER]
    if len(found) > 1:
        raise BadOperation(f"it has the header `{CORRECTION_HEADER}` {len(found)} times")
    return Correction.from_header(found[0]) if found else None


def _read_anything(text: bytes, received: int | None) -> _Sent:
    """The fields of what ``_Sent`` does not take. Raises what is wrong with them, if anything is: a field may
    have another type where it is there for the first time."""
    try:
        sent = _decode_anything(text)
    except msgspec.ValidationError as error:
        if "`$." in str(error):  # a number that nothing can hold, in a field that is no number
            raise BadOperation(f"one of its fields cannot be read ({error})") from None
        raise BadOperation("it is not a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadOperation(f"it is not JSON ({error})") from None
    except RecursionError:
        raise BadOperation("it is not JSON that can be read: it is nested too deeply") from None
    _event(sent.event)
    _timestamp(sent.timestamp, received)
    if not isinstance(sent.parents, list):
        raise BadOperation("its `parents` are not a list; an object without parents has an empty one")
    parents = tuple(_name("parents", parent) for parent in sent.parents)
    _type(sent.type)
    return _Sent(sent.event, parents, sent.type, _name("id", sent.id), sent.timestamp)


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


def _type(sent: Any) -> str:
    # Lower case may take more bytes, so it is what is measured.
    found = _name("type", sent.lower() if isinstance(sent, str) else sent)
    if "/" in found:
        raise BadOperation("its `type` has a slash, which separates type and id in keys")
    return found


def _name(field: str, sent: Any) -> str:
    what = "one of its `parents`" if field == "parents" else f"its `{field}`"
    if not isinstance(sent, str) or not sent:
        raise BadOperation(f"{what} is not a text of at least one character")
    if len(sent) > _SHORT and (len(sent) > LONGEST_NAME or len(sent.encode()) > LONGEST_NAME):
        raise BadOperation(f"{what} has more than {LONGEST_NAME} bytes")
    return sent
