"""Opens a journal that was created before."""

from uuid import uuid4

from tidemark.cassandra.driver import Session
from tidemark.cassandra.replication import too_few_copies
from tidemark.clock import wall_clock_millis
from tidemark.work.errors import UnknownJournal
from tidemark.work.queue.entry_updates import Parts
from tidemark.work.queue.journal import jitter
from tidemark.work.store import tables
from tidemark.work.store.entries import Entries
from tidemark.work.store.registry import Registry


def open_parts(session: Session, name: str, keyspace: str) -> Parts:
    """The parts of one journal, on Cassandra. Raises ``UnknownJournal``."""
    if keyspace not in session.cluster.metadata.keyspaces:
        raise UnknownJournal(name, [])
    registry = Registry(tables.registry_consensus(session, keyspace), name)
    declared = registry.read().declared
    return Parts(
        declared=declared,
        registry=registry,
        entries=Entries(tables.entries_consensus(session, keyspace), name),
        due=tables.CassandraDue(session, keyspace, name),
        archive=tables.CassandraArchive(session, keyspace, declared),
        clock=wall_clock_millis,
        new_id=lambda: uuid4().hex,
        wait=jitter,
        copies_warning=lambda: too_few_copies(session, keyspace),
    )
