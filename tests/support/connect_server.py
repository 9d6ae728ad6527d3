"""A Spark Connect server for tests, started as the embedded services start it, in a home and at a port of its
own: one for a whole ring, or one that a test kills and starts again."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from pydantic import SecretStr
from tests.support.waiting import wait_until

from tidemark.connections import SparkConnection
from tidemark.embedded.jars.fetch import ensure_jars
from tidemark.embedded.java import find_java
from tidemark.embedded.ports import free_port
from tidemark.embedded.services.service import Service
from tidemark.embedded.services.spark_connect import ensure_token, spark_connect_service
from tidemark.settings import Settings


class ConnectServer:
    """A server that a test can kill and start again at the same address."""

    def __init__(self, home: Path, heap: str = "1g") -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.settings = replace(Settings.read(), home=home, spark_port=free_port())
        self._heap = heap
        self._process: subprocess.Popen[bytes] | None = None

    @cached_property
    def service(self) -> Service:
        jars = ensure_jars(self.settings, only="spark")
        return spark_connect_service(self.settings, find_java(os.environ), jars, self._heap)

    @property
    def connection(self) -> SparkConnection:
        token = SecretStr(ensure_token(self.settings))
        return SparkConnection(address=f"sc://localhost:{self.settings.spark_port}", token=token)

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was never started"
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        (program,) = self.service.programs
        self.service.prepare()
        with (self.settings.home / "server.log").open("ab") as output:
            self._process = subprocess.Popen(
                program.command,
                env=program.environ,
                cwd=program.cwd,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        wait_until(lambda: self.service.question(0.0) is None, 90, "an answer of the Connect server")

    def kill(self) -> None:
        """``kill -9`` of the server. Its Python workers find out by themselves."""
        os.kill(self.pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait(30)

    def stop(self) -> None:
        """End it with everything it has started."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)


@contextmanager
def running_server(home: Path, heap: str = "1g") -> Iterator[ConnectServer]:
    """A server that runs, and is stopped at the end."""
    server = ConnectServer(home, heap=heap)
    try:
        server.start()
        yield server
    finally:
        server.stop()
