"""Scans all entries of a journal without its hints: counts them, and finds entries whose hint is lost.

The only module here that reads a whole table. The sweep checks every lost entry again before it changes it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tidemark.cassandra.driver import ConsistencyLevel, Session
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import ScanSettings, scan
from tidemark.cassandra.table import read_table
from tidemark.cassandra.token_ranges import TokenRange
from tidemark.work.model.entry import Entry
from tidemark.work.model.lapse import notice
from tidemark.work.queue.entry_updates import Parts
from tidemark.work.queue.sweep import is_lost
from tidemark.work.store import tables
from tidemark.work.store.entries import GONE, entry_of, is_long_gone

MOST_AT_ONCE = 100_000
"""The most lost hints and old traces of one census; the next census finds the others."""


@dataclass
class EntryCensus:
    """The counts of a census."""

    entries: int = 0
    expired: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    by_priority: dict[int, int] = field(default_factory=dict)
    oldest: int | None = None
    """The insertion date of the oldest live entry, in ms; None without one."""
    lost: list[str] = field(default_factory=list)
    """The keys of entries whose hints are lost."""
    gone: list[str] = field(default_factory=list)
    """The hashes of keys whose trace is old enough to delete."""

    def add(self, other: "EntryCensus") -> None:
        """Adds the counts of another part of the table."""
        self.entries += other.entries
        self.expired += other.expired
        for status, count in other.by_status.items():
            self.by_status[status] = self.by_status.get(status, 0) + count
        for priority, count in other.by_priority.items():
            self.by_priority[priority] = self.by_priority.get(priority, 0) + count
        ages = [one for one in (self.oldest, other.oldest) if one is not None]
        self.oldest = min(ages, default=None)
        self.lost += other.lost[: MOST_AT_ONCE - len(self.lost)]
        self.gone += other.gone[: MOST_AT_ONCE - len(self.gone)]


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of a removed entry: the key's hash, and the stored text."""

    hashed: str
    body: str


def scan_entries(session: Session, parts: Parts, ranges: Iterable[TokenRange]) -> Iterator[Entry | Trace]:
    """The entries in these token ranges, expired or not, and the traces of removed ones."""
    table = read_table(session, parts.declared.keyspace, tables.ENTRY)
    columns = Selected.of(table, ["name", "row", "body"])
    settings = ScanSettings(ConsistencyLevel.LOCAL_QUORUM)
    ours = f"{parts.declared.name}/"
    for batch in scan(session, columns, ranges, settings):
        names, bodies = batch.column(0).to_pylist(), batch.column(2).to_pylist()
        for name, body in zip(names, bodies, strict=True):
            if body is not None and name.startswith(ours):
                is_gone = body.startswith(GONE)
                yield Trace(name.removeprefix(ours), body) if is_gone else entry_of(body)


def take_census(parts: Parts, found_in_table: Iterable[Entry | Trace]) -> EntryCensus:
    """Counts entries, and finds lost hints and old traces."""
    found, now, registered = EntryCensus(), parts.clock(), parts.registry.read()
    for entry in found_in_table:
        if isinstance(entry, Trace):
            if is_long_gone(entry.body, now):
                found.add(EntryCensus(gone=[entry.hashed]))
            continue
        seen = notice(entry, now, parts.declared.rules).entry
        found.add(EntryCensus(1, expired=1) if seen is None else _of_one(seen))
        if len(found.lost) < MOST_AT_ONCE and is_lost(entry, registered, parts.due, now):
            found.lost.append(entry.key)
    return found


def _of_one(entry: Entry) -> EntryCensus:
    request = entry.request
    by_status = {entry.status.name.lower(): 1}
    return EntryCensus(1, by_status=by_status, by_priority={request.priority: 1}, oldest=request.inserted)
