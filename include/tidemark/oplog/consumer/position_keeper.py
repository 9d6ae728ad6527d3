"""Saves a consumer's position: at most once a second while it changes, at once for a reset, and at the end.

A thread does it, so that ``done`` never waits for a disk, and positions become durable while the consumer
waits for its stream. It holds no reference to the consumer, which may be dropped without being closed.
"""

import threading
from contextlib import suppress

from tidemark.oplog.consumer.errors import PositionNotSaved
from tidemark.oplog.consumer.in_flight import InFlight, Position
from tidemark.oplog.consumer.state_file import StateFile

EVERY = 1.0
"""Seconds between two saves."""


class PositionKeeper:
    """Keeps a state file at a consumer's position. Without a file it does nothing."""

    def __init__(self, in_flight: InFlight, file: StateFile | None, saved: Position | None) -> None:
        """Starts nothing yet.

        Args:
            in_flight: What the position follows from.
            file: Where it is saved.
            saved: What the file has.
        """
        self._in_flight = in_flight
        self._file = file
        self._saved = saved
        self._saving = threading.Lock()
        self._closing = threading.Event()
        self._has_failed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts to save once a second. Does nothing when called again."""
        if self._file is not None and self._thread is None and not self._closing.is_set():
            self._thread = threading.Thread(target=self._run, name="oplog-position", daemon=True)
            self._thread.start()

    @property
    def has_failed(self) -> bool:
        """Whether the newest save has failed: ``save_now`` then says how, or repairs it."""
        return self._has_failed

    def save_now(self) -> None:
        """Makes the position durable before it returns. Raises ``PositionNotSaved``."""
        with self._saving:
            position = self._in_flight.position
            if self._file is None or position.event_id is None or position == self._saved:
                return
            self._has_failed = True
            self._file.save(position)
            self._saved, self._has_failed = position, False

    def close(self) -> None:
        """Saves for the last time and lets the file go. Does nothing when called again."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.save_now()
        finally:
            with self._saving:
                file, self._file = self._file, None
            if file is not None:
                file.close()

    def _run(self) -> None:
        while not self._closing.wait(EVERY):
            with suppress(PositionNotSaved):  # the next iteration raises it, unless it was repaired before
                self.save_now()
