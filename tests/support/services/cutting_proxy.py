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
            requests = threading.Thread(target=_pass_on, args=(inside, outside), daemon=True)
            requests.start()
            left, is_cut = self._allowance(), False
            while not is_cut and (data := outside.recv(65_536)):
                is_cut = left is not None and len(data) >= left
                inside.sendall(data[:left])
                left = None if left is None else left - len(data)
            self.cuts += is_cut
            # A socket that another thread reads is not closed before that ends.
            for one, how in ((inside, socket.SHUT_RD), (outside, socket.SHUT_RDWR)):
                with suppress(OSError):  # it has ended by itself
                    one.shutdown(how)
            requests.join()
            # Half of the connections are reset, the others end as if the stream were over.
            if is_cut and self.cuts % 2:
                inside.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)


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
