"""A connection that breaks: bytes pass through a port of this machine until so many have come back."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tidemark.embedded.ports import LOOPBACK

RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class CuttingProxy:
    """One port that leads to another. Connections are cut off in the middle of whatever is sent."""

    def __init__(self, target: int, allowance: Callable[[], int | None]) -> None:
        """``allowance``: the bytes that the next connection may bring back; None for any number."""
        self._target, self._allowance = target, allowance
        self._listener = socket.create_server((LOOPBACK, 0))
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                inside, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(inside,), daemon=True).start()

    def _serve(self, inside: socket.socket) -> None:
        with inside, suppress(OSError), socket.create_connection((LOOPBACK, self._target)) as outside:
            threading.Thread(target=_pass_on, args=(inside, outside), daemon=True).start()
            left = self._allowance()
            while data := outside.recv(65_536):
                if left is not None and len(data) >= left:
                    self.cuts += 1
                    inside.sendall(data[:left])
                    # Half of the connections are reset, the others end as if the stream were over.
                    if self.cuts % 2:
                        inside.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
                    return
                left = None if left is None else left - len(data)
                inside.sendall(data)


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)


@contextmanager
def given_cuts(target: int, allowance: Callable[[], int | None]) -> Iterator[CuttingProxy]:
    """A proxy that is gone afterwards."""
    proxy = CuttingProxy(target, allowance)
    try:
        yield proxy
    finally:
        proxy.close()
