"""One capability for all replications of an agent: it holds the oldest time that one of them reads.

A replication enters with the oldest time it needs, and leaves when its rows are sent. Threads share it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

from tidemark.client.collection.opened import OpenedCollection
from tidemark.clock import SECOND
from tidemark.consensus.lease_holder import RENEWALS, LeaseHolder
from tidemark.oplog.agent.streams.sources.object_store import TimeForgotten
from tidemark.outputs.reader_errors import Forgotten, ReaderExpired
from tidemark.outputs.state.reader_lease import ReaderLease, new_capability


class OldestHold:
    """See the module. Registers when the first replication enters, and gives up when the last one leaves."""

    def __init__(self, opened: Callable[[], OpenedCollection]) -> None:
        self._opened = opened
        self._lock = RLock()
        self._times: list[int] = []
        self._lease: ReaderLease | None = None
        self._holder: LeaseHolder | None = None
        self._held_from = 0

    @contextmanager
    def holding(self, t: int) -> Iterator[None]:
        """Keep a time and all later ones readable inside the block. Raises ``TimeForgotten``."""
        self._enter(t)
        try:
            yield
        finally:
            self._leave(t)

    def lease(self) -> ReaderLease:
        """The lease that holds the times now; whatever is read under it is checked with it afterwards.

        Raises ``ReaderExpired`` where its term has passed: what was held may have been removed.
        """
        with self._lock:
            assert self._lease is not None
            self._lease.check()
            return self._lease

    def _enter(self, t: int) -> None:
        with self._lock:
            if self._lease is not None:
                try:
                    self._lease.check()
                except ReaderExpired:
                    # Replications that read under it find out by themselves; this one begins anew.
                    self._end()
            if self._lease is None or t < self._held_from:
                self._register(t)
            self._times.append(t)

    def _register(self, t: int) -> None:
        opened = self._opened()
        capability = new_capability(opened.readers, t, opened.who, opened.term)
        try:
            since = opened.readers.register(capability)
            opened.view.covering(t).resolve(t)
        except Forgotten as error:
            opened.readers.drop(capability.reader)
            raise TimeForgotten(str(error)) from error
        except BaseException:
            opened.readers.drop(capability.reader)
            raise
        lease = ReaderLease(opened.readers, capability, since, opened.term)
        every = opened.term / SECOND / RENEWALS
        holder = LeaseHolder(lease.what, lease.renew, lease.release, lost=lease.lost, every=every)
        holder.start()
        self._end()  # the new one holds everything that the last one did
        self._lease, self._holder, self._held_from = lease, holder, t

    def _leave(self, t: int) -> None:
        with self._lock:
            self._times.remove(t)
            if not self._times:
                self._end()
            elif self._lease is not None and (oldest := min(self._times)) > self._held_from:
                self._held_from = oldest
                try:
                    self._lease.move_forward(oldest)
                except ReaderExpired:
                    self._end()

    def _end(self) -> None:
        if self._holder is not None:
            self._holder.stop()
        self._lease = self._holder = None
