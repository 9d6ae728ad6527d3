"""Copies of a source that clients keep from an agent's streams, and the source that says what is right.

The client is written here with the standard library and nothing of the project's: what it understands of a
stream is what a stranger's client would. It counts only events that have come whole.
"""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Event, Lock, Thread
from typing import Any
from urllib.parse import urlsplit

import httpx
from tests.support.waiting import wait_until

Object = tuple[str, tuple[str, ...]]
"""Timestamp and parents."""
SILENT = 60.0
"""Seconds without a byte after which a stream counts as broken. The agents of tests send heartbeats."""
LINES = {"content-type": "application/x-ndjson"}


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event; ``id`` is None where the event has none."""

    event: str
    id: str | None
    data: dict[str, Any]

    @property
    def is_operation(self) -> bool:
        return self.event in ("insert", "update", "delete")

    @property
    def key(self) -> str:
        return f"{self.data['type']}/{self.data['id']}"


class OpenStream:
    """One connection to an agent's stream."""

    def __init__(self, url: str, last_event_id: str | None = None, query: str = "", **headers: str) -> None:
        """Connects, and reads the head of the answer. Raises ``OSError`` or ``HTTPException``."""
        place = urlsplit(url)
        self._connection = HTTPConnection(place.hostname or "", place.port, timeout=SILENT)
        asked = {"Accept": "text/event-stream", **{name.replace("_", "-"): v for name, v in headers.items()}}
        if last_event_id is not None:
            asked["Last-Event-ID"] = last_event_id
        try:
            self._connection.request("GET", f"/?{query}", headers=asked)
            self._socket: socket.socket = self._connection.sock
            self._response: HTTPResponse = self._connection.getresponse()
        except BaseException:
            self._connection.close()
            raise
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}
        self._is_read = False

    @property
    def mode(self) -> str:
        return self.headers["x-oplog-mode"]

    def events(self) -> Iterator[StreamEvent]:
        """Every event until the connection ends, in whatever way."""
        rest, self._is_read = b"", True
        try:
            with suppress(OSError, HTTPException):  # cut, or closed by either side
                while chunk := self._response.read1(65_536):
                    *whole, rest = (rest + chunk).split(b"\n\n")
                    for block in whole:
                        if (found := _event(block)) is not None:
                            yield found
        finally:
            self._is_read = False
            self._free()

    def closing(self) -> "closing[OpenStream]":
        """Closes it at the end of a block."""
        return closing(self)

    def close(self) -> None:
        """From any thread: what is being read ends."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if not self._is_read:
            self._free()

    def _free(self) -> None:
        self._response.close()
        self._connection.close()


def _event(block: bytes) -> StreamEvent | None:
    fields: dict[str, str] = {}
    for line in block.decode().split("\n"):
        name, _, value = line.partition(": ")
        fields[name] = value
    if "event" not in fields:
        return None  # a heartbeat, or a comment
    return StreamEvent(fields["event"], fields.get("id"), json.loads(fields["data"]))


@dataclass
class StreamCopy:
    """What one client has, over all its connections.

    Attributes:
        position: The last id that it was sent.
        objects: The objects that exist, by ``type/id``.
        operations: Every operation that it was sent, in order, as event and key.
        modes: How its streams went on.
        is_live: Whether a replication was completed since the last ``reset``.
    """

    position: str | None = None
    objects: dict[str, Object] = field(default_factory=dict)
    operations: list[tuple[str, str]] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    resets: int = 0
    is_live: bool = False
    slow: int = 0

    def take(self, event: StreamEvent) -> None:
        """One event."""
        match event.event:
            case "reset":
                self.objects.clear()
                self.resets, self.is_live = self.resets + 1, False
            case "live":
                self.is_live = True
            case "slow":
                self.slow += 1
            case "delete":
                self.objects.pop(event.key, None)
            case "insert" | "update":
                self.objects[event.key] = event.data["timestamp"], tuple(event.data["parents"])
        if event.is_operation:
            self.operations.append((event.event, event.key))
        if event.id:
            self.position = event.id

    def begin(self, url: str, query: str = "", **headers: str) -> OpenStream | None:
        """A connection where the client was; None where there was no stream."""
        try:
            stream = OpenStream(url, self.position, query, **headers)
        except (OSError, HTTPException):
            return None
        if stream.status != 200:
            stream.close()
            return None
        self.modes.append(stream.mode)
        return stream

    def follow(self, stream: OpenStream, enough: Callable[[], object]) -> None:
        """Take what comes, until there is enough or the connection ends."""
        try:
            for event in stream.events():
                self.take(event)
                if enough():
                    break
        finally:
            stream.close()

    def follow_once(self, url: str, enough: Callable[[], object], query: str = "", **headers: str) -> bool:
        """One connection; whether there was a stream."""
        if (stream := self.begin(url, query, **headers)) is None:
            return False
        self.follow(stream, enough)
        return True


class FollowingClient:
    """A client in a thread that comes back until the end of the block, each time where ``url`` says.

    Attributes:
        copy: What it has.
        ended: How many of its connections have ended, or were never there.
    """

    def __init__(self, url: Callable[[], str], copy: StreamCopy, query: str = "") -> None:
        self.copy, self.ended = copy, 0
        self._url, self._query, self._stop = url, query, Event()
        self._stream: OpenStream | None = None
        self._thread = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._stream = self.copy.begin(self._url(), self._query)
            if self._stream is not None:
                self.copy.follow(self._stream, self._stop.is_set)
            self.ended += 1
            self._stop.wait(0.02)

    def __enter__(self) -> "FollowingClient":
        self._thread.start()
        wait_until(lambda: self._stream, what="a stream")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._stream is not None:
            self._stream.close()
        self._thread.join(SILENT + 10)
        assert not self._thread.is_alive()


@dataclass
class OperationSource:
    """A source of objects that tells an agent what it changes, in order, and remembers what is true.

    Attributes:
        url: The agent that is told.
        objects: What exists.
        acknowledged: Every operation that was answered with 204, as event and key.
        refused: How many requests were answered otherwise, or not at all; each was sent again.
    """

    url: str
    objects: dict[str, Object] = field(default_factory=dict)
    acknowledged: list[tuple[str, str]] = field(default_factory=list)
    refused: int = 0
    _number: int = 0
    _lock: Lock = field(default_factory=Lock)

    def put(self, *ids: str, parents: Sequence[str] = (), type_: str = "video") -> None:
        """Objects are there, or have changed."""
        self.send([("update", id_, parents) for id_ in ids], type_)

    def delete(self, *ids: str, parents: Sequence[str] = (), type_: str = "video") -> None:
        """Objects are gone."""
        self.send([("delete", id_, parents) for id_ in ids], type_)

    def send(self, operations: Sequence[tuple[str, str, Sequence[str]]], type_: str = "video") -> None:
        """Operations as (event, id, parents), again until all of them are acknowledged."""
        made = []
        for event, id_, parents in operations:
            self._number += 1
            minute, second = divmod(self._number // 1_000, 60)
            at = f"2026-01-02T03:{minute:02}:{second:02}.{self._number % 1_000:03}Z"
            made.append({"event": event, "type": type_, "id": id_, "parents": parents, "timestamp": at})
        body = b"\n".join(json.dumps(one).encode() for one in made)
        while not self._is_taken(body):
            self.refused += 1
        with self._lock:
            for one in made:
                key = f"{type_}/{one['id']}"
                if one["event"] == "delete":
                    self.objects.pop(key, None)
                else:
                    self.objects[key] = str(one["timestamp"]), tuple(one["parents"])
                self.acknowledged.append((str(one["event"]), key))

    def _is_taken(self, body: bytes) -> bool:
        try:
            answer = httpx.post(self.url, content=body, headers=LINES, timeout=60)
        except httpx.HTTPError:
            return False
        assert answer.status_code in (204, 429, 503), (answer.status_code, answer.text)
        return answer.status_code == 204


@contextmanager
def changing(change: Callable[[int], None]) -> Iterator[Callable[[], int]]:
    """A thread that makes one change after the other inside the block; how many it has made by now."""
    stop, made, failures = Event(), [0], list[BaseException]()

    def run() -> None:
        try:
            while not stop.is_set():
                change(made[0])
                made[0] += 1
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield lambda: made[0]
    finally:
        stop.set()
        thread.join(180)
    assert not thread.is_alive()
    assert failures == []
