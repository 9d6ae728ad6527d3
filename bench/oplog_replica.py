"""A client that takes a full replication in a process of its own; started by ``bench/oplog.py``.

It counts objects and looks for the end, no more. Answers with one line of JSON.
"""

import json
import socket
import sys
import time

OBJECT, LIVE = b'"id":"', b"event: live\n"
READ_AT_ONCE = 1 << 20


def main(port: str) -> None:
    to = socket.create_connection(("127.0.0.1", int(port)), timeout=120)
    began = time.monotonic()
    to.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nLast-Event-ID: 0\r\n\r\n")
    objects = size = 0
    rest = b""
    while LIVE not in rest:
        data = to.recv(READ_AT_ONCE)
        assert data, f"the stream ended after {objects} objects: {rest[-300:]!r}"
        size += len(data)
        data = rest + data
        at = max(data.rfind(b"\n\n", 0, len(data)), 0)
        objects += data.count(OBJECT, 0, at)
        rest = data[at:] if LIVE not in data else data
    print(json.dumps({"objects": objects, "bytes": size, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
