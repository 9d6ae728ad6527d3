"""The hub: one thread that follows the topic for all clients of an agent, and the ring that they follow.

The thread hands over each batch by one call into the event loop. Nothing else of it is touched from there.
"""

import asyncio
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress

import structlog

from tidemark.errors import TidemarkError
from tidemark.kafka.errors import KafkaFailure, OffsetGone, UnknownTopic
from tidemark.oplog.agent.streams.hub.hub_reader import FollowedTopic, HubBatch, HubReader
from tidemark.oplog.agent.streams.settings import StreamSettings
from tidemark.oplog.model.follower import Chunks
from tidemark.oplog.model.ring import Ring

events = structlog.get_logger()

RECONNECT_AFTER = 1.0


class Hub:
    """One life of the hub, for one topic under one topic id. Belongs to the event loop.

    Attributes:
        topic: The topic.
        ring: What the hub keeps.
        chunks: The bytes that clients share.
        latest: The last batch; None before the first.
        ended: Done when the life has ended, with the reason.
        live: Done when the hub has reached the end of the topic, as it was in the beginning.
    """

    def __init__(
        self,
        settings: StreamSettings,
        reader: HubReader,
        topic: FollowedTopic,
        arrived: Callable[[], None],
    ) -> None:
        """``arrived`` is called on the loop after every batch."""
        self.topic, self.ring = topic, Ring(topic.starts, settings.ring_events, settings.ring_bytes)
        self.chunks = Chunks()
        self.latest: HubBatch | None = None
        self._reader, self._arrived = reader, arrived
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[TidemarkError | None] = self._loop.create_future()
        self.live: asyncio.Future[None] = self._loop.create_future()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="oplog hub", daemon=True)
        if topic.starts == topic.ends:
            self.live.set_result(None)

    @property
    def is_live(self) -> bool:
        """Whether clients may join."""
        return self.live.done() and not self.ended.done()

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    async def stop(self) -> None:
        """End the thread, and wait for it."""
        self._stopping.set()
        if self._thread.is_alive():
            await self.ended

    # In the thread

    def _run(self) -> None:
        reason: TidemarkError | None = None
        try:
            while not self._stopping.is_set():
                try:
                    batch = self._reader.read()
                    if batch is not None:
                        self._call(self._take, batch)
                except (OffsetGone, UnknownTopic):
                    raise
                except KafkaFailure as error:
                    events.warning("topic not read", reason=error.reason)
                    self._reconnect()
        except TidemarkError as error:
            reason = error
        except Exception as error:  # a defect: the streams end with it, and the next life begins
            events.error("hub failed", error=f"{type(error).__name__}: {error}")
            traceback.print_exception(error)
            reason = TidemarkError(f"The hub has failed ({type(error).__name__}: {error}).")
        finally:
            with suppress(TidemarkError):
                self._reader.close()
            self._call(self._end, reason)

    def _reconnect(self) -> None:
        while not self._stopping.wait(RECONNECT_AFTER):
            try:
                self._reader.reconnect()
            except UnknownTopic:
                raise
            except KafkaFailure as error:
                events.warning("topic not read", reason=error.reason)
            else:
                return

    def _call(self, what: Callable[..., None], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: the process ends
            self._loop.call_soon_threadsafe(what, *args)

    # On the loop

    def _take(self, batch: HubBatch) -> None:
        self.latest = batch
        self.ring.append(batch.events, batch.vector)
        self.chunks.forget()
        if batch.is_live and not self.live.done():
            self.live.set_result(None)
        self._arrived()

    def _end(self, reason: TidemarkError | None) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)
