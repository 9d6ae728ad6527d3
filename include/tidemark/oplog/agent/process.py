"""The process of an agent: starts its parts, serves until it is asked to stop, then drains.

On SIGTERM or SIGINT it takes what the kernel still has of UDP, refuses new requests, lets streams go to other
agents, and waits for Kafka's acknowledgements. It ends with an error where operations were given up.
"""

import asyncio
import gc
import logging
import resource
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import structlog
import uvicorn
import uvloop

from tidemark.kafka.producer import PolledProducer
from tidemark.oplog.agent.errors import AddressTaken, OperationsGivenUp
from tidemark.oplog.agent.ingest.counters import IngestCounters
from tidemark.oplog.agent.ingest.intake import Intake
from tidemark.oplog.agent.ingest.polling import QueuePolling
from tidemark.oplog.agent.ingest.queue import MOST_IN_FLIGHT, IngestQueue, NewProducer
from tidemark.oplog.agent.ingest.udp import UdpListener, udp_socket
from tidemark.oplog.agent.server.access import Access
from tidemark.oplog.agent.server.app import AgentApp
from tidemark.oplog.agent.server.bodies import BodyReader
from tidemark.oplog.agent.server.connections import BoundedHttpProtocol, HttpConnections
from tidemark.oplog.agent.server.cors import CrossOrigin
from tidemark.oplog.agent.server.health import HealthChecks
from tidemark.oplog.agent.server.posts import OperationPosts
from tidemark.oplog.agent.server.status import DEGRADED, OK, STOPPING, stream_figures
from tidemark.oplog.agent.settings import AgentSettings
from tidemark.oplog.agent.streams.service import Streams
from tidemark.oplog.agent.topic import AgentTopic
from tidemark.pipeline.agent import UdpMode

DRAINED_WITHIN = 25.0
"""Seconds for acknowledgements after a signal; a supervisor kills a process after 30, as a rule."""
ANSWERED_WITHIN = 12
"""Seconds for requests that are being answered after a signal."""
KEPT_ALIVE = 30
"""Seconds that a connection may be idle between requests."""
BACKLOG = 2_048
LOOPBACK = "127.0.0.1"

events = structlog.get_logger()


