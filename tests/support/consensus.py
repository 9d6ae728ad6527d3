"""Control planes in memory that misbehave in one way each: a dead process, a race, a crash before a commit.

Lost and late answers are in ``tests/support/contracts/flaky_consensus.py``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from tests.support.faults import Killed

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Change, Consensus, ObjectKey, ObjectKind, Snapshot
from tidemark.log.state.control import HEAD


@dataclass
class MortalConsensus:
    """The control plane as one process has it: after the process died, none of its requests arrive."""

    inner: Consensus
    is_dead: bool = False

    def die(self) -> NoReturn:
        """Crash the process that uses this."""
        self.is_dead = True
        raise Killed

    def of_next_process(self) -> "MortalConsensus":
        """The same control plane for a process that starts after the crash."""
        return MortalConsensus(self.inner)

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        self._require_life()
        return self.inner.read(key, rows)

    def scan(
        self,
        key: ObjectKey,
        prefix: str,
        *,
        since: str | None = None,
        before: str | None = None,
        limit: int = 1000,
        first: bool = False,
    ) -> Snapshot:
        self._require_life()
        return self.inner.scan(key, prefix, since=since, before=before, limit=limit, first=first)

    def names(self, kind: ObjectKind, prefix: str = "") -> list[str]:
        self._require_life()
        return self.inner.names(kind, prefix)

    def whole(self, key: ObjectKey) -> Snapshot:
        self._require_life()
        return self.inner.whole(key)

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        self._require_life()
        return self.inner.commit(key, expected, change)

    def _require_life(self) -> None:
        if self.is_dead:
            raise Killed


class RacingConsensus(MemoryConsensus):
    """Lets a test step in just before the next commit, or just after the next read of a head."""

    def __init__(self) -> None:
        super().__init__()
        self.before_next_commit: Callable[[], object] | None = None
        self.after_next_head: Callable[[], object] | None = None

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        snapshot = super().read(key, rows)
        if list(rows) == [HEAD] and self.after_next_head:
            step_in, self.after_next_head = self.after_next_head, None
            step_in()
        return snapshot

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        step_in, self.before_next_commit = self.before_next_commit, None
        if step_in:
            step_in()
        return super().commit(key, expected, change)


class SteppingConsensus(MemoryConsensus):
    """Lets a test step in just before the first, second, … request, so that it can go through all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0
        self._step: tuple[int, Callable[[], object]] | None = None

    def step_in(self, request: int, step: Callable[[], object]) -> None:
        """Call ``step`` before that request from now on; its own requests count as others do."""
        self.requests, self._step = 0, (request, step)

    def step_in_at_last(self) -> None:
        """Call the step now if there were not as many requests."""
        waiting, self._step = self._step, None
        if waiting:
            waiting[1]()

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        self._count()
        return super().read(key, rows)

    def whole(self, key: ObjectKey) -> Snapshot:
        self._count()
        return super().whole(key)

    def scan(
        self,
        key: ObjectKey,
        prefix: str,
        *,
        since: str | None = None,
        before: str | None = None,
        limit: int = 1000,
        first: bool = False,
    ) -> Snapshot:
        self._count()
        return super().scan(key, prefix, since=since, before=before, limit=limit, first=first)

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        self._count()
        return super().commit(key, expected, change)

    def _count(self) -> None:
        self.requests += 1
        if self._step and self.requests == self._step[0]:
            self.step_in_at_last()


class RecordingConsensus(MemoryConsensus):
    """Keeps the changes that were applied."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[tuple[ObjectKind, Change]] = []

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        version = super().commit(key, expected, change)
        self.changes.append((key.kind, change))
        return version


class CrashingConsensus(MemoryConsensus):
    """Crashes before a commit, after ``left`` others; None: never."""

    left: int | None = None

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1
        return super().commit(key, expected, change)


class BusyConsensus(MemoryConsensus):
    """Before every request of a process another one does something: ``meanwhile``."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None
        self.left = 2_000
        """How often it happens before the test fails: the process would never come to its end."""

    @classmethod
    def copy_of(cls, consensus: MemoryConsensus) -> "BusyConsensus":
        """A control plane that holds the same, and changes on its own."""
        copied = cls()
        copied._objects = dict(consensus._objects)
        return copied

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        self._happen()
        return super().read(key, rows)

    def whole(self, key: ObjectKey) -> Snapshot:
        self._happen()
        return super().whole(key)

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        self._happen()
        return super().commit(key, expected, change)

    def _happen(self) -> None:
        happening, self.meanwhile = self.meanwhile, None  # what happens has requests of its own
        if happening:
            self.left -= 1
            assert self.left > 0, "it makes no progress"
            happening()
            self.meanwhile = happening


def copy_of(consensus: MemoryConsensus) -> MemoryConsensus:
    """A control plane that holds the same, and changes on its own."""
    copied = MemoryConsensus()
    copied._objects = dict(consensus._objects)
    return copied
