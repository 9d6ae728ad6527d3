"""Readers of a log: a process registers the manifests it reads, so that no sweep removes their files.

One row per reader in the log object, with its manifests and a deadline that it renews. The row is committed
at the version at which its manifest was the log, so no file of it can have been removed. A crashed reader is
removed after its deadline.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from os import getpid
from threading import Lock
from uuid import uuid4

from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.consensus.lease_holder import RENEWALS, LeaseHolder
from tidemark.consensus.objects import Change, Snapshot
from tidemark.log.state.control import HEAD, LogControl, LogHead

PREFIX = "reader/"
TERM = 600 * SECOND
"""The term of a reader in µs: how long a crashed one keeps old files."""
MOST_FORGOTTEN = 100
"""The greatest number of crashed readers that one transaction removes."""


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

    @property
    def row(self) -> str:
        """The name of its row."""
        return f"{PREFIX}{self.name}"

    def to_json(self) -> str:
        """The row in the control plane."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Reader":
        """The reader in a row."""
        row = json.loads(text)
        return cls(row["name"], row["who"], tuple(row["manifests"]), row["deadline"])


class Reading:
    """One process that reads a log."""

    def __init__(self, control: LogControl, who: str, clock: Clock = wall_clock) -> None:
        self._control, self._clock = control, clock
        self._reader = Reader(uuid4().hex, f"{who} on {socket.gethostname()} ({getpid()})", (), 0)
        self._lock = Lock()

    def take_up(self) -> LogHead:
        """The current head; its manifest, and those taken up before, stay readable until ``release``."""
        with self._lock:
            head = self._control.amend_log([HEAD], self._add)
            if head.manifest is not None and head.manifest not in self._reader.manifests:
                self._reader = replace(self._reader, manifests=(*self._reader.manifests, head.manifest))
            return head

    def renew(self) -> None:
        """Extend the deadline."""
        with self._lock:
            if self._reader.manifests:
                reader = self._prolonged()
                self._control.amend_log([HEAD], lambda _: (Change({reader.row: reader.to_json()}), None))

    def release(self) -> None:
        """Remove the reader's row."""
        with self._lock:
            if self._reader.manifests:
                self._control.amend_log([HEAD], lambda _: (Change(deletes=[self._reader.row]), None))

    def _add(self, snapshot: Snapshot) -> tuple[Change | None, LogHead]:
        head = LogHead.of(snapshot)
        if head.manifest is None or head.manifest in self._reader.manifests:
            return None, head
        reader = replace(self._prolonged(), manifests=(*self._reader.manifests, head.manifest))
        return Change({reader.row: reader.to_json()}, self._over(snapshot)), head

    def _over(self, snapshot: Snapshot) -> list[str]:
        """The rows of readers whose deadline has passed; none where one may have been renewed since."""
        found = self._control.scan_log(PREFIX, MOST_FORGOTTEN)
        if found.version != snapshot.version:
            return []
        readers = [Reader.from_json(body) for body in found.rows.values()]
        return [one.row for one in readers if one.deadline <= self._clock() and one.name != self._reader.name]

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
    """The readers whose deadline has not passed."""
    found = (Reader.from_json(body) for body in control.log_rows(PREFIX).values())
    return [one for one in found if one.deadline > now]
