"""The envelope ``oplog``: a message is an operation on an object, whose row is its newest operation.

A delete is a row that says that the object is gone, and keeps its time and its parents. A correction of a
synchronisation may be void; which ones are is decided in ``void_corrections``, because it depends on earlier
operations of the object. The columns are the same for every collection.
"""

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Any

from tidemark.cassandra.cells import encoded_list
from tidemark.collection.model.envelopes.envelope import (
    Change,
    Envelope,
    EnvelopeName,
    Headers,
    WholeRecord,
)
from tidemark.collection.model.no_row import NoRow
from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.operations.reading import read_record

_EVENTS = {event: event.value.encode() for event in EventName}
_EVENT_OF = {cell: event for event, cell in _EVENTS.items()}
_milliseconds, _read_milliseconds = Struct(">q").pack, Struct(">q").unpack


def _read_whole(key: bytes | None, value: bytes | None, headers: Headers) -> WholeRecord:
    try:
        record = read_record(key, value, headers)
    except BadOperation as error:
        raise NoRow(str(error)) from None
    operation = record.operation
    event = operation.event
    values = (
        _EVENTS[event],
        _milliseconds(operation.timestamp),
        encoded_list([parent.encode() for parent in operation.parents]),
    )
    cells = operation.type.encode(), operation.id.encode()
    return WholeRecord(cells, values, event is EventName.DELETE, record.correction)


def operation_in(key: tuple[bytes, ...], values: tuple[bytes | None, ...]) -> ObjectOperation:
    """The operation in the cells of a stored row."""
    type_, id_ = key
    event, timestamp, parents = values
    if event is None or timestamp is None or parents is None:
        raise ValueError("the row of an operation has every value")
    (ms,) = _read_milliseconds(timestamp)
    return ObjectOperation(_EVENT_OF[event], ms, tuple(_texts(parents)), type_.decode(), id_.decode())


def _texts(cell: bytes) -> Iterator[str]:
    """The elements of a list of texts."""
    at = 4
    for _ in range(int.from_bytes(cell[:4], "big")):
        end = at + 4 + int.from_bytes(cell[at : at + 4], "big")
        yield cell[at + 4 : end].decode()
        at = end


def _open(value: Mapping[str, Any] | None) -> Change:
    raise TypeError("an operation is read with its key and its headers")


OPLOG = Envelope(EnvelopeName.OPLOG, _open, read_whole=_read_whole)
