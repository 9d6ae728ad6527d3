"""The envelope ``oplog``: a message is an operation on an object, whose row is its newest operation.

A delete is a row that says that the object is gone, and keeps its time and its parents. A correction of a
synchronisation may be void; which ones are is decided in ``void_corrections``, because it depends on earlier
operations of the object. The columns are the same for every collection.
"""

from collections.abc import Mapping
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
from tidemark.operations.operation import EventName
from tidemark.operations.reading import read_record

_EVENTS = {event: event.value.encode() for event in EventName}
_milliseconds = Struct(">q").pack


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


def _open(value: Mapping[str, Any] | None) -> Change:
    raise TypeError("an operation is read with its key and its headers")


OPLOG = Envelope(EnvelopeName.OPLOG, _open, read_whole=_read_whole)
