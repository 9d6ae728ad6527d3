"""The queue of due hints of one process, in the order of work. One thread at a time has a hint.

A lane (bucket, shard and priority) remembers how far it was read, and which hints are settled: no entry will
ever refer to them. A hint may become visible after later ones. So a lane is read again: often the last few
seconds, sometimes from its mark, the time before which all hints are settled. The mark stays ``settle``
behind the clock. A sweep finds hints that become visible even later; its mark then replaces that of this
process. One thread reads while the others take hints. The state is a cache: losing it costs a longer read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from threading import Lock

from tidemark.work.model.buckets import BucketState, begins
from tidemark.work.model.declaration import WorkDeclaration, milliseconds
from tidemark.work.model.due_times import order
from tidemark.work.model.entry import Hint
from tidemark.work.store.due import BEGINNING, Due, Place, place_of
from tidemark.work.store.registry import Lane, Registered

PAGE = 500
REFILL_EVERY = 200
"""Milliseconds between two reads for hints of higher priority, while hints are ready."""
LOOK_BACK_EVERY = 2_000
LOOK_BACK = 5_000
"""Milliseconds before its front that a lane is read again; slower writes are rare."""
LOOKS_UNTIL_ALL = 10
"""Repeated reads per full one. A full read starts at the lane's mark, and moves it."""
AGAIN_AFTER = 20
"""The shortest time, in ms, until a hint without an entry is checked again."""

NEVER_YET = -(10**18)
Order = tuple[int, int, int, str]


@dataclass(slots=True)
class _LaneState:
    mark: int = 0
    registered: int = 0
    """The sweeps' mark when it was last read."""
    front: Place = BEGINNING
    settled: set[str] = field(default_factory=set)
    ready: int = 0

    @property
    def beginning(self) -> Place:
        return (self.mark - 1, "\U0010ffff") if self.mark else BEGINNING

    def follow(self, registered: int) -> None:
        """Starts at the sweeps' mark; one below this lane's mark means that a sweep found a hint there."""
        if registered != self.registered:
            self.registered = registered
            if registered < self.mark or self.front == BEGINNING:
                self.mark, self.front = registered, BEGINNING


