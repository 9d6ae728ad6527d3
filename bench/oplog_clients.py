"""Many clients of server-sent events in a process of their own; started by ``bench/oplog.py``.

They read bytes from sockets and look for what they measure, no more, so that one process can be a thousand
clients. Operations have the microsecond in which they were sent as ``id``.

    oplog_clients.py stay   connects, says a line, reads until it is told one, answers with a line of JSON
    oplog_clients.py cycle  connects and disconnects again and again, then answers
"""

import argparse
import json
import re
import resource
import select
import socket
import sys
import time
from array import array

import numpy as np

SENT = re.compile(rb'"id":"(\d{16})"')
END = b"\n\n"
READ_AT_ONCE = 262_144
CONNECTED_WITHIN = 60.0


class Client:
    """One connection."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.sendall(request)
        self.socket.setblocking(False)
        self.begun, self.rest = False, b""
        self.received = self.sum = 0

    def read(self) -> bytes | None:
        """Whole events that have arrived; None at the end of the stream."""
        data = self.socket.recv(READ_AT_ONCE)
        if not data:
            return None
        data = self.rest + data
        at = data.rfind(END) + len(END)
        if at < len(END):
            self.rest = data
            return b""
        self.rest = data[at:]
        return data[:at]


class Clients:
    """All of them."""

    def __init__(self, port: int, path: str, first: bytes) -> None:
        """``first``: what a stream that has begun contains."""
        self._port, self._first = port, first
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode()
        )
        self._poll = select.epoll()
        self.open: dict[int, Client] = {}
        self.ended = 0
        self.latencies = array("q")

    def connect(self, count: int) -> None:
        """Open connections, and wait until every stream has begun."""
        waiting = 0
        deadline = time.monotonic() + CONNECTED_WITHIN
        for _ in range(count):
            one = Client(self._port, self._request)
            self.open[one.socket.fileno()] = one
            self._poll.register(one.socket, select.EPOLLIN)
            waiting += 1
            if waiting >= 50:
                waiting -= self._begin(deadline)
        while waiting > 0:
            waiting -= self._begin(deadline)

    def _begin(self, deadline: float) -> int:
        """Read; how many streams have begun by it."""
        assert time.monotonic() < deadline, "streams do not begin"
        begun = 0
        for number, _ in self._poll.poll(1):
            one = self.open[number]
            data = one.rest + one.socket.recv(READ_AT_ONCE)
            assert data, "a stream ended before it began"
            if not one.begun and self._first in data:
                assert data.startswith(b"HTTP/1.1 200"), data[:500]
                one.begun, one.rest, begun = True, b"", begun + 1
            else:
                one.rest = b"" if one.begun else data
        return begun

    def read_until(self, line: int) -> None:
        """Read until a line arrives at this file."""
        self._poll.register(line, select.EPOLLIN)
        while True:
            for number, _ in self._poll.poll(1):
                if number == line:
                    self._poll.unregister(line)
                    return
                one = self.open[number]
                data = one.read()
                if data is None:
                    self.ended += 1
                    self._close(number)
                elif found := SENT.findall(data):
                    now, times = time.time_ns() // 1_000, [int(each) for each in found]
                    one.received += len(times)
                    one.sum += sum(times)
                    self.latencies.extend([now - each for each in times])

    def _close(self, number: int) -> None:
        self._poll.unregister(number)
        self.open.pop(number).socket.close()

    def close(self) -> None:
        """Disconnect all."""
        for number in list(self.open):
            self._close(number)


def stay(clients: Clients, count: int) -> dict[str, object]:
    """Clients that stay until they are told."""
    clients.connect(count)
    print("connected", flush=True)
    used = time.process_time()
    clients.read_until(sys.stdin.fileno())
    took = np.array(clients.latencies) / 1e3
    each = {(one.received, one.sum) for one in clients.open.values()}
    return {
        "ms": list(np.percentile(took, [50, 99, 100])) if len(took) else [],
        "received": len(took),
        "fewest": min(count for count, _ in each),
        "most": max(count for count, _ in each),
        "are_same": len(each) == 1,
        "ended": clients.ended,
        "cpu": time.process_time() - used,
    }


def cycle(clients: Clients, count: int, at_once: int) -> dict[str, object]:
    """Connect and disconnect, some at a time."""
    began = time.monotonic()
    for _ in range(count // at_once):
        clients.connect(at_once)
        clients.close()
    return {"seconds": time.monotonic() - began}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["stay", "cycle"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", default="/")
    parser.add_argument("--first", default="event: open")
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, default=50)
    given = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    clients = Clients(given.port, given.path, given.first.encode())
    if given.what == "stay":
        print(json.dumps(stay(clients, given.clients)))
    else:
        print(json.dumps(cycle(clients, given.clients, given.at_once)))


if __name__ == "__main__":
    main()
