"""Events as bytes: server-sent events by the WHATWG standard, or lines of JSON.

Every event has an id, a name and one line of data, markers too: a browser does not dispatch an event
without data. ``slow`` alone has no id, because a client that falls behind goes on where it was. Text is in
JSON, so no value can break a line.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote

import msgspec

from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.operations.times import rfc3339


class Marker(StrEnum):
    """Events that are no operations.

    Attributes:
        OPEN: The first event of every stream: what is continued, and from where.
        RESET: All objects follow; the client forgets those it has.
        LIVE: What follows is happening now.
        CHECKPOINT: Only the id matters.
        SLOW: The client has fallen behind, and the stream ends.
    """

    OPEN = "open"
    RESET = "reset"
    LIVE = "live"
    CHECKPOINT = "checkpoint"
    SLOW = "slow"


NO_DATA = b"{}"
_NAMES = (*EventName, *Marker)
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class EventFormat:
    """How events are written: what is before the id, between the id and the data, and after the data.

    Attributes:
        content_type: Of the response.
        before: By name of the event.
        between: By name of the event.
        after: After the data.
        heartbeat: What an idle stream gets.
    """

    content_type: bytes
    before: dict[str, bytes] = field(hash=False)
    between: dict[str, bytes] = field(hash=False)
    after: bytes
    heartbeat: bytes
    is_sse: bool

    def event(self, name: str, id_: bytes, data: bytes = NO_DATA) -> bytes:
        """One event."""
        return b"".join((self.before[name], id_, self.between[name], data, self.after))

    def opening(self, id_: bytes, mode: str, retry: int) -> bytes:
        """The first event of a stream, after the time in ms to wait before a reconnect."""
        opened = self.event(Marker.OPEN, id_, _encode({"mode": mode}))
        return b"retry: %d\n\n%b" % (retry, opened) if self.is_sse else opened

    def without_id(self, name: str) -> bytes:
        """A marker that leaves the client's position as it is."""
        if self.is_sse:
            return f"event: {name}\ndata: {{}}\n\n".encode()
        return _encode({"event": name, "data": {}}) + b"\n"


SERVER_SENT = EventFormat(
    content_type=b"text/event-stream; charset=utf-8",
    before=dict.fromkeys(map(str, _NAMES), b"id: "),
    between={str(name): f"\nevent: {name}\ndata: ".encode() for name in _NAMES},
    after=b"\n\n",
    heartbeat=b":\n\n",
    is_sse=True,
)
JSON_LINES = EventFormat(
    content_type=b"application/x-ndjson",
    before={str(name): f'{{"event":"{name}","id":"'.encode() for name in _NAMES},
    between=dict.fromkeys(map(str, _NAMES), b'","data":'),
    after=b"}\n",
    heartbeat=b"\n",
    is_sse=False,
)


class OperationData:
    """The data of operations: timestamp, parents, type, id and, where objects have addresses, ``ref``."""

    def __init__(self, object_url: str | None = None) -> None:
        """``object_url`` is a template with ``{{type}}`` and ``{{id}}``."""
        self._url = object_url

    def encode(self, operation: ObjectOperation) -> bytes:
        """One line of JSON."""
        data: dict[str, object] = {
            "timestamp": rfc3339(operation.timestamp),
            "parents": operation.parents,
            "type": operation.type,
            "id": operation.id,
        }
        if self._url is not None:
            data["ref"] = object_address(self._url, operation.type, operation.id)
        return _encode(data)


def object_address(template: str, type_: str, id_: str) -> str:
    """The address of an object; type and id cannot add a path, a query or a fragment to it."""
    # In one pass, so that a type or id that looks like a part of the template stays what it is.
    found = template.split("{{")
    for place, part in enumerate(found[1:], 1):
        for name, value in (("type}}", type_), ("id}}", id_)):
            if part.startswith(name):
                found[place] = quote(value, safe="") + part.removeprefix(name)
                break
        else:
            found[place] = "{{" + part
    return "".join(found)