class Lanes:
    """The due hints of one journal in this process. Threads may share it."""

    def __init__(
        self,
        declared: WorkDeclaration,
        due: Due,
        refill_every: int = REFILL_EVERY,
        look_back_every: int = LOOK_BACK_EVERY,
        page: int = PAGE,
    ) -> None:
        self._declared, self._due, self._page = declared, due, page
        self._settle = milliseconds(declared.settle)
        self._refill_every, self._look_back_every = refill_every, look_back_every
        self._reading = Lock()
        """Held by the one thread that reads hints. A thread waits for it only where no hint is ready."""
        self._lock = Lock()
        """Held while this object's state changes, never during a read from Cassandra."""
        self._lanes: dict[Lane, _LaneState] = {}
        self._ready: list[tuple[Order, Hint]] = []
        self._waiting: set[str] = set()
        """Ids of the hints that are ready."""
        self._busy: set[str] = set()
        self._later: dict[str, tuple[int, Hint]] = {}
        """Hints to check again, by id, each with the time of the check in ms."""
        self._refilled = self._looked_back = NEVER_YET
        self._looks = 0

    def take(self, registered: Registered, now: int, below: int | None, passed: set[str]) -> Hint | None:
        """The next hint with a priority below ``below`` that is not in ``passed``; None without one."""
        if now - self._refilled >= self._refill_every and self._reading.acquire(blocking=False):
            try:
                self._refill(registered, now)
            finally:
                self._reading.release()
        elif not self._ready:
            # Wait for the thread that reads, and read only if it found nothing.
            with self._reading:
                if not self._ready:
                    self._refill(registered, now)
        return self._next(below, passed)

    def _next(self, below: int | None, passed: set[str]) -> Hint | None:
        with self._lock:
            seen: list[tuple[Order, Hint]] = []
            taken = None
            while self._ready and taken is None:
                if below is not None and self._ready[0][1].priority >= below:
                    break
                place, hint = heappop(self._ready)
                if hint.id in passed:
                    seen.append((place, hint))
                else:
                    taken = hint
            for one in seen:
                heappush(self._ready, one)
            if taken is not None:
                self._waiting.discard(taken.id)
                self._busy.add(taken.id)
                self._state_of(taken).ready -= 1
            return taken

    def settle(self, hint: Hint) -> None:
        """Records that no entry will ever refer to this hint."""
        with self._lock:
            self._busy.discard(hint.id)
            self._state_of(hint).settled.add(hint.id)

    def give_back(self, hint: Hint, now: int) -> None:
        """Checks the hint again when it is twice as old, because its entry may not be written yet."""
        with self._lock:
            self._busy.discard(hint.id)
            self._later[hint.id] = (now + max(now - hint.written, AGAIN_AFTER), hint)

    def put_back(self, hint: Hint) -> None:
        """Returns an unused hint to the queue, for the next pass."""
        with self._lock:
            self._busy.discard(hint.id)
            self._push([hint])

    def reread(self, registered: Registered, now: int) -> None:
        """Reads everything after the marks again, for hints that became visible late."""
        with self._reading:
            self._looks, self._looked_back = 0, NEVER_YET
            self._refill(registered, now)

    @property
    def is_busy(self) -> bool:
        """Whether a thread has taken hints and not returned them; other threads cannot take these."""
        return bool(self._busy)

    @property
    def next_again(self) -> int | None:
        """The earliest time, in ms, at which a hint without an entry is checked again; None without one."""
        with self._lock:
            return min((at for at, _ in self._later.values()), default=None)

    def marks(self) -> dict[Lane, int]:
        """The mark of every lane, in ms."""
        with self._lock:
            return {lane: state.mark for lane, state in self._lanes.items() if state.mark}

    def _refill(self, registered: Registered, now: int) -> None:
        with self._lock:
            for _, hint in [one for one in self._later.values() if one[0] <= now]:
                del self._later[hint.id]
                self._push([hint])
        states: dict[Lane, _LaneState] = {}
        for bucket in begun_buckets(registered, self._declared, now):
            for shard in range(self._declared.shards):
                for priority in self._due.priorities(bucket, shard):
                    lane = (bucket, shard, priority)
                    with self._lock:
                        state = self._state(lane)
                        state.follow(registered.marks.get(lane, 0))
                    self._read_on(lane, state, now)
                    states[lane] = state
        with self._lock:
            self._lanes = {lane: state for lane, state in self._lanes.items() if lane in states}
        self._refilled = now
        # Last, so that other threads have hints to take meanwhile.
        if now - self._looked_back >= self._look_back_every:
            for lane, state in states.items():
                self._look_back(lane, state, now)
            self._looked_back = now
            self._looks += 1

    def _read_on(self, lane: Lane, state: _LaneState, now: int) -> None:
        if state.ready >= self._page:
            return
        hints = self._due.page(lane, max(state.front, state.beginning), now, self._page)
        if hints:
            with self._lock:
                self._push(hints)
            state.front = place_of(hints[-1])

    def _look_back(self, lane: Lane, state: _LaneState, now: int) -> None:
        """Reads hints before the front that became visible late. A full read moves the mark."""
        if self._looks % LOOKS_UNTIL_ALL:
            beginning = max(state.beginning, (state.front[0] - LOOK_BACK, ""))
            for hints in read_pages(self._due, lane, beginning, state.front, self._page):
                with self._lock:
                    self._push(hints)
            return
        mark = min(now - self._settle, state.front[0])
        for hints in read_pages(self._due, lane, state.beginning, state.front, self._page):
            with self._lock:
                open_hints = [hint for hint in hints if hint.id not in state.settled]
                self._push(open_hints)
                mark = min([mark, *(hint.due_at for hint in open_hints)])
                state.settled -= {hint.id for hint in hints if hint.due_at < mark}
        state.mark = max(state.mark, mark)

    def _push(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            state = self._state_of(hint)
            known = (state.settled, self._busy, self._waiting, self._later)
            if not any(hint.id in one for one in known):
                self._waiting.add(hint.id)
                state.ready += 1
                heappush(self._ready, (order(hint), hint))

    def _state_of(self, hint: Hint) -> _LaneState:
        return self._state((hint.bucket, hint.shard, hint.priority))

    def _state(self, lane: Lane) -> _LaneState:
        return self._lanes.setdefault(lane, _LaneState())


def begun_buckets(registered: Registered, declared: WorkDeclaration, now: int) -> list[str]:
    """The ids of the open and sealed buckets whose period has begun: those that may have due hints."""
    return sorted(
        bucket.id
        for bucket in registered.buckets.values()
        if bucket.state in (BucketState.OPEN, BucketState.SEALED)
        and begins(declared.bucket, bucket.id) <= now
    )


def pages(due: Due, lane: Lane, after: Place, last: Place, size: int) -> Iterator[Hint]:
    """All hints after one place up to another."""
    for hints in read_pages(due, lane, after, last, size):
        yield from hints


def read_pages(due: Due, lane: Lane, after: Place, last: Place, size: int) -> Iterator[list[Hint]]:
    """All hints after one place up to another, page by page."""
    while hints := due.page(lane, after, last[0], size):
        yield [hint for hint in hints if place_of(hint) <= last]
        after = place_of(hints[-1])
        if len(hints) < size or after >= last:
            return


def all_lanes(due: Due, buckets: Iterable[str], shards: int) -> Iterator[Sequence[Lane]]:
    """The lanes of these buckets, those of one priority together, smallest priority first."""
    lanes = [
        (bucket, shard, priority)
        for bucket in buckets
        for shard in range(shards)
        for priority in due.priorities(bucket, shard)
    ]
    for priority in sorted({lane[2] for lane in lanes}):
        yield [lane for lane in lanes if lane[2] == priority]
