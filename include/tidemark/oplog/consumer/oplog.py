"""``tidemark.OpLog``: follows an agent's stream of operations over reconnects and restarts."""

import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import Self

import httpx

from tidemark.oplog.consumer.connection import (
    CLOSED,
    EXCERPT,
    EXCERPT_CHUNKS,
    INTERRUPTED,
    broken,
    is_stream,
    own_client,
    shut_down,
)
from tidemark.oplog.consumer.errors import NothingDone, OpLogConsumerError
from tidemark.oplog.consumer.items import OpLogItem, OpLogReset
from tidemark.oplog.consumer.opened import STALLED_AFTER, open_consumer


class OpLog:
    """Operations of an agent's stream, in order, each at least once::

        with OpLog("http://127.0.0.1:8042", state_file="videos.position", types=["video"]) as oplog:
            for op in oplog:
                ...
                oplog.done(op)

    The loop has no end: connections that break are made again, and continue without a gap. ``stop`` ends it.
    Several threads may iterate over one object, and call ``done`` in any order; the order of the operations
    of one object is then theirs to keep.
    """

    def __init__(
        self,
        url: str,
        *,
        state_file: str | os.PathLike[str] | None = None,
        types: str | Iterable[str] | None = None,
        parents: str | Iterable[str] | None = None,
        token: str | None = None,
        since: datetime | int | None = None,
        last_event_id: str | None = None,
        allow_replication: bool = True,
        max_in_flight: int = 1_000,
        silence: float = 90.0,
        attempts: int | None = None,
        proxy: str | None = None,
        client: httpx.Client | None = None,
    ) -> None:
        """Checks the arguments and locks the state file; the first iteration connects.

        Args:
            url: The agent's address.
            state_file: Keeps the position. Where it is missing, everything there is comes first.
            types: Only operations of these types; a list, or a text with commas.
            parents: Only operations below one of these parents, and those without parents.
            token: What the agent asks for.
            since: Without a position: first what has changed since this time, in ms or with a time zone.
            last_event_id: Where to begin, for a consumer that keeps its position itself; ``"0"``: with
                everything there is. Without it, ``since`` and a state file, the stream begins now.
            allow_replication: Whether everything may be sent again where nothing else closes a gap; the first
                time as well. Without it, such a gap is the error ``ReplicationNeeded``.
            max_in_flight: How many items may be handed out and not done.
            silence: Seconds without a byte after which a connection is dead; more than the agent's heartbeat.
            attempts: How many attempts to connect may fail in a row; None for any number.
            proxy: The address of an HTTP proxy; by default what the environment says.
            client: An HTTP client of the caller, for everything else; it is not closed.

        Raises:
            BadOpLogOption: An argument is not valid.
            StateFileInUse: Another consumer uses the state file.
            StateFileEmpty: The state file has no content.
            StateFileDamaged: It has something else than a position.
            StateFileUnusable: It cannot be opened.
        """
        self._owns_client = client is None
        self._client = client or httpx.Client(**own_client(proxy))
        opened = open_consumer(
            url,
            state_file=state_file,
            types=types,
            parents=parents,
            token=token,
            since=since,
            last_event_id=last_event_id,
            allow_replication=allow_replication,
            max_in_flight=max_in_flight,
            silence=silence,
            attempts=attempts,
        )
        self._following = opened.following
        self._in_flight = opened.in_flight
        self._keeper = opened.keeper
        self._timeout = opened.timeout
        self._turn = threading.Lock()
        self._stopping = threading.Event()
        self._response: httpx.Response | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._unsaved_reset: OpLogReset | None = None
        self._at_the_end = weakref.finalize(self, self._keeper.close)  # also at the interpreter's exit

    @property
    def position(self) -> str | None:
        """The id after which a restart has to continue, for callers that keep it themselves; None: nowhere
        yet.
        """
        return self._in_flight.position.event_id

    def done(self, item: OpLogItem) -> None:
        """An item has been handled and need not be handed out again. Idempotent; never waits."""
        self._in_flight.done(item.number)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> OpLogItem:
        """The next item; waits for it.

        Raises:
            StreamDenied: The agent does not accept the token.
            StreamRefused: It refuses the request for another reason.
            StreamBroken: It sends something else than operations.
            AgentUnreachable: More attempts have failed than allowed.
            ReplicationNeeded: There is a gap, and full replications are not allowed.
            NothingDone: Too many items are in flight.
            PositionNotSaved: The state file cannot be written.
        """
        with self._turn:
            self._keeper.start()
            while not self._stopping.is_set():
                if self._keeper.has_failed:
                    self._keeper.save_now()
                if self._unsaved_reset is None:
                    self._wait_for_room()
                    item = self._next_item()
                    if not isinstance(item, OpLogReset):
                        if item is not None:
                            return item
                        self._read()
                        continue
                    self._unsaved_reset = item
                # The caller will empty its copy: from then on, no restart may continue at an older position.
                self._keeper.save_now()
                reset, self._unsaved_reset = self._unsaved_reset, None
                return reset
            raise StopIteration

    def stop(self) -> None:
        """Ends the iteration, from any thread; at once while the stream is being read. A signal handler
        raises an exception instead, for example ``SystemExit``.
        """
        self._stopping.set()
        self._in_flight.wake()
        response = self._response
        if response is not None:
            shut_down(response)

    def close(self) -> None:
        """Saves the position and closes the connection. Raises ``PositionNotSaved``."""
        self.stop()
        with self._turn:
            self._disconnect()
            if self._owns_client:
                self._client.close()
        self._at_the_end.detach()
        self._keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _wait_for_room(self) -> None:
        stalled_at = time.monotonic() + STALLED_AFTER
        while not self._in_flight.has_room and not self._stopping.is_set():
            # In parts: ``stop`` may come just before the wait begins.
            self._in_flight.wait_for_change(min(1.0, stalled_at - time.monotonic()))
            if time.monotonic() >= stalled_at and not self._in_flight.has_room:
                raise NothingDone(len(self._in_flight), STALLED_AFTER)

    def _next_item(self) -> OpLogItem | None:
        try:
            return self._following.next_item()
        except OpLogConsumerError:
            raise
        except BaseException:  # of a signal handler, between two steps: continue from the newest item
            self._following.lost(INTERRUPTED)
            raise

    def _read(self) -> None:
        """One step towards the next item: a connection, or a chunk of the stream."""
        following = self._following
        if not following.is_connected:
            self._disconnect()
            self._connect()
            return
        ended: str | None = None
        try:
            chunk = next(self._chunks, None)
            if chunk is None:
                ended = CLOSED
            else:
                following.received(chunk)
        except httpx.TransportError as error:
            ended = broken(error, self._timeout)
        except BaseException:  # of a signal handler, in the middle of a chunk: the rest would be misread
            following.lost(INTERRUPTED)
            raise
        if ended is not None and not self._stopping.is_set():
            following.lost(ended)

    def _connect(self) -> None:
        following = self._following
        if self._stopping.wait(following.wait):
            return
        request = self._client.build_request(
            "GET", following.url, headers=following.connecting(), timeout=self._timeout
        )
        try:
            self._response = response = self._client.send(request, stream=True)
            self._chunks = response.iter_raw()
            excerpt = b"" if is_stream(response.status_code, response.headers) else _excerpt(self._chunks)
        except httpx.TransportError as error:
            following.lost(broken(error, self._timeout))
            return
        following.answered(response.status_code, response.headers, excerpt)

    def _disconnect(self) -> None:
        response, self._response, self._chunks = self._response, None, iter(())
        if response is not None:
            response.close()


def _excerpt(chunks: Iterator[bytes]) -> bytes:
    found = b""
    for chunk in islice(chunks, EXCERPT_CHUNKS):
        found += chunk
        if len(found) >= EXCERPT:
            break
    return found
