"""What the streams of one agent are read from, shared by its clients during one life of the hub.

Blocking work runs in the agent's own threads, bounded by slots: so many readers of Kafka, of the commit log
and of the collection at the same time. What asks Cassandra has threads of its own: while Cassandra is silent,
they are all taken, and clients that need Kafka only are served by the others. Belongs to the event loop.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from tidemark.oplog.agent.streams.errors import NoCollection
from tidemark.oplog.agent.streams.hub.hub import Hub
from tidemark.oplog.agent.streams.settings import StreamSettings
from tidemark.oplog.agent.streams.sources.logged_topic import LoggedTopic
from tidemark.oplog.agent.streams.sources.object_store import ObjectStore
from tidemark.oplog.agent.streams.sources.topic_door import TopicDoor, TopicRanges
from tidemark.oplog.model.resume_plan import (
    KafkaOffsets,
    LoggedOffsets,
    ResumePlan,
    needs_log,
    plan_resume,
)
from tidemark.oplog.model.server_sent_events import OperationData
from tidemark.oplog.model.vector import Vector, covers

Answer = TypeVar("Answer")

PATIENCE = 10.0
"""Seconds that a client waits for an answer of Cassandra before it is told to come back later."""
OFFSETS_AGE = 1.0
"""Seconds for which the first and next offsets of Kafka's partitions count as known."""


class Slots:
    """So many at the same time; the others wait in the order in which they came."""

    def __init__(self, most: int) -> None:
        self._free, self._most = asyncio.Semaphore(most), most
        self.busy = self.waiting = 0

    def slot(self) -> "Slot":
        """One of them, not acquired yet."""
        return Slot(self)

    async def acquire(self) -> None:
        """Wait for one."""
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.busy += 1

    def release(self) -> None:
        """Give one back."""
        self.busy -= 1
        self._free.release()


class Slot:
    """One slot of a client. It may be cancelled at any moment, and knows whether it is held."""

    def __init__(self, slots: Slots) -> None:
        self._slots, self._is_held = slots, False

    async def acquire(self) -> None:
        """Wait for it."""
        await self._slots.acquire()
        self._is_held = True

    def release(self) -> None:
        """Give it back where it is held."""
        if self._is_held:
            self._is_held = False
            self._slots.release()


class Threads:
    """Runs blocking work."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """The answer of ``work``. A cancelled caller waits for its end: nothing is used by two threads."""
        running = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    async def ask(
        self, work: Callable[[], Answer], unwanted: Callable[[Answer], object] = lambda _: None
    ) -> Answer:
        """The answer of ``work``, waited for with patience and not longer. Raises ``NoCollection``.

        Args:
            work: A question to Cassandra. It goes on where the caller does not wait for it any more.
            unwanted: Gives up an answer that came too late. Blocks.
        """
        running = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            done, _ = await asyncio.wait([running], timeout=PATIENCE)
        except asyncio.CancelledError:
            self._give_up(running, unwanted)
            raise
        if not done:
            self._give_up(running, unwanted)
            raise NoCollection(f"Cassandra has not answered within {PATIENCE:g} s")
        return running.result()

    def _give_up(self, running: "asyncio.Future[Answer]", unwanted: Callable[[Answer], object]) -> None:
        def came(late: "asyncio.Future[Answer]") -> None:
            if not late.cancelled() and late.exception() is None:
                with suppress(RuntimeError):  # the agent has stopped, and what it held ends with its term
                    self._executor.submit(unwanted, late.result())

        running.add_done_callback(came)


@dataclass
class Limits:
    """The slots of one agent."""

    readers: Slots
    log_readers: Slots
    scans: Slots

    @classmethod
    def of(cls, settings: StreamSettings) -> "Limits":
        """Those that the settings say."""
        return cls(Slots(settings.readers), Slots(settings.log_readers), Slots(settings.scans))


class IdleRanges:
    """Readers of ranges that are connected and not in use."""

    def __init__(self, door: TopicDoor, most: int) -> None:
        self._door, self._most = door, most
        self._idle: list[TopicRanges] = []
        self._is_closed = False

    def take(self) -> TopicRanges:
        """One for the caller alone. Blocks."""
        return self._idle.pop() if self._idle else self._door.ranges()

    def give_back(self, taken: Sequence[TopicRanges], is_well: bool) -> None:
        """They are not needed any more. One that has failed is not used again. Blocks."""
        for ranges in taken:
            if is_well and not self._is_closed and len(self._idle) < self._most:
                ranges.rest()
                self._idle.append(ranges)
            else:
                ranges.close()

    def close(self) -> None:
        """Disconnect those that are idle. Blocks."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()


