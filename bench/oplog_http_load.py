"""Sends operations by HTTP from a process of its own; started by the measurements of ``bench/oplog.py``.

One operation after the other at a low rate, to see how long its 204 takes; or bodies of many lines on a few
connections, as many as are taken. Answers with one line of JSON.
"""

import argparse
import http.client
import json
import threading
import time

from oplog_udp_load import operation, stamped

CONNECTIONS = 4


def post(connection: http.client.HTTPConnection, body: bytes) -> None:
    """Send a body; anything but 204 ends the measurement."""
    connection.request("POST", "/", body, {"Content-Type": "application/x-ndjson"})
    answer = connection.getresponse()
    said = answer.read()
    assert answer.status == 204, (answer.status, said[:500])


def probe(port: int, rate: float, seconds: float) -> dict[str, list[float]]:
    """The milliseconds until 204 of single operations, each sent at its time."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    began, taken = time.monotonic(), list[float]()
    while (now := time.monotonic()) - began < seconds:
        due = began + len(taken) / rate
        if due > now:
            time.sleep(due - now)
        post(connection, operation(len(taken), stamped(time.time_ns() // 1_000_000)))
        taken.append((time.monotonic() - max(due, now)) * 1e3)
    connection.close()
    return {"ms": taken}


def flood(port: int, lines: int, seconds: float) -> dict[str, float]:
    """Send bodies of so many lines."""
    text = stamped(time.time_ns() // 1_000_000)
    body = b"\n".join(operation(number, text) for number in range(lines))
    sent, deadline = [0] * CONNECTIONS, time.monotonic() + seconds

    def send(which: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while time.monotonic() < deadline:
            post(connection, body)
            sent[which] += lines
        connection.close()

    began = time.monotonic()
    threads = [threading.Thread(target=send, args=(which,)) for which in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"sent": sum(sent), "seconds": time.monotonic() - began}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=50, help="single operations a second")
    parser.add_argument("--lines", type=int, help="instead: bodies of so many lines")
    given = parser.parse_args()
    if given.lines:
        print(json.dumps(flood(given.port, given.lines, given.seconds)))
    else:
        print(json.dumps(probe(given.port, given.rate, given.seconds)))


if __name__ == "__main__":
    main()
