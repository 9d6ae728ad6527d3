"""TCP ports: finding a free one, and the process that holds one."""

import random
import socket
from collections.abc import Collection

import psutil

LOOPBACK = "127.0.0.1"
BELOW_EPHEMERAL = (15_000, 32_000)


def loopback() -> str:
    """The host name for Airflow: unlike the real one it always resolves."""
    return LOOPBACK


def is_free(port: int) -> bool:
    """Whether a service could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # a port in TIME_WAIT is free for a server
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port(besides: Collection[int] = ()) -> int:
    """A free port that is not in ``besides`` and outside the range of ephemeral ports."""
    while True:
        port = random.randrange(*BELOW_EPHEMERAL)
        if port not in besides and is_free(port):
            return port


def holder(port: int) -> tuple[int | None, str | None]:
    """The process that listens there and its command, as far as this user may know."""
    try:
        listening = [
            found.pid
            for found in psutil.net_connections("tcp")
            if found.status == psutil.CONN_LISTEN and found.laddr and found.laddr.port == port
        ]
    except (psutil.Error, OSError):  # macOS shows other processes' sockets to root only
        return None, None
    for pid in filter(None, listening):
        try:
            command = " ".join(psutil.Process(pid).cmdline())
        except psutil.Error:
            command = "of another user"
        return pid, command if len(command) <= 120 else f"{command[:20]} … {command[-95:]}"
    return None, None
