"""Opens a session on the engine that a Spark connection names, and says which one it was.

A Spark Connect server stays up and is shared. A session on it belongs to one kind of work of one installation
(``orders.deliver``) with one version of the library: the next run of the same work finds it again, with its
Python processes, and can interrupt what a killed attempt left running. Other work has other sessions: it sees
nothing of it and cannot interrupt it. Every other address starts an application, which ends with its session.

Nothing here starts or stops a server.
"""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4, uuid5

import structlog

from tidemark.connections import SECRET_NAMES, SECRET_OPTIONS, SECRET_TEXTS, SparkConnection
from tidemark.settings import Settings
from tidemark.spark.errors import EngineError, EngineMismatch, EngineRefusedToken, EngineUnavailable
from tidemark.spark.installation_id import installation_id
from tidemark.spark.library_archive import ensure_loaded_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 120.0
"""Seconds to wait for a server that does not answer: longer than the embedded one needs to start on a busy
machine."""
MOST_RETRIES = 6
"""About 15 s: PySpark's own default goes on for more than ten minutes after a server is gone."""
SESSION_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.redaction.options.regex": SECRET_OPTIONS,
    "spark.sql.redaction.string.regex": SECRET_TEXTS,
}
"""The settings of every session, on either kind of engine."""

_CLOSED = "INVALID_HANDLE.SESSION_CLOSED"
_LOST_SESSION = ("INVALID_HANDLE.SESSION", "INVALID_HANDLE.OPERATION", "NO_ACTIVE_SESSION")
_SESSIONS = UUID("6a1f0c52-6a5e-4b0f-9d38-4d6f7f2f6f0e")
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"

_open: "list[OpenEngine]" = []

log = structlog.get_logger()


class EngineKind(StrEnum):
    """Where Spark runs."""

    CONNECT = "connect"
    """A Spark Connect server that stays up."""
    APPLICATION = "application"
    """An application that was started for this work."""
    PROCESS = "process"
    """None: there was so little to do that the task did it in its own process."""


@dataclass(frozen=True, slots=True)
class OpenEngine:
    """A session, and the engine that it runs on."""

    spark: "SparkSession"
    kind: EngineKind
    address: str
    waited: float
    """Seconds from the first attempt until the session could be used."""
    attempt: str = ""
    """The tag of all operations that this process starts on a Connect server."""

    def interrupt(self) -> None:
        """Cancel what this process has running on a Connect server, as far as it still answers."""
        if self.kind is EngineKind.CONNECT:
            with suppress(Exception):
                self.spark.interruptTag(self.attempt)

    def to_dict(self) -> dict[str, Any]:
        """For an application's summary."""
        return {"kind": self.kind.value, "address": self.address, "waited": round(self.waited, 3)}


@contextmanager
def open_session(
    name: str, connection: SparkConnection | None, patience: float = PATIENCE
) -> Iterator[OpenEngine]:
    """A session on the engine of ``connection``; without one, of the application that this process is.

    A Connect server that does not answer yet is waited for, ``patience`` seconds at most. Raises
    ``EngineError``, also in place of an error in the ``with`` block that means that the engine was lost.
    """
    if connection is None or not connection.is_connect:
        with _application(name, connection) as engine:
            yield engine
        return
    with _connected(name, connection, patience) as engine:
        _open.append(engine)
        try:
            yield engine
        except BaseException as error:
            if lost := engine_error(error, connection.address):
                raise lost from error
            engine.interrupt()  # the server would go on with it although its result is of no use any more
            raise
        finally:
            _open.remove(engine)


def interrupt_open_sessions(patience: float = 2.0) -> None:
    """Cancel everything that this process has running on Connect servers; may be called in a signal handler.

    In other threads, because the interrupted one may hold a lock of the client.
    """
    threads = [Thread(target=engine.interrupt, daemon=True) for engine in list(_open)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience)


def engine_error(error: BaseException, address: str) -> EngineError | None:
    """The error as one of the engine, if it says that a Connect server is gone or refuses this client."""
    if isinstance(error, EngineError):
        return error
    from grpc import RpcError, StatusCode
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    code = None
    if isinstance(error, SparkConnectGrpcException):
        code = error.getGrpcStatusCode()
    elif isinstance(error, RpcError):
        code = error.code()
    if code is StatusCode.UNAUTHENTICATED:
        return EngineRefusedToken(address)
    if code is StatusCode.UNAVAILABLE:
        return EngineUnavailable(address, "does not answer any more")
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    if condition.startswith(_LOST_SESSION):
        return EngineUnavailable(address, "was restarted and has lost this session")
    return None


@contextmanager
def _application(name: str, connection: SparkConnection | None) -> Iterator[OpenEngine]:
    """The application that spark-submit has started, or a new one in this process. Stopped at the end."""
    from pyspark.sql import SparkSession

    began = time.monotonic()
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.redaction.regex", SECRET_NAMES)
    )
    for key, value in SESSION_SETTINGS.items():
        builder = builder.config(key, value)
    if connection and not {"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"} & os.environ.keys():
        builder = builder.master(connection.address)
    spark = builder.getOrCreate()
    try:
        # Executors get the driver's library: it does not have to be installed there.
        spark.addArtifacts(_library(), pyfile=True)
        address = str(spark.conf.get("spark.master"))
        yield OpenEngine(spark, EngineKind.APPLICATION, address, time.monotonic() - began)
    finally:
        spark.stop()


