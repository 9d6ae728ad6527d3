"""Sends operations to an agent by UDP, one datagram each. Nothing tells whether an operation has arrived."""

import socket
from types import TracebackType
from typing import Self

from tidemark.oplog.producer.errors import BadAgentAddress, DatagramRefused
from tidemark.oplog.producer.lines import OperationLine

LARGEST = 65_507
"""The bytes of the largest datagram that IPv4 has."""


class UdpSender:
    """A socket for one agent."""

    def __init__(self, host: str, port: int) -> None:
        """Resolves the address; raises ``BadAgentAddress``."""
        self._address = f"{host}:{port}"
        self._socket: socket.socket | None = None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError):
            raise BadAgentAddress(f"udp://{self._address}") from None
        family, kind, protocol, _, address = found[0]
        self._socket = socket.socket(family, kind, protocol)
        # Connected, so that a port on which no process listens is an error, at the datagram after the first.
        self._socket.connect(address)
        self.sent = 0
        """Operations that were handed to the network so far."""

    def send(self, line: OperationLine) -> None:
        """Sends one operation; raises ``DatagramRefused``."""
        if len(line.text) > LARGEST:
            raise DatagramRefused(self._address, line.number, f"it has more than {LARGEST} bytes")
        if self._socket is None:
            raise DatagramRefused(self._address, line.number, "the socket is closed")
        try:
            self._socket.send(line.text)
        except ConnectionRefusedError:
            raise DatagramRefused(self._address, line.number, "no agent listens there") from None
        except OSError as error:
            raise DatagramRefused(self._address, line.number, error.strerror or str(error)) from None
        self.sent += 1

    def close(self) -> None:
        """Closes the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