@dataclass
class Sources:
    """See the module.

    Attributes:
        settings: The settings.
        hub: The hub, with the topic as it has found it.
        door: The topic.
        log: The topic's log; None where the agent has none.
        store: The collection; None where the agent has none.
        threads: Where blocking work runs that asks Kafka.
        store_threads: Where blocking work runs that asks Cassandra.
        limits: The slots.
        idle: Readers of ranges.
        data: The encoding of operations.
    """

    settings: StreamSettings
    hub: Hub
    door: TopicDoor
    log: LoggedTopic | None
    store: ObjectStore | None
    threads: Threads
    store_threads: Threads
    limits: Limits
    idle: IdleRanges
    data: OperationData
    _offsets: Sequence[KafkaOffsets] = ()
    _asked_at: float = float("-inf")
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _blocked: dict[int, int] = field(default_factory=dict)
    """By partition: the offset of the last correction that cannot be judged any more."""

    def require_store(self) -> tuple[ObjectStore, LoggedTopic]:
        """The collection and the log that its times are of. Raises ``NoCollection``."""
        if self.store is None or self.log is None:
            raise NoCollection("this agent has no collection of objects")
        return self.store, self.log

    def block(self, partition: int, offset: int) -> None:
        """A correction cannot be judged: no reader gets past it, and the collection knows what is true."""
        self._blocked[partition] = max(offset, self._blocked.get(partition, -1))

    def forget_offsets(self) -> None:
        """What was known of Kafka's offsets has turned out to be old."""
        self._asked_at = float("-inf")

    async def plan(self, vector: Vector) -> ResumePlan:
        """Where what a client has missed comes from."""
        ring = self.hub.ring
        if ring.has_after(vector) and covers(ring.vector, vector):
            return plan_resume(vector, [KafkaOffsets(0, end) for end in ring.vector], {})
        offsets = await self.offsets()
        if any(at > one.end for at, one in zip(vector, offsets, strict=True)):
            self.forget_offsets()
            offsets = await self.offsets()
        logged: dict[int, LoggedOffsets] = {}
        asked = {number: vector[number] for number in needs_log(vector, offsets)}
        asked = {number: at for number, at in asked.items() if at > self._blocked.get(number, -1)}
        if asked and self.log is not None:
            log = self.log
            logged = dict(await self.store_threads.ask(lambda: log.offsets(asked)))
        return plan_resume(vector, offsets, logged)

    async def offsets(self) -> Sequence[KafkaOffsets]:
        """What Kafka has of each partition that may be read, at most a second old."""
        async with self._asking:
            if time.monotonic() - self._asked_at > OFFSETS_AGE:
                asked_at = time.monotonic()
                self._offsets = await self.threads.run(self._ask)
                self._asked_at = asked_at
        blocked = self._blocked
        return [
            KafkaOffsets(max(one.first, blocked[number] + 1), one.end) if number in blocked else one
            for number, one in enumerate(self._offsets)
        ]

    def _ask(self) -> Sequence[KafkaOffsets]:
        ranges, is_well = self.idle.take(), False
        try:
            found = ranges.offsets(self.hub.topic.partitions)
            is_well = True
        finally:
            self.idle.give_back([ranges], is_well)
        return found