@contextmanager
def _connected(name: str, connection: SparkConnection, patience: float) -> Iterator[OpenEngine]:
    """A new session on a Connect server. Released at the end."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    began, was_enabled = time.monotonic(), _CONNECT_MODE in os.environ
    _wait_for_server(connection, patience)
    os.environ[_CONNECT_MODE] = "1"  # functions of pyspark.sql ask it which kind of column to make
    session: Any = None
    try:
        try:
            library, attempt = _library(), f"attempt-{uuid4().hex}"
            session = _attach(connection, name, library, attempt)
            ConnectSession._set_default_and_active_session(session)
            _refuse_other_version(connection, session)
            for key, value in SESSION_SETTINGS.items():
                session.conf.set(key, value)
            _send_library(session, library)
        except Exception as error:
            raise engine_error(error, connection.address) or error from None
        waited = time.monotonic() - began
        yield OpenEngine(session, EngineKind.CONNECT, connection.address, waited, attempt)
    finally:
        if session is not None:
            session.stop()
        if not was_enabled:
            os.environ.pop(_CONNECT_MODE, None)


def _attach(connection: SparkConnection, name: str, library: str, attempt: str) -> Any:
    """The server's session for this work; a new one where the server has closed the last after a long rest.

    A closed session's id is refused for as long as the server remembers it, so ids are numbered.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    class Tag(ConnectSession.Hook):
        """Tags every operation, whichever thread starts it."""

        def on_execute_plan(self, request: Any) -> Any:
            """See ``SparkSession.Hook.on_execute_plan``."""
            request.tags.append(attempt)
            return request

    for number in count():
        channel = _channel(name, connection, session_id(name, library, number))
        session = ConnectSession(channel, hook_factories=[lambda _: Tag()])
        session.release_session_on_close = False  # the next run of the same work goes on with it
        session.client.set_retry_policies([DefaultPolicy(max_retries=MOST_RETRIES, max_backoff=5_000)])
        try:
            session.conf.set("spark.sql.session.timeZone", "UTC")
        except PySparkException as error:
            session.stop()
            if error.getCondition() != _CLOSED:
                raise
            continue
        return session


def session_id(name: str, library: str, number: int = 0) -> str:
    """The id of the session for a kind of work, the same in every process of this installation."""
    home = Settings.read().home
    work = "\0".join((str(home), installation_id(home / "packages"), name, library, str(number)))
    return str(UUID(bytes=uuid5(_SESSIONS, work).bytes, version=4))


def engine_problem(connection: SparkConnection | None, patience: float = 2.0) -> str | None:
    """Why a Connect server does not answer; None where it does, and where an application would be started."""
    if connection is None or not connection.is_connect:
        return None
    try:
        socket.create_connection(connection.endpoint, timeout=patience).close()
    except OSError as error:
        return f"{connection.address} ({error.strerror or error})"
    return None


def _wait_for_server(connection: SparkConnection, patience: float) -> None:
    """Return when the server's port accepts a connection: it is opened when the server is ready."""
    deadline, is_announced = time.monotonic() + patience, False
    while True:
        try:
            socket.create_connection(connection.endpoint, timeout=max(0.1, patience)).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise EngineUnavailable(
                    connection.address, f"has not answered for {patience:.0f} s ({error.strerror or error})"
                ) from None
        if not is_announced:
            log.info("waiting for the Spark engine", address=connection.address, seconds=patience)
            is_announced = True
        time.sleep(0.1)


def _channel(name: str, connection: SparkConnection, session: str) -> Any:
    """How PySpark opens its channel. The token is no part of the address, which errors may show."""
    import grpc
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    class Channel(DefaultChannelBuilder):
        """With an own authority's certificate, which PySpark has no parameter for."""

        def toChannel(self) -> grpc.Channel:
            """See ``DefaultChannelBuilder.toChannel``."""
            if connection.ca_file is None:
                return super().toChannel()
            credentials = grpc.ssl_channel_credentials(Path(connection.ca_file).read_bytes())
            if self.token is not None:
                sent = grpc.access_token_call_credentials(self.token)
                credentials = grpc.composite_channel_credentials(credentials, sent)
            return self._secure_channel(self.endpoint, credentials)

    builder = Channel(connection.address)
    builder.set("session_id", session)
    builder.set("user_agent", f"tidemark/{name}")
    if connection.use_tls:
        builder.set("use_ssl", "true")
    if connection.token:
        builder.set("token", connection.token.get_secret_value())
    return builder


def _refuse_other_version(connection: SparkConnection, session: Any) -> None:
    from pyspark import __version__ as client

    server = session.version
    if server.split(".")[:2] != client.split(".")[:2]:
        raise EngineMismatch(connection.address, server, client)


def _send_library(session: Any, path: str) -> None:
    """Give the session's Python workers this process's library. The same one again changes nothing."""
    session.addArtifacts(path, pyfile=True)
    if path in sys.path:  # PySpark adds it here too, where the library is loaded already
        sys.path.remove(path)


def _library() -> str:
    return str(ensure_loaded_package(Settings.read().home / "packages"))
