"""Sends operations evenly, each with the microsecond of its sending as ``id``; started by ``bench/oplog.py``.

By UDP to an agent, or by HTTP on one connection to a peer. Answers with one line of JSON.
"""

import argparse
import http.client
import json
import socket
import time
from collections.abc import Callable

from oplog_udp_load import stamped


def operation() -> tuple[int, bytes]:
    """An operation of now, and its microsecond."""
    now = time.time_ns() // 1_000
    text = (
        f'{{"event":"update","timestamp":"{stamped(now // 1_000)}","parents":["channel/7"],'
        f'"type":"video","id":"{now}"}}'
    )
    return now, text.encode()


def poster(port: int, path: str) -> Callable[[bytes], object]:
    """Sends by HTTP and waits for the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def send(body: bytes) -> None:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status < 300, (answer.status, said[:500])

    return send


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", help="send by HTTP to this path")
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()
    to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    to.connect(("127.0.0.1", given.port))
    send = poster(given.port, given.path) if given.path else to.send
    began, sent, total, last = time.monotonic(), 0, 0, 0
    while sent < given.rate * given.seconds:
        due = began + sent / given.rate
        if (wait := due - time.monotonic()) > 0:
            time.sleep(wait)
        at, text = operation()
        assert at > last, "two operations in one microsecond"
        send(text)
        sent, total, last = sent + 1, total + at, at
    print(json.dumps({"sent": sent, "sum": total, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main()
