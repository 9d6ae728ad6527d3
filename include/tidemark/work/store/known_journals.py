"""Which journals there are: those that were created, whether or not a file declares them.

They are looked for in every keyspace that a file names, and in the usual one. What cannot be looked at is
said, and hides nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus
from tidemark.pipeline.connections import Lookup
from tidemark.work.errors import UnknownJournal
from tidemark.work.loader import find_journal, load_journals
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.open_journal import open_parts
from tidemark.work.queue.entry_updates import Parts
from tidemark.work.store import tables
from tidemark.work.store.registry import Registry, known_journals

Place = tuple[str, str]
"""A connection and a keyspace."""
USUAL: Place = ("cassandra_default", "work")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A journal by where it is kept."""

    connection: str
    keyspace: str
    journal: str

    def __str__(self) -> str:
        """As one word of a command line."""
        return f"{self.connection}/{self.keyspace}/{self.journal}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """From that word; a name alone is that of a declared journal. Raises ``UnknownJournal``."""
        if "/" not in text:
            return cls.of(find_journal(text))
        connection, keyspace, journal = text.rsplit("/", 2)
        return cls(connection, keyspace, journal)

    @classmethod
    def of(cls, declared: WorkDeclaration) -> "Address":
        """Where a declared journal is kept, once it was created."""
        return cls(declared.connection, declared.keyspace, declared.name)


@dataclass(frozen=True, slots=True)
class Known:
    """The journals that were found, and what kept others from being found."""

    addresses: Sequence[Address]
    problems: Sequence[str]


def find_known(look_up: Lookup, only: str | None = None) -> Known:
    """All journals, or those of one name. Raises as ``find_journal`` if there is none of that name.

    A declared one whose keyspace cannot be read is among them: whoever opens it gets to know why.
    """
    loaded = load_journals()
    declared = {Address.of(journal) for journal in loaded.journals}
    found: set[Address] = set()
    problems = [] if only else [str(refusal) for refusal in loaded.refused]
    for place in _places():
        try:
            found |= {Address(*place, name) for name in known_journals(registries(place, look_up))}
        except Exception as error:  # whatever it is, the other places are looked at
            here = {address for address in declared if (address.connection, address.keyspace) == place}
            found |= here
            if here:
                problems.append(f"{'/'.join(place)}: {error}")
    if only is None:
        return Known(sorted(found), problems)
    wanted = sorted(address for address in found if address.journal == only)
    return Known(wanted or [Address.of(find_journal(only))], problems)


def find_declaration(name: str, look_up: Lookup) -> WorkDeclaration:
    """A journal as its file declares it, else as it was created. Raises as ``find_journal``."""
    try:
        return find_journal(name)
    except UnknownJournal as unknown:
        names, unseen = set(unknown.known), ""
    for place in _places():
        try:
            stored = Registry(registries(place, look_up), name).read().declared
            return stored.model_copy(update=dict(zip(("connection", "keyspace"), place, strict=True)))
        except UnknownJournal as unknown:
            names |= set(unknown.known)
        except Exception as error:  # whatever it is, the other places are looked at
            unseen = f"{'/'.join(place)}: {error}"
    raise UnknownJournal(name, sorted(names), unseen)


def open_address(address: Address, look_up: Lookup) -> Parts:
    """A journal that was created, opened where it is kept. Raises ``UnknownJournal``."""
    connection = CassandraConnection.from_airflow(address.connection, look_up(address.connection))
    return open_parts(connect(connection), address.journal, address.keyspace)


def registries(place: Place, look_up: Lookup) -> Consensus:
    """Where the journals of a keyspace are registered; nowhere, if none was ever created there."""
    connection, keyspace = place
    session = connect(CassandraConnection.from_airflow(connection, look_up(connection)))
    found = session.cluster.metadata.keyspaces.get(keyspace)
    if found is None or tables.BUCKET not in found.tables:
        return MemoryConsensus()
    return tables.registry_consensus(session, keyspace)


def _places() -> list[Place]:
    return sorted({USUAL} | {(one.connection, one.keyspace) for one in load_journals().journals})