class AgentProcess:
    """One agent."""

    def __init__(
        self,
        settings: AgentSettings,
        topic: AgentTopic,
        streams: Streams | None = None,
        new_producer: NewProducer | None = None,
    ) -> None:
        """``streams``: None for an agent that only takes operations in."""
        declared = settings.declared
        self._settings, self._topic, self._streams = settings, topic, streams
        self._counters = IngestCounters()
        producer = new_producer or (
            lambda done: PolledProducer(settings.kafka, settings.topic, done, most=MOST_IN_FLIGHT)
        )
        self._queue = IngestQueue(declared.queue, self._counters, topic.partition_of, producer)
        self._intake = Intake(self._queue, self._counters)
        self._udp: UdpListener | None = None
        self._connections = HttpConnections(declared.limits.connections)
        self._began = time.monotonic()
        self._stop = asyncio.Event()
        limits = declared.limits
        self.app = AgentApp(
            access=Access(settings.tokens, limits.connections_per_token),
            posts=OperationPosts(self._intake, BodyReader(limits.body), limits.lines, problem=self._problem),
            streams=streams,
            health=HealthChecks(self._checks()),
            status=self.status,
            cors=CrossOrigin(declared.cors),
        )

    def stop(self) -> None:
        """Ask the agent to stop."""
        self._stop.set()

    def status(self) -> dict[str, Any]:
        """What ``/status`` shows."""
        queue, udp = self._queue, self._udp
        state = STOPPING if self.app.is_stopping else DEGRADED if self._troubles() else OK
        return {
            "status": state,
            **self._counters.figures(),
            **stream_figures(self._streams.figures if self._streams else None),
            "queue_size": queue.waiting,
            "queue_max_size": queue.most,
            "events_in_flight": queue.in_flight,
            "problems": self._troubles(),
            "last_failure": queue.last_failure,
            "pipeline": self._settings.pipeline,
            "topic": self._settings.topic,
            "partitions": self._topic.partitions,
            "ingest_only": self._streams is None,
            "uptime_seconds": round(time.monotonic() - self._began, 1),
            "udp_address": udp.address if udp else None,
            "udp_buffer_bytes": udp.buffer_bytes if udp else None,
            "udp_kernel_drops": udp.kernel_drops if udp else None,
            "http_connections": len(self._connections.connections),
            "http_connections_refused": self._connections.refused,
            "http_connections_cut": self._connections.cut,
            "http_answers": {str(code): count for code, count in sorted(self.app.answers.items())},
        }

    async def run(self, ready: Callable[[str], object]) -> None:
        """Serve until ``stop``. ``ready`` is called with the address when requests are answered.

        Raises ``AddressTaken`` before anything was started, and ``OperationsGivenUp`` at the end.
        """
        loop = asyncio.get_running_loop()
        with self._sockets() as (http, datagrams):
            _allow_files(self._settings.declared.limits.connections)
            polling = QueuePolling(self._queue, loop)
            if self._streams is not None:
                await self._streams.start()
            if datagrams is not None:
                self._udp = UdpListener(datagrams, self._intake.take_datagram)
                self._udp.start(loop)
            server = self._server()
            serving = asyncio.create_task(server.serve(sockets=[http]))
            watching = asyncio.create_task(self._topic.watch())
            try:
                await _either(self._until_started(server), serving)
                if not serving.done():
                    ready(_shown(http.getsockname()))
                    await _either(self._stop.wait(), serving)
            finally:
                await self._drain(server, serving, watching, polling)

    async def _until_started(self, server: uvicorn.Server) -> None:
        while not server.started:
            await asyncio.sleep(0.01)

    async def _drain(
        self,
        server: uvicorn.Server,
        serving: "asyncio.Task[None]",
        watching: "asyncio.Task[None]",
        polling: QueuePolling,
    ) -> None:
        events.info("agent stops", pipeline=self._settings.pipeline, queued=self._queue.waiting)
        until = asyncio.get_running_loop().time() + DRAINED_WITHIN
        self.app.is_stopping = True
        if self._udp is not None:
            self._udp.close()
        if self._streams is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._streams.drain(), ANSWERED_WITHIN)
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
        await polling.drain(until - asyncio.get_running_loop().time())
        watching.cancel()
        polling.stop()
        left = self._queue.close()
        events.info("agent stopped", **self._counters.figures())
        if (failure := serving.exception()) is not None:
            raise failure
        if left:
            raise OperationsGivenUp(self._settings.pipeline, left)

    def _server(self) -> uvicorn.Server:
        logging.getLogger("uvicorn").setLevel(logging.ERROR)  # requests that are no HTTP are not worth a line
        config = uvicorn.Config(
            self.app,
            http=BoundedHttpProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEPT_ALIVE,
            timeout_graceful_shutdown=ANSWERED_WITHIN,
        )
        server = _AgentServer(config)
        server.server_state = self._connections
        return server

    @contextmanager
    def _sockets(self) -> Iterator[tuple[socket.socket, socket.socket | None]]:
        """The bound sockets of HTTP and UDP, which have the same port."""
        host, port = self._settings.declared.address
        mode = self._settings.declared.udp
        opened: list[socket.socket] = []
        try:
            opened.append(http := self._bound(_http_socket, host, port))
            datagrams = None
            if mode is not UdpMode.CLOSED:
                where = host if mode is UdpMode.OPEN else _loopback(host)
                opened.append(datagrams := self._bound(udp_socket, where, http.getsockname()[1]))
            yield http, datagrams
        finally:
            for one in opened:
                one.close()

    def _bound(self, make: Callable[[str, int], socket.socket], host: str, port: int) -> socket.socket:
        try:
            return make(host, port)
        except OSError as error:
            raise AddressTaken(
                self._settings.pipeline, _shown((host, port)), error.strerror or str(error)
            ) from error

    def _checks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        checks: dict[str, Callable[[], Awaitable[None]]] = {
            "kafka": lambda: asyncio.to_thread(self._topic.check)
        }
        return checks if self._streams is None else {**checks, "streams": self._streams.check}

    def _problem(self) -> str | None:
        """Why no operation is accepted; None where all is well."""
        problem = self._topic.problem
        return f"The topic {self._settings.topic} {problem}." if problem else None

    def _troubles(self) -> list[str]:
        found = [self._topic.problem, self._topic.warning]
        found.append("Kafka does not answer" if self._queue.is_stalled else None)
        return [one for one in found if one is not None]


class _AgentServer(uvicorn.Server):
    """A server that leaves signals to the agent."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def run_agent(process: Callable[[], AgentProcess], ready: Callable[[str], object]) -> None:
    """Run an agent in an event loop of its own until SIGTERM or SIGINT."""

    async def run() -> None:
        agent, loop = process(), asyncio.get_running_loop()
        gc.collect()
        gc.freeze()  # what was imported lives as long as the process: later collections skip it
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, agent.stop)
        await agent.run(ready)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def _either(first: Awaitable[Any], second: "asyncio.Task[Any]") -> None:
    """Wait until one of the two is done; the first is given up where it is not."""
    waiting = asyncio.ensure_future(first)
    await asyncio.wait({waiting, second}, return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting


def _http_socket(host: str, port: int) -> socket.socket:
    (family, kind, protocol, _, place), *_ = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.listen(BACKLOG)  # another agent that begins to listen there is refused now, not later
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _loopback(host: str) -> str:
    return host if host in ("::1", "localhost") or host.startswith("127.") else LOOPBACK


def _shown(place: tuple[Any, ...]) -> str:
    host, port = place[:2]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def _allow_files(connections: int) -> None:
    """Raise the limit of open files for this many connections, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 1_000
    granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < granted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    if granted < wanted:
        events.warning("few open files", allowed=granted, advice=f"ulimit -n {wanted}")
