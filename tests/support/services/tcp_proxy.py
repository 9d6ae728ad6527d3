"""A door to a service that a test can shut: bytes pass through a port of this machine until then."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tidemark.embedded.ports import LOOPBACK


class TcpProxy:
    """One port that leads to another."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server((LOOPBACK, 0))
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_shut = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def shut(self) -> None:
        """No connection gets through any more, and no new one gets in."""
        with self._lock:
            self._is_shut = True
            sockets, self._open = [self._listener, *self._open], []
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                inside, _ = self._listener.accept()
                outside = socket.create_connection((LOOPBACK, self._target))
                with self._lock:
                    if self._is_shut:
                        inside.close()
                        outside.close()
                        return
                    self._open += [inside, outside]
                for one, other in ((inside, outside), (outside, inside)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)


@contextmanager
def given_proxy(target: int) -> Iterator[TcpProxy]:
    """A proxy that is gone afterwards."""
    proxy = TcpProxy(target)
    try:
        yield proxy
    finally:
        proxy.shut()
