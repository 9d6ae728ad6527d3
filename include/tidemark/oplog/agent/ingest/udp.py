"""Operations by UDP: one datagram, one JSON object. Nothing is answered, and no input stops the listener.

A datagram that the kernel dropped because its buffer was full never reaches the agent. The kernel counts
them, per socket, in ``/proc/net/udp``.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from tidemark.clock import Clock, wall_clock_millis

WANTED_BUFFER = 4_000_000
"""Bytes that the kernel should keep for us: a fifth of a second at 20,000 operations of a kilobyte."""
LARGEST_DATAGRAM = 65_536
AT_ONCE = 256
"""Datagrams that are taken before the event loop serves others again."""
LAST_ROUNDS = 100
"""Rounds of taking what the kernel still has at the end: senders that go on do not keep the agent."""
_FORCED_BUFFER = 33
"""``SO_RCVBUFFORCE``, which Python does not name: a privileged process may exceed the system's limit."""
_NET = Path("/proc/net")

events = structlog.get_logger()


def udp_socket(host: str, port: int) -> socket.socket:
    """A bound socket with as large a receive buffer as the system grants. Raises ``OSError``."""
    (family, kind, protocol, _, place), *_ = socket.getaddrinfo(
        host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
    )
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WANTED_BUFFER)
        with suppress(OSError):
            made.setsockopt(socket.SOL_SOCKET, _FORCED_BUFFER, WANTED_BUFFER)
        made.bind(place)
    except OSError:
        made.close()
        raise
    return made


class UdpListener:
    """Takes datagrams from one socket, in the event loop."""

    def __init__(
        self, bound: socket.socket, take: Callable[[bytes, int], None], clock: Clock = wall_clock_millis
    ) -> None:
        """``take`` gets each datagram with the time of its receipt, in ms; it must not raise."""
        self._socket, self._take, self._clock = bound, take, clock
        self._buffer = bytearray(LARGEST_DATAGRAM)
        self._view = memoryview(self._buffer)
        self._inode = os.fstat(bound.fileno()).st_ino
        self._drops = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def buffer_bytes(self) -> int:
        """The receive buffer that the system has granted; Linux counts its bookkeeping as well."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    @property
    def kernel_drops(self) -> int | None:
        """Datagrams that the kernel has dropped since the socket was made; None where it does not say."""
        if self._loop is not None:
            found = drops_of(self._inode)
            self._drops = self._drops if found is None else found
        return self._drops if _NET.exists() else None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to take datagrams."""
        self._loop = loop
        if self.buffer_bytes < WANTED_BUFFER:
            events.warning(
                "small receive buffer for UDP",
                bytes=self.buffer_bytes,
                advice=f"sysctl -w net.core.rmem_max={WANTED_BUFFER}",
            )
        loop.add_reader(self._socket.fileno(), self._receive, AT_ONCE)

    def close(self) -> None:
        """Take what the kernel still has, and stop."""
        if self._loop is None:
            self._socket.close()
            return
        self._loop.remove_reader(self._socket.fileno())
        self._drops = drops_of(self._inode) or 0
        self._loop = None
        for _ in range(LAST_ROUNDS):
            if not self._receive(AT_ONCE):
                break
        self._socket.close()

    def _receive(self, most: int) -> bool:
        """Take datagrams; whether there may be more."""
        received = self._clock()
        receive, view, take = self._socket.recv_into, self._view, self._take
        for _ in range(most):
            try:
                size = receive(view)
            except BlockingIOError:
                return False
            except OSError as error:  # such as an ICMP error about an earlier datagram: the next one is fine
                events.warning("datagram not received", reason=error.strerror)
                return False
            take(bytes(view[:size]), received)
        return True


def drops_of(inode: int, folder: Path = _NET) -> int | None:
    """The drops that the kernel has counted for the socket with this inode; None where it is not listed."""
    for name in ("udp", "udp6"):
        try:
            lines = (folder / name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 12 and fields[9] == str(inode):
                return int(fields[12])
    return None
