"""The topic of an agent: how many partitions it has, by the pipeline's record, and whether it still has them.

An object belongs to the partition that its key has among the recorded number of partitions. More partitions
than were recorded change nothing for the agent: it goes on with the recorded ones, so that no object moves.
"""

import asyncio
from collections.abc import Callable
from uuid import UUID

import structlog

from tidemark.errors import TidemarkError
from tidemark.kafka.errors import KafkaFailure, UnknownTopic
from tidemark.kafka.partitioning import partition_of
from tidemark.kafka.topics import TopicDescription
from tidemark.oplog.agent.errors import TopicUnusable

WATCHED_EVERY = 10.0

events = structlog.get_logger()


class AgentTopic:
    """The topic as an agent uses it. ``describe`` and ``recorded`` are asked in threads."""

    def __init__(
        self,
        pipeline: str,
        topic: str,
        describe: Callable[[], TopicDescription],
        recorded: Callable[[], int | None],
    ) -> None:
        """``recorded``: the number of partitions that the pipeline has recorded; None where it has none. It
        may raise ``TidemarkError`` where the record cannot be read."""
        self.pipeline, self.topic = pipeline, topic
        self.partitions = 0
        self.id: UUID | None = None
        self.warning: str | None = None
        """How the topic differs from the record, where operations are accepted all the same."""
        self.problem: str | None = None
        """Why no operation is accepted."""
        self._describe, self._recorded = describe, recorded
        self._is_unread = False

    def partition_of(self, key: bytes) -> int:
        """The partition of a key, as Java's clients compute it."""
        return partition_of(key, self.partitions)

    def look(self) -> None:
        """Ask Kafka and the record. Raises ``KafkaFailure`` where the topic cannot be described."""
        found = self._describe()
        try:
            recorded = self._recorded()
        except TidemarkError as error:  # without Cassandra, what is known goes on
            recorded = self.partitions or None
            if not self._is_unread:
                events.warning("record of partitions not read", pipeline=self.pipeline, problem=str(error))
            self._is_unread = True
        else:
            self._is_unread = False
        self._judge(found, recorded)

    def check(self) -> None:
        """Raise ``TopicUnusable``, or ``KafkaFailure``, where operations cannot be sent."""
        self.look()
        if self.problem:
            raise TopicUnusable(self.pipeline, self.topic, self.problem)

    def _judge(self, found: TopicDescription, recorded: int | None) -> None:
        there = len(found.partitions)
        partitions = recorded or self.partitions or there
        if self.partitions and partitions != self.partitions:
            events.warning("partitions recorded anew", before=self.partitions, now=partitions)
        self.partitions = partitions
        self.problem = (
            f"has {there} partitions, but {partitions} were recorded" if there < partitions else None
        )
        warning = f"has {there} partitions; {partitions} are used" if there > partitions else None
        if self.id is not None and found.id != self.id:
            warning = "was deleted and made again since the agent was started"
        self.id = self.id or found.id
        if warning and warning != self.warning:
            events.warning("topic has changed", pipeline=self.pipeline, topic=self.topic, problem=warning)
        self.warning = warning

    async def watch(self) -> None:
        """Look from time to time, until this is cancelled."""
        while True:
            await asyncio.sleep(WATCHED_EVERY)
            try:
                await asyncio.to_thread(self.look)
            except UnknownTopic:
                self.problem = "does not exist"
            except KafkaFailure as failure:  # the queue tells senders that Kafka is away
                events.warning("topic not described", topic=self.topic, reason=failure.reason)
