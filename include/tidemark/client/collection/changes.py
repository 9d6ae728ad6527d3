"""The changes of a collection, time by time, across handovers, and on as new bindings finish.

A stream has a capability of its own, which moves forward with what was consumed. Memory holds one page of
keys with their rows; at a handover the differences of one range of keys.
"""

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

from tidemark.client.collection.ending import Ending
from tidemark.client.collection.errors import ReaderClosed
from tidemark.client.collection.opened import OpenedCollection
from tidemark.client.collection.rendition_rows import RowChange
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.reading import Switch, check_followable, course
from tidemark.outputs.reader_errors import Forgotten, NotYet
from tidemark.outputs.state.reader_lease import ReaderLease, held_reader

POLL = 0.5
"""Seconds between two looks for a later frontier, while a stream waits."""
ADVANCE = 10.0
"""Seconds between two attempts to advance a frontier that no delivery advances."""
MOVE = 30.0
"""Seconds between two moves of a stream's capability."""


class Change(NamedTuple):
    """A row that appeared (``diff`` 1) or disappeared (−1) at a time (µs)."""

    row: dict[str, Any]
    t: int
    diff: int


class ChangesAt(Iterator[Change]):
    """The changes at one time, in no order, except that a row of a key disappears before another one
    appears. Read while they are consumed; those that are left when the stream goes on are skipped.

    Attributes:
        t: The time.
    """

    def __init__(self, t: int, changes: Iterator[RowChange]) -> None:
        self.t, self._changes = t, changes

    def skip(self) -> None:
        """Leave out what is left."""
        self._changes = iter(())

    def __next__(self) -> Change:
        row, diff = next(self._changes)
        return Change(row, self.t, diff)


class ChangeStream(Iterator[ChangesAt]):
    """The changes after a time: one ``ChangesAt`` for every binding and every handover.

    Attributes:
        through: Everything up to this time has been returned. It moves on when the next changes are asked
            for, and also with times at which nothing was bound.
    """

    def __init__(
        self, opened: OpenedCollection, after: int, until: int | None, timeout: float | None
    ) -> None:
        self.through = after
        self._opened, self._until, self._timeout = opened, until, timeout
        self._closed, self._turn = threading.Event(), threading.Lock()
        held = ExitStack()
        with opened.asking():
            output, lease = _begun(opened, after, held)
        self._ending = Ending(self, held.close)
        self._steps = self._run(output, lease)

    def __next__(self) -> ChangesAt:
        with self._turn:
            if self._closed.is_set():
                raise ReaderClosed(*self._opened.name)
            try:
                found = next(self._steps)
            except StopIteration:
                self._ending.now()
                raise
            except BaseException:
                self._closed.set()
                self._ending.now()
                raise
        if found is None:
            raise ReaderClosed(*self._opened.name)
        return found

    def end(self) -> None:
        """Make a call that waits in another thread raise ``ReaderClosed``. Does not wait."""
        self._closed.set()

    def close(self) -> None:
        """End the stream. A call that waits in another thread raises ``ReaderClosed``."""
        self.end()
        with self._turn:
            self._ending.now()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, output: Output, lease: ReaderLease) -> Generator[ChangesAt | None]:
        moved = time.monotonic()
        with self._opened.asking(lease):
            while True:
                for found in self._readable(output, lease):
                    lease.check()
                    yield found
                    found.skip()
                    self.through = found.t
                    moved = self._move(lease, moved)
                self.through = max(self.through, self._end(output) - 1)
                moved = self._move(lease, moved)
                if self._until is not None and self.through >= self._until:
                    return
                later = self._wait(output, lease)
                if later is None:
                    if self._closed.is_set():
                        yield None
                    return
                output = later

    def _end(self, output: Output) -> int:
        """The time before which changes are readable and wanted."""
        return output.frontier if self._until is None else min(output.frontier, self._until + 1)

    def _readable(self, output: Output, lease: ReaderLease) -> Iterator[ChangesAt]:
        renditions = self._opened.renditions
        for step in course(output, self.through, self._end(output)):
            if isinstance(step, Switch):
                yield ChangesAt(step.h, self._checked(lease, renditions.differences(step)))
                continue
            rows = renditions.rows_of(step.rendition)
            for binding in self._opened.bindings.younger(step.first - 1):
                if binding.t >= step.end:
                    break
                yield ChangesAt(binding.t, self._checked(lease, rows.changes(binding.t)))

    def _checked(self, lease: ReaderLease, changes: Iterator[RowChange]) -> Iterator[RowChange]:
        """The same changes; an error instead of those that were read after the end of the term."""
        with self._opened.asking(lease):
            for change in changes:
                lease.check()
                yield change
            lease.check()

    def _move(self, lease: ReaderLease, moved: float) -> float:
        """Give up what was consumed, now and then. The changes at a time need the state before it."""
        now = time.monotonic()
        if now - moved < MOVE:
            return moved
        lease.move_forward(self.through + 1)
        return now

    def _wait(self, output: Output, lease: ReaderLease) -> Output | None:
        """The output with a later frontier; None where the stream is closed, or has waited long enough."""
        view = self._opened.view
        began = advanced = time.monotonic()
        later = view.advanced()
        while later.frontier <= output.frontier:
            now = time.monotonic()
            is_over = self._timeout is not None and now - began >= self._timeout
            if is_over and self._until is None:
                return None
            later.refuse_tainted(later.active)
            if is_over:
                raise NotYet(*self._opened.name, self._until or 0, later.frontier)
            lease.check()
            left = POLL if self._timeout is None else min(POLL, self._timeout - (now - began))
            if self._closed.wait(max(left, 0)):
                return None
            if now - advanced >= ADVANCE:
                later, advanced = view.advanced(), now
            else:
                later = view.beyond(later)
        return later


def _begun(opened: OpenedCollection, after: int, held: ExitStack) -> tuple[Output, ReaderLease]:
    """A reader of the changes after a time, and an output to begin with."""
    output = opened.view.covering(after)
    try:
        lease = held.enter_context(held_reader(opened.readers, after + 1, opened.who, opened.term))
    except Forgotten as forgotten:
        raise Forgotten(*opened.name, after, forgotten.since) from None
    try:
        check_followable(output, lease.check(), after, lease.since, opened.readers.clock())
        if after >= output.frontier and after != lease.since:
            output.resolve(after)
    except BaseException:
        held.close()
        raise
    return output, lease
