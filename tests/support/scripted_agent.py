"""An HTTP server on loopback that answers with exactly the bytes of a script, cut where a test wants.

It parses requests and leaves everything else to the script: a script may send half an event and close, send
garbage, or say nothing for ever.
"""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n"
"""The head of an answer that is a stream. Its end is the end of the connection."""


class Silence:
    """Says nothing more, and keeps the connection until the client closes it."""


class Reset:
    """Ends the connection as a crash would: the client gets a reset."""


Step = bytes | Silence | Reset


@dataclass(frozen=True)
class Received:
    """A request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def last_event_id(self) -> str | None:
        return self.headers.get("last-event-id")


Script = Callable[[Received], Iterable[Step]]


class ScriptedAgent:
    """Answers every request with what the script says for it; knows the requests so far."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[Received] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = _request(connection)
            if request is not None:
                self.requests.append(request)
                self._answer(connection, self._script(request))
        self._open.discard(connection)

    @staticmethod
    def _answer(connection: socket.socket, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Silence():
                    connection.recv(1)
                case Reset():
                    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    return
                case _:
                    connection.sendall(step)


def _request(connection: socket.socket) -> Received | None:
    text = b""
    while b"\r\n\r\n" not in text:
        if not (chunk := connection.recv(65_536)):
            return None
        text += chunk
    head, _, body = text.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65_536)
    return Received(method, target, headers, body)


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A whole answer that is no stream."""
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
