"""An agent in a thread of the test's process, on ports of its own, with a scripted producer."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvloop
from tests.support.fake_kafka import NOWHERE
from tests.support.scripted_producer import ScriptedProducer

from tidemark.embedded.ports import free_port
from tidemark.kafka.topics import PartitionState, TopicDescription
from tidemark.oplog.agent.process import AgentProcess
from tidemark.oplog.agent.server.tokens import AgentToken
from tidemark.oplog.agent.settings import AgentSettings
from tidemark.oplog.agent.topic import AgentTopic
from tidemark.pipeline.agent import AgentDeclaration


@dataclass
class RunningAgent:
    """An agent that runs."""

    port: int
    process: AgentProcess
    producer: ScriptedProducer
    loop: asyncio.AbstractEventLoop
    failure: list[BaseException] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def status(self) -> dict[str, Any]:
        return httpx.get(f"{self.url}/status", timeout=60).json()

    def connect(self) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        made.settimeout(60)
        return made

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.process.stop)


def whole_topic(partitions: int = 4) -> AgentTopic:
    found = TopicDescription(None, tuple(PartitionState(number, True, 1) for number in range(partitions)))
    topic = AgentTopic("shop", "oplog", lambda: found, lambda: None)
    topic.look()
    return topic


@contextmanager
def running_agent(
    *, streams: Any = None, tokens: tuple[AgentToken, ...] = (), **declared: Any
) -> Iterator[RunningAgent]:
    """An agent until the end of the block; whether it failed is in ``failure``."""
    port = free_port()
    section = AgentDeclaration.model_validate({"listen": f"127.0.0.1:{port}", **declared})
    settings = AgentSettings("shop", "oplog", NOWHERE, section, tokens, streams is None)
    producer = ScriptedProducer(acknowledges=True)
    loop, ready = uvloop.new_event_loop(), threading.Event()
    process = AgentProcess(settings, whole_topic(), streams, producer.reporting)
    agent = RunningAgent(port, process, producer, loop)

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(process.run(lambda address: ready.set()))
        except BaseException as error:
            agent.failure.append(error)
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=run, name="agent")
    thread.start()
    assert ready.wait(60)
    try:
        yield agent
    finally:
        if not loop.is_closed():
            agent.stop()
        thread.join(60)
        assert not thread.is_alive()
