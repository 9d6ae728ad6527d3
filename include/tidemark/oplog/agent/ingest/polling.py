"""Polls the queue from the event loop, often while acknowledgements arrive and rarely while Kafka is away.

Acknowledgements are taken in the loop's own thread: a thread of their own would compete with it for every
callback. An idle queue has no timer.
"""

import asyncio

from tidemark.oplog.agent.ingest.queue import IngestQueue

SHORTEST = 0.002
LONGEST = 0.05


class QueuePolling:
    """The timer of one queue."""

    def __init__(self, queue: IngestQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._queue, self._loop = queue, loop
        self._timer: asyncio.TimerHandle | None = None
        self._interval = SHORTEST
        queue.wake = self.wake

    def wake(self) -> None:
        """The queue has become busy."""
        if self._timer is None:
            self._interval = SHORTEST
            self._timer = self._loop.call_later(SHORTEST, self._poll)

    def stop(self) -> None:
        """Poll no more."""
        self._queue.wake = lambda: None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _poll(self) -> None:
        before = self._queue.waiting + self._queue.in_flight
        self._timer = None
        self._queue.poll()
        if self._queue.is_busy:
            moved = self._queue.waiting + self._queue.in_flight < before
            self._interval = SHORTEST if moved else min(self._interval * 1.5, LONGEST)
            self._timer = self._loop.call_later(self._interval, self._poll)

    async def drain(self, seconds: float) -> None:
        """Wait until the queue is empty, or the time is over."""
        deadline = self._loop.time() + seconds
        while self._queue.is_busy and self._loop.time() < deadline:
            await asyncio.sleep(SHORTEST * 5)
