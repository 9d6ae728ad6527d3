"""What was handed out and is not done, in the order of the stream, and the position that follows from it.

The position is the id before the oldest item that is not done: a restart there hands out again everything
that is not done, and what came after it. It never passes an item because a later one was done first.
Thread-safe.
"""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

_NUMBERS = itertools.count(1)
"""Of all consumers of the process, so that an item of another one is never taken for one of this."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a consumer continues after a restart.

    Attributes:
        event_id: The id to send; None: from now.
        reset: A replication has begun here and its ``reset`` is not done: it is handed out again first.
    """

    event_id: str | None
    reset: bool = False


class InFlight:
    """Items that were handed out and are not done."""

    def __init__(self, start: Position, most: int) -> None:
        """Begins with nothing in flight.

        Args:
            start: Where the consumer begins.
            most: How many items may be in flight.
        """
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._most = most
        self._waiting: OrderedDict[int, Position] = OrderedDict()  # where to continue while it is the oldest
        self._done: set[int] = set()
        self._last = start
        self.told: Callable[[], None] = lambda: None
        """Called, in the thread of ``done``, when there is room again."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def received(self) -> str | None:
        """The id of the newest item: a new connection of this process continues there."""
        return self._last.event_id

    @property
    def position(self) -> Position:
        """Where a restart has to continue."""
        with self._lock:
            return next(iter(self._waiting.values()), self._last)

    @property
    def has_room(self) -> bool:
        """Whether one more item may be handed out."""
        return len(self._waiting) < self._most

    def passed(self, event_id: str) -> None:
        """The stream is at this id, and there is nothing to be done for it."""
        with self._lock:
            self._last = Position(event_id)

    def hand_out(self, event_id: str | None) -> int:
        """One more item, behind all others; without an id it moves no position. Returns its number."""
        with self._lock:
            number = next(_NUMBERS)
            # In this order: an exception of a signal handler in between leaves the position behind.
            self._waiting[number] = self._last
            if event_id is not None:
                self._last = Position(event_id)
            return number

    def hand_out_reset(self, event_id: str) -> int:
        """A reset: what is in flight no longer counts. Returns its number."""
        with self._lock:
            number = next(_NUMBERS)
            self._waiting = OrderedDict({number: Position(event_id, reset=True)})
            self._done = set()
            self._last = Position(event_id)
            self._room.notify_all()
            return number

    def done(self, number: int) -> None:
        """An item is done. Of one that is not in flight (done before, or before a reset) it says nothing."""
        with self._lock:
            if number not in self._waiting:
                return
            self._done.add(number)
            while self._waiting and (oldest := next(iter(self._waiting))) in self._done:
                del self._waiting[oldest]
                self._done.discard(oldest)
            self._room.notify_all()
        self.told()

    def wake(self) -> None:
        """Ends a ``wait_for_change`` at once."""
        with self._lock:
            self._room.notify_all()
        self.told()

    def wait_for_change(self, seconds: float) -> None:
        """Blocks until an item is done, at most so long."""
        with self._lock:
            if not self.has_room:
                self._room.wait(seconds)
