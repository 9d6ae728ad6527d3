"""One reader's right to old times, in the process that reads: renewed in the background, checked around every
read.

A read takes time, and a process may be suspended in the middle of one. So a reader checks its capability
before it reads and again afterwards: what was read after the end of its term may be incomplete and is thrown
away. This module reads no rows. A read that ends within a fixed term needs no renewal: it registers with
``ReaderStore`` alone.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from os import getpid
from typing import TypeVar
from uuid import uuid4

from tidemark.clock import SECOND
from tidemark.consensus.lease_holder import RENEWALS, holding
from tidemark.outputs.model.capability import Capability
from tidemark.outputs.reader_errors import ReaderExpired, ReaderNameTaken
from tidemark.outputs.state.reader_store import ReaderStore

TERM = 600 * SECOND
"""The term of a reader in µs: how long a crashed one keeps old times. A thousand readers then renew seven
times a second in all, which one object of the control plane can take."""

Answer = TypeVar("Answer")


def new_capability(store: ReaderStore, t: int, who: str, term: int = TERM) -> Capability:
    """A capability of this process with an id of its own; it is not registered yet."""
    holder = f"{who} on {socket.gethostname()} ({getpid()})"
    return Capability(uuid4().hex, t, store.clock() + term, holder)


class ReaderLease:
    """A registered reader.

    Once its term is over, every call raises ``ReaderExpired``, for ever: times may have been removed. May be
    used by several threads.

    Attributes:
        since: The first readable time when it registered.
    """

    lost = ReaderExpired

    def __init__(self, store: ReaderStore, capability: Capability, since: int, term: int = TERM) -> None:
        self._store, self._held, self.since, self._term = store, capability, since, term
        self._is_over, self._lock = False, threading.Lock()

    @property
    def what(self) -> str:
        """The reader, for log lines."""
        outputs = self._store.outputs
        return f"reader {self._held.reader} of {outputs.pipeline}/{outputs.writer}"

    def check(self) -> Capability:
        """The capability, which is usable now; raises ``ReaderExpired``.

        Past the deadline it is renewed first: while its row is there, nothing that it holds was forgotten.
        """
        if self._is_over:
            raise self._expired()
        if not self._held.is_usable_at(self._store.clock()):
            self.renew()
            if not self._held.is_usable_at(self._store.clock()):
                raise self._expired()
        return self._held

    def while_held(self, read: Callable[[Capability], Answer]) -> Answer:
        """What ``read`` answers, if the capability was held from its beginning to its end.

        Read again where another thread has moved the reader forward meanwhile: what it gave up may have been
        removed during the read.
        """
        while True:
            held = self.check()
            answer = read(held)
            if self.check().t == held.t:
                return answer

    def move_forward(self, t: int) -> None:
        """Give up the times before ``t``. The caller has everything before it."""
        with self._lock:
            self._refuse_over()
            if t > self._held.t:
                # Before the commit: where its outcome stays unknown, they count as given up.
                self._held = replace(self._held, t=t)
            self._keep(lambda: self._store.move_forward(self._held.reader, t))

    def renew(self) -> None:
        """Extend the deadline; raises ``ReaderExpired`` where the reader was removed."""
        with self._lock:
            self._refuse_over()
            self._keep(lambda: self._store.renew(self._held.reader, self._term))

    def release(self) -> None:
        """End the reader."""
        with self._lock:
            self._is_over = True
            self._store.drop(self._held.reader)

    def _keep(self, change: Callable[[], Capability]) -> None:
        try:
            changed = change()
        except ReaderExpired:
            self._is_over = True
            raise
        self._held = replace(changed, t=max(changed.t, self._held.t))

    def _refuse_over(self) -> None:
        if self._is_over:
            raise self._expired()

    def _expired(self) -> ReaderExpired:
        outputs = self._store.outputs
        return ReaderExpired(outputs.pipeline, outputs.writer, self._held.reader)


def held_for_term(store: ReaderStore, reader: str, t: int, who: str, term: int) -> Capability:
    """A capability that ends by itself, for reads that no process stands behind.

    All callers with the same ``reader`` share it: each gives it another whole term. Raises ``Forgotten``
    below ``since``.
    """
    while True:
        with suppress(ReaderExpired):
            return store.renew(reader, term)
        store.expire()  # one whose term is over keeps its name until it is removed
        capability = replace(new_capability(store, t, who, term), reader=reader)
        with suppress(ReaderNameTaken):  # another caller was faster
            store.register(capability)
            return capability


@contextmanager
def held_reader(store: ReaderStore, t: int, who: str, term: int = TERM) -> Iterator[ReaderLease]:
    """Register a reader at ``t`` and renew it until the block ends; raises ``Forgotten`` below ``since``."""
    capability = new_capability(store, t, who, term)
    lease = ReaderLease(store, capability, store.register(capability), term)
    with holding(lease, every=term / SECOND / RENEWALS):
        yield lease
