"""A consensus that loses requests and answers on command: for tests of what stands on one.

It invents nothing. Whatever is applied is applied by the consensus inside, at most once, and without a fault
armed it behaves exactly like that one. It never tries again and never looks what became of a commit.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TypeVar

from tidemark.consensus.objects import Change, Consensus, ObjectKey, ObjectKind, Outpaced, Snapshot, Undecided

Answer = TypeVar("Answer")


class Fault(StrEnum):
    """What can have happened to a commit without an answer."""

    REQUEST_LOST = "the request was lost"
    ANSWER_LOST = "the answer was lost"
    LATE = "the request is still under way"
    """It arrives just before the next commit to any object, or when the test says so; until then no read
    sees it."""


@dataclass(frozen=True)
class Arrival:
    """A request that has reached the store, and whether it was applied there."""

    key: ObjectKey
    expected: int
    change: Change
    applied: bool


class FlakyConsensus:
    """The contract of ``Consensus``; a commit that meets a fault is ``Undecided``."""

    attempts = 1
    """How many faults in a row leave a commit undecided."""

    def __init__(self, inner: Consensus) -> None:
        self._inner = inner
        self._faults: deque[Fault | None] = deque()
        self._under_way: list[Callable[[], object]] = []
        self.arrivals: list[Arrival] = []
        """What has reached the store, in order."""
        self.meanwhile: Callable[[], object] = lambda: None
        """Called wherever another process could come in between the steps of a commit."""

    def arm(self, *faults: Fault | None) -> None:
        """Let the next commits meet these, one each; None lets one pass."""
        self._faults.extend(faults)

    def disarm(self) -> None:
        """Let all further commits pass; what is under way stays so."""
        self._faults.clear()

    def land(self) -> None:
        """Let everything arrive that is still under way."""
        late, self._under_way = self._under_way, []
        for deliver in late:
            with suppress(Outpaced):
                deliver()

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        return self._inner.read(key, rows)

    def whole(self, key: ObjectKey) -> Snapshot:
        return self._inner.whole(key)

    def recent(self, kind: ObjectKind, names: Sequence[str]) -> Mapping[str, Snapshot]:
        return self._inner.recent(kind, names)

    def committed(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        return self._inner.committed(key, rows)

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
        return self._inner.scan(key, prefix, since=since, before=before, limit=limit, first=first)

    def names(self, kind: ObjectKind, prefix: str = "") -> list[str]:
        return self._inner.names(kind, prefix)

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        return self._send(
            partial(self.commit_undisturbed, key, expected, change),
            no_answer=partial(Undecided, key, expected),
        )

    def commit_undisturbed(self, key: ObjectKey, expected: int, change: Change) -> int:
        """Commit past all faults, leaving what is under way where it is."""
        try:
            version = self._inner.commit(key, expected, change)
        except Outpaced:
            self.arrivals.append(Arrival(key, expected, change, applied=False))
            raise
        self.arrivals.append(Arrival(key, expected, change, applied=True))
        return version

    def forget(self, key: ObjectKey, expected: int) -> None:
        self._send(partial(self._inner.forget, key, expected), no_answer=partial(Undecided, key, expected))

    def _send(self, deliver: Callable[[], Answer], no_answer: Callable[[str], Exception]) -> Answer:
        """The answer to a request, or the error that stands for a missing one."""
        self.meanwhile()
        self.land()
        self.meanwhile()
        fault = self._faults.popleft() if self._faults else None
        try:
            if fault is None:
                return deliver()
            if fault is Fault.ANSWER_LOST:
                with suppress(Outpaced):
                    deliver()
            if fault is Fault.LATE:
                self._under_way.append(deliver)
        finally:
            self.meanwhile()
        raise no_answer(str(fault))
