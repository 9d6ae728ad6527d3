"""The bare loop beside the agent's ingest: receives datagrams, decodes, encodes and produces them, no more.

Its records are those of the agent, by the same functions. It lacks the agent around them: no queue, bounds,
counters, no event loop, nothing by HTTP; an invalid operation ends it. It says its port in a line; on
SIGTERM it ends when Kafka has acknowledged everything. Started by ``bench/oplog.py``.
"""

import select
import signal
import socket
import sys

from confluent_kafka import Producer

from tidemark.clock import wall_clock_millis
from tidemark.operations.operation import encoded
from tidemark.operations.reading import read_operation

BUFFER = 4_000_000
AT_ONCE = 256
WAITED = 0.002
_FORCED_BUFFER = 33
"""``SO_RCVBUFFORCE``: the agent asks for it too."""


class Bare:
    """The loop."""

    def __init__(self, servers: str, topic: str) -> None:
        self.topic, self.is_over, self.acknowledged = topic, False, 0
        self.producer = Producer(
            {
                "bootstrap.servers": servers,
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 5,
                "partitioner": "murmur2_random",
            }
        )
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, _FORCED_BUFFER, BUFFER)
        except PermissionError:
            print("SO_RCVBUFFORCE is not allowed: the system's limit holds", file=sys.stderr)
        self.socket.bind(("127.0.0.1", 0))

    def stop(self, *_: object) -> None:
        self.is_over = True

    def noted(self, error: object, _: object) -> None:
        assert error is None, error
        self.acknowledged += 1

    def run(self) -> None:
        buffer = bytearray(65_536)
        view, receive = memoryview(buffer), self.socket.recv_into
        producer, topic, noted = self.producer, self.topic, self.noted
        while not self.is_over:
            select.select([self.socket], [], [], WAITED)
            received = wall_clock_millis()
            for _ in range(AT_ONCE):
                try:
                    size = receive(view)
                except BlockingIOError:
                    break
                one = read_operation(bytes(view[:size]), received)
                while True:
                    try:
                        producer.produce(topic, value=encoded(one), key=one.key, on_delivery=noted)
                        break
                    except BufferError:
                        producer.poll(0.01)
            producer.poll(0)
        producer.flush(60)


def main(servers: str, topic: str) -> None:
    bare = Bare(servers, topic)
    signal.signal(signal.SIGTERM, bare.stop)
    print(bare.socket.getsockname()[1], flush=True)
    bare.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
