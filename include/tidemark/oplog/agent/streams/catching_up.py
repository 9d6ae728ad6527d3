"""What a client is sent before it follows the hub: rows of the collection, and the operations it has missed.

Everything is read in threads, one chunk at a time, and sent before the next one is read: memory holds one
chunk a client. A client keeps a slot while it is quick; a slow one reads on later, from its own position.
"""

import asyncio
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

from tidemark.kafka.errors import OffsetGone
from tidemark.oplog.agent.streams.client_writer import ClientWriter
from tidemark.oplog.agent.streams.errors import ClientBehind, Unjudged
from tidemark.oplog.agent.streams.hub.hub_reader import looking_back
from tidemark.oplog.agent.streams.opening import Replication
from tidemark.oplog.agent.streams.shared_sources import Slots, Sources, Threads
from tidemark.oplog.agent.streams.sources.reading import ReadChunk, RecordReading, RowReading
from tidemark.oplog.agent.streams.sources.topic_door import TopicRanges
from tidemark.oplog.model.follower import StreamShape
from tidemark.oplog.model.joining import WantedRange, missing_before
from tidemark.oplog.model.judged_operations import JudgedOperations
from tidemark.oplog.model.resume_plan import Source
from tidemark.oplog.model.vector import MovingVector, Vector

QUICK = 1.0
"""Seconds of one write after which a client does not keep its slot."""
TURN = 2.0
"""Seconds after which a client leaves its slot to one that waits."""
MOST_FAILURES = 3
"""Reads in a row that find nothing where something was said to be."""


class Reading(Protocol):
    """Gives one chunk after the other; see ``reading``."""

    def next(self) -> ReadChunk:
        """The next chunk."""


class CatchingUp:
    """What one client is sent before it follows. Belongs to the task of its request."""

    def __init__(self, sources: Sources, shape: StreamShape, writer: ClientWriter) -> None:
        self._sources, self._shape, self._writer = sources, shape, writer

    async def send_rows(self, rows: Replication) -> None:
        """Send rows, from where they begin to their end."""
        sources = self._sources
        store, _ = sources.require_store()
        slots, token, is_over = sources.limits.scans, rows.begin.token, False
        while not is_over:
            begin = replace(rows.begin, token=token)
            reading = RowReading(store, begin, rows.bounds, self._shape, sources.data)
            slot = slots.slot()
            try:
                await self._writer.during(slot.acquire())
                is_over, pending = await self._turn(reading, slots, sources.store_threads)
            finally:
                slot.release()
            token = reading.token
            await self._finish(pending)

    async def send_missed(self, missed_after: Vector) -> Vector:
        """Send what a client has missed, until the ring has what follows; what the client has then.

        Raises ``ClientBehind`` where some of it is gone meanwhile.
        """
        sources, vector, failures = self._sources, MovingVector(missed_after), 0
        look_back = looking_back(sources.door, sources.log)
        judge = JudgedOperations(sources.hub.topic.topic_id, look_back)
        for number, first in enumerate(missed_after):
            judge.begin(number, first)
        while missing := missing_before(sources.hub.ring, before := vector.offsets):
            plan = await self._writer.during(sources.plan(before))
            if not plan.is_exact or failures == MOST_FAILURES:
                raise ClientBehind
            logged = {number: before[number] for number in plan.of(Source.LOG)}
            try:
                if logged:
                    await self._from_log(logged, judge, vector)
                else:
                    await self._from_kafka(missing, judge, vector)
            except OffsetGone:
                sources.forget_offsets()
            except Unjudged as error:
                sources.block(error.partition, error.offset)
            failures = 0 if vector.offsets != before else failures + 1
        return vector.offsets

    async def _from_kafka(
        self, missing: tuple[WantedRange, ...], judge: JudgedOperations, vector: MovingVector
    ) -> None:
        sources, taken = self._sources, list[TopicRanges]()
        slots, threads = sources.limits.readers, sources.threads
        slot, is_well = slots.slot(), False
        try:
            await self._writer.during(slot.acquire())
            await threads.run(lambda: taken.append(sources.idle.take()))
            ends = {one.partition: one.end for one in missing}
            records = taken[0].records(missing)
            reading = RecordReading(records, ends, judge, vector, self._shape, sources.data)
            _, pending = await self._turn(reading, slots, threads)
            is_well = True
        finally:
            await threads.run(lambda: sources.idle.give_back(taken, is_well))
            slot.release()
        await self._finish(pending)

    async def _from_log(self, starts: dict[int, int], judge: JudgedOperations, vector: MovingVector) -> None:
        sources, held = self._sources, ExitStack()
        slots, threads, log = sources.limits.log_readers, sources.store_threads, sources.log
        assert log is not None
        slot = slots.slot()
        try:
            await self._writer.during(slot.acquire())
            records, ends = await threads.run(lambda: held.enter_context(log.records(starts)))
            reading = RecordReading(records, ends, judge, vector, self._shape, sources.data)
            _, pending = await self._turn(reading, slots, threads)
        finally:
            await threads.run(held.close)
            slot.release()
        await self._finish(pending)

    async def _turn(
        self, reading: Reading, slots: Slots, threads: Threads
    ) -> tuple[bool, "asyncio.Task[None] | None"]:
        """Send chunks for as long as the client is quick and does not keep others waiting.

        Returns whether the reading is over, and a write that is not done yet.
        """
        writer, began = self._writer, time.monotonic()
        while True:
            chunk = await writer.during(threads.run(reading.next))
            if chunk.data:
                pending = asyncio.create_task(writer.write(chunk.data, chunk.count))
                try:
                    done, _ = await asyncio.wait([pending], timeout=QUICK)
                except asyncio.CancelledError:
                    pending.cancel()
                    raise
                if not done:
                    return chunk.is_last, pending
                pending.result()
            await writer.told(chunk.position)
            if chunk.is_last or (slots.waiting and time.monotonic() - began > TURN):
                return chunk.is_last, None

    async def _finish(self, pending: "asyncio.Task[None] | None") -> None:
        """Wait for a slow client to take what was written."""
        if pending is None:
            return
        try:
            await pending
        finally:
            pending.cancel()
        self._writer.refuse_stopped()
