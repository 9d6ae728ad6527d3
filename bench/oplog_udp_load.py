"""Sends operations by UDP from a process of its own; started by the measurements of ``bench/oplog.py``.

At a rate, or as fast as the receiver takes them: then it looks at the receiver's buffer in the kernel and
waits while there is much in it. Every operation says when it was sent. Answers with one line of JSON.
"""

import argparse
import json
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

OBJECTS = 100_000
MUCH = 500_000
"""Bytes in the receiver's buffer, with what the kernel adds to each datagram, from which the sender waits."""
LOOKED_EVERY = 200
"""Datagrams between two looks at it: far fewer than its buffer takes."""


def stamped(ms: int) -> str:
    """A time as operations have it."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


def operation(number: int, timestamp: str) -> bytes:
    """An operation of about 110 bytes."""
    n = number % OBJECTS
    return (
        f'{{"event":"update","timestamp":"{timestamp}","parents":["channel/{n % 1000}"],'
        f'"type":"video","id":"x{n:07d}"}}'
    ).encode()


def waiting(port: int) -> int:
    """Bytes that wait in the buffer of the socket with this port."""
    place = f":{port:04X} "
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        if place in line[:24]:
            return int(line.split()[4].partition(":")[2], 16)
    return 0


def send_at(to: socket.socket, rate: int, seconds: float) -> int:
    """Send at a rate, every millisecond what is due; how many were sent."""
    began, number, send = time.monotonic(), 0, to.send
    while (passed := time.monotonic() - began) < seconds:
        due = int(passed * rate)
        text = stamped(time.time_ns() // 1_000_000)
        while number < due:
            send(operation(number, text))
            number += 1
        time.sleep(0.001)
    return number


def send_as_taken(to: socket.socket, port: int, count: int) -> int:
    """Send a number of operations; no buffer overflows."""
    send = to.send
    for number in range(count):
        if number % LOOKED_EVERY == 0:
            while waiting(port) > MUCH:
                time.sleep(0.001)
            text = stamped(time.time_ns() // 1_000_000)
        send(operation(number, text))
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--as-taken", type=int, help="send this number as fast as they are taken")
    given = parser.parse_args()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
        to.connect(("127.0.0.1", given.port))
        began, used = time.monotonic(), time.process_time()
        if given.as_taken:
            sent = send_as_taken(to, given.port, given.as_taken)
        else:
            sent = send_at(to, given.rate, given.seconds)
        seconds = time.monotonic() - began
    print(json.dumps({"sent": sent, "seconds": seconds, "cpu": time.process_time() - used}))


if __name__ == "__main__":
    main()
