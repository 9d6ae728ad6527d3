"""Interfaces of the tables that are written without compare-and-set: hints, dead letters and history.

Writes are idempotent. A hint cannot be removed alone; only whole buckets are deleted.
"""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Protocol

from tidemark.work.model.entry import DeadEntry, Hint, KeptLetter, Run, Seen
from tidemark.work.store.registry import Lane

Place = tuple[int, str]
"""A hint's position in its lane: its due time and its id."""
BEGINNING: Place = (0, "")
HINT_LIFE = 30 * 86_400_000
"""Milliseconds after its due time for which a hint is kept if its bucket is never disposed of."""


class Due(Protocol):
    """The hints of one journal."""

    def put(self, *hints: Hint) -> None:
        """Writes hints; they are durable when this returns."""

    def priorities(self, bucket: str, shard: int) -> Sequence[int]:
        """The priorities that a bucket has hints of, ascending."""

    def page(self, lane: Lane, after: Place, until: int, limit: int) -> Sequence[Hint]:
        """Up to ``limit`` hints after a place that are due at ``until`` or before, in order."""

    def holds(self, hint: Hint) -> bool:
        """Whether a reader of the hint's lane finds it."""

    def dispose(self, bucket: str, shards: Iterable[int], now: int) -> None:
        """Deletes the bucket's hints that were written before ``now``."""


class Archive(Protocol):
    """The dead letters and the history of one journal."""

    def bury(self, letter: DeadEntry) -> None:
        """Stores a dead letter."""

    def letters(self, days: Iterable[str]) -> Iterable[KeptLetter]:
        """The dead letters of these days, each once, without redriven ones.

        In the order of the days, newest first. Of a letter that was written on two days the newest counts.
        """

    def dig_up(self, letter: DeadEntry, now: int) -> None:
        """Marks a dead letter as redriven."""

    def see(self, letter: DeadEntry, seen: Seen) -> None:
        """Marks a dead letter as seen by an operator."""

    def record(self, run: Run) -> None:
        """Stores an ended claim."""

    def runs(self, days: Iterable[str]) -> Iterable[Run]:
        """The claims that ended on these days, each once; in the order of the days, newest first."""


def place_of(hint: Hint) -> Place:
    """The hint's position in its lane."""
    return (hint.due_at, hint.id)


class MemoryDue:
    """``Due`` in memory, for tests."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lanes: dict[Lane, dict[Place, Hint]] = {}

    def put(self, *hints: Hint) -> None:
        """See ``Due.put``."""
        with self._lock:
            for hint in hints:
                self._lanes.setdefault((hint.bucket, hint.shard, hint.priority), {})[place_of(hint)] = hint

    def priorities(self, bucket: str, shard: int) -> Sequence[int]:
        """See ``Due.priorities``."""
        with self._lock:
            return sorted(p for b, s, p in self._lanes if (b, s) == (bucket, shard))

    def page(self, lane: Lane, after: Place, until: int, limit: int) -> Sequence[Hint]:
        """See ``Due.page``."""
        with self._lock:
            hints = self._lanes.get(lane, {})
            places = sorted(place for place in hints if after < place and place[0] <= until)
            return [hints[place] for place in places[:limit]]

    def holds(self, hint: Hint) -> bool:
        """See ``Due.holds``."""
        with self._lock:
            return place_of(hint) in self._lanes.get((hint.bucket, hint.shard, hint.priority), {})

    def dispose(self, bucket: str, shards: Iterable[int], now: int) -> None:
        """See ``Due.dispose``."""
        gone = set(shards)
        with self._lock:
            self._lanes = {
                lane: hints for lane, hints in self._lanes.items() if lane[0] != bucket or lane[1] not in gone
            }
