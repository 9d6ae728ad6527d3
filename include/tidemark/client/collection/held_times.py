"""The times that an open collection holds for reads of single keys: one capability, shared by all threads.

Without a time of its own, a reader holds the newest time and moves on with the frontier, so that it keeps no
old rendition alive. Once it was asked for a time, or told to hold one, that time and all later ones stay
readable until it is moved forward or closed.
"""

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from tidemark.client.collection.errors import ReaderClosed
from tidemark.client.collection.opened import OpenedCollection, newest_time
from tidemark.clock import SECOND
from tidemark.consensus.lease_holder import RENEWALS, LeaseHolder
from tidemark.outputs.model.capability import Capability
from tidemark.outputs.reader_errors import ReaderExpired
from tidemark.outputs.state.reader_lease import ReaderLease, new_capability

Answer = TypeVar("Answer")


class HeldTimes:
    """See the module. Registers when the first time is asked for."""

    def __init__(self, opened: OpenedCollection) -> None:
        self._opened = opened
        self._lock = threading.RLock()
        self._lease: ReaderLease | None = None
        self._holder: LeaseHolder | None = None
        self._process = os.getpid()
        self._kept: int | None = None
        """The oldest time that the caller has asked for; None where it takes the newest."""
        self._is_closed = False

    def read(self, at: int | None, read: Callable[[ReaderLease, int], Answer]) -> Answer:
        """What ``read`` answers about a time; None: about the newest one, at most a second old.

        Raises ReaderExpired once the term is over, for ever.
        """
        while True:
            lease = self._covering(at)
            t = newest_time(self._opened.view.recent()) if at is None else at

            def answer(held: Capability, t: int = t, lease: ReaderLease = lease) -> Answer:
                return read(lease, max(t, held.t) if at is None else t)

            try:
                return lease.while_held(answer)
            except ReaderExpired:
                if lease is self._lease:
                    raise
                # Another thread has asked for an older time, which replaced the capability.

    def hold(self, t: int) -> None:
        """Keep the times from ``t`` on readable, and give up those before it. Raises Forgotten."""
        with self._lock:
            lease = self._covering(t)
            self._kept = t
            lease.move_forward(t)

    def close(self) -> None:
        """End the capability."""
        with self._lock:
            self._is_closed = True
            self._end(self._holder)
            self._lease = self._holder = None

    def _covering(self, at: int | None) -> ReaderLease:
        """The lease, which holds the time; a new one where the time is older than what is held."""
        with self._lock:
            if self._is_closed:
                raise ReaderClosed(*self._opened.name)
            if self._process != os.getpid():  # forked: the other one is the parent's
                self._lease, self._holder, self._process = None, None, os.getpid()
            lease = self._lease
            if at is None:
                return lease or self._register(newest_time(self._opened.view.fresh()))
            if lease is None or at < lease.check().t:
                lease = self._register(at)
            self._kept = at if self._kept is None else min(self._kept, at)
            return lease

    def _register(self, t: int) -> ReaderLease:
        opened, before = self._opened, self._holder
        # A capability may hold a time that is not readable yet, but such a time is refused right away.
        opened.view.covering(t).resolve(t)
        capability = new_capability(opened.readers, t, opened.who, opened.term)
        lease = ReaderLease(opened.readers, capability, opened.readers.register(capability), opened.term)
        every = opened.term / SECOND / RENEWALS
        holder = LeaseHolder(
            lease.what, lambda: self._renew(lease), lease.release, lost=lease.lost, every=every
        )
        holder.start()
        self._lease, self._holder = lease, holder
        self._end(before)
        return lease

    def _renew(self, lease: ReaderLease) -> None:
        lease.renew()
        newest = newest_time(self._opened.view.fresh())
        lease.move_forward(newest if self._kept is None else min(self._kept, newest))

    def _end(self, holder: LeaseHolder | None) -> None:
        if holder is not None and self._process == os.getpid():
            holder.stop()
