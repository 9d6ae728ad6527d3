"""Readers of a log: a process registers the manifests it reads, so that no sweep removes their files.

One row of the log object has all readers, each with its manifests and a deadline that it renews. It is
committed at the version at which a reader's manifest was the log, so no file of it can have been removed. A
crashed reader is removed after its deadline.

The row is overwritten and never removed. A row per reader would leave a tombstone each time a reader ends,
and a pipeline that is followed has a reader per round: Cassandra would soon refuse to read past so many.
Processes of earlier versions keep such rows (``reader/…``). Those are respected, but read only where files
are about to be removed, not when a reader registers.
"""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from os import getpid
from threading import Lock
from typing import Any
from uuid import uuid4

from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.consensus.lease_holder import RENEWALS, LeaseHolder
from tidemark.consensus.objects import Change, Snapshot
from tidemark.log.state.control import HEAD, LogControl, LogHead

ROW = "readers"
EARLIER = "reader/"
"""The rows of readers of earlier versions."""
TERM = 600 * SECOND
"""The term of a reader in µs: how long a crashed one keeps old files."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One reader, as other processes see it.

    Attributes:
        name: Unique for every reader.
        who: What it does, and on which machine, for people.
        manifests: The manifests whose files must stay.
        deadline: When it counts as dead unless it is renewed, in µs.
    """

    name: str
    who: str
    manifests: tuple[str, ...]
    deadline: int

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Reader":
        """The reader with these fields of a row."""
        return cls(fields["name"], fields["who"], tuple(fields["manifests"]), fields["deadline"])


def _readers_of(snapshot: Snapshot) -> list[Reader]:
    """The readers in the row, including those whose deadline has passed."""
    return [Reader.of(fields) for fields in json.loads(snapshot.rows[ROW])] if ROW in snapshot.rows else []


class Reading:
    """One process that reads a log."""

    def __init__(self, control: LogControl, who: str, clock: Clock = wall_clock) -> None:
        self._control, self._clock = control, clock
        self._reader = Reader(uuid4().hex, f"{who} on {socket.gethostname()} ({getpid()})", (), 0)
        self._lock = Lock()

    def take_up(self) -> LogHead:
        """The current head; its manifest, and those taken up before, stay readable until ``release``."""
        with self._lock:
            head = self._control.amend_log([HEAD, ROW], self._add)
            if head.manifest is not None and head.manifest not in self._reader.manifests:
                self._reader = replace(self._reader, manifests=(*self._reader.manifests, head.manifest))
            return head

    def renew(self) -> None:
        """Extend the deadline."""
        with self._lock:
            if self._reader.manifests:
                reader = self._prolonged()
                self._control.amend_log([ROW], lambda found: (self._among_others(found, reader), None))

    def release(self) -> None:
        """Remove the reader from the row."""
        with self._lock:
            if self._reader.manifests:
                self._control.amend_log([ROW], lambda found: (self._among_others(found), None))

    def _add(self, snapshot: Snapshot) -> tuple[Change | None, LogHead]:
        head = LogHead.of(snapshot)
        if head.manifest is None or head.manifest in self._reader.manifests:
            return None, head
        reader = replace(self._prolonged(), manifests=(*self._reader.manifests, head.manifest))
        return self._among_others(snapshot, reader), head

    def _among_others(self, snapshot: Snapshot, *own: Reader) -> Change:
        """The row with the other readers whose deadline has not passed, and this one as given."""
        now = self._clock()
        others = [
            one for one in _readers_of(snapshot) if one.name != self._reader.name and one.deadline > now
        ]
        return Change({ROW: json.dumps([asdict(one) for one in (*others, *own)])})

    def _prolonged(self) -> Reader:
        return replace(self._reader, deadline=self._clock() + TERM)


@contextmanager
def reading_log(
    control: LogControl, who: str, clock: Clock = wall_clock, every: float = TERM / SECOND / RENEWALS
) -> Iterator[Reading]:
    """Keep the manifests that the block takes up readable until it ends."""
    one = Reading(control, who, clock)
    with LeaseHolder(f"log read by {who}", one.renew, one.release, every=every):
        yield one


def readers(control: LogControl, now: int) -> list[Reader]:
    """The readers whose deadline has not passed, also those of earlier versions."""
    earlier = (Reader.of(json.loads(body)) for body in control.log_rows(EARLIER).values())
    return [one for one in (*_readers_of(control.read_log_rows([ROW])), *earlier) if one.deadline > now]
