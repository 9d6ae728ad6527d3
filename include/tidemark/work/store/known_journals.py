"""Finds the journals that were created, whether or not a file declares them.

Every keyspace that a file names is searched, and the default one. A keyspace that cannot be read is reported
as a problem and does not hide the others.
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
"""The name of a connection, and a keyspace."""
USUAL: Place = ("cassandra_default", "work")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """The location of a journal.

    Attributes:
        connection: The name of the Cassandra connection.
        keyspace: The journal's keyspace.
        journal: The journal's name.
    """

    connection: str
    keyspace: str
    journal: str

    def __str__(self) -> str:
        """The text form, one argument of a command: ``connection/keyspace/journal``."""
        return f"{self.connection}/{self.keyspace}/{self.journal}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Reads the text form, or the name of a declared journal. Raises ``UnknownJournal``."""
        if "/" not in text:
            return cls.of(find_journal(text))
        connection, keyspace, journal = text.rsplit("/", 2)
        return cls(connection, keyspace, journal)

    @classmethod
    def of(cls, declared: WorkDeclaration) -> "Address":
        """The location that a declaration names."""
        return cls(declared.connection, declared.keyspace, declared.name)


@dataclass(frozen=True, slots=True)
class Known:
    """The journals that were found, and the problems of keyspaces that could not be searched."""

    addresses: Sequence[Address]
    problems: Sequence[str]


def find_known(look_up: Lookup, only: str | None = None) -> Known:
    """All journals, or those of one name. Raises as ``find_journal`` if there is none of that name.

    A declared journal whose keyspace cannot be read is included: opening it raises the error.
    """
    loaded = load_journals()
    declared = {Address.of(journal) for journal in loaded.journals}
    found: set[Address] = set()
    problems = [] if only else [str(refusal) for refusal in loaded.refused]
    for place in _places():
        try:
            found |= {Address(*place, name) for name in known_journals(registries(place, look_up))}
        except Exception as error:  # one keyspace's error must not hide the others
            here = {address for address in declared if (address.connection, address.keyspace) == place}
            found |= here
            if here:
                problems.append(f"{'/'.join(place)}: {error}")
    if only is None:
        return Known(sorted(found), problems)
    wanted = sorted(address for address in found if address.journal == only)
    return Known(wanted or [Address.of(find_journal(only))], problems)


def find_declaration(name: str, look_up: Lookup) -> WorkDeclaration:
    """The declaration in the journal's file, else the stored one. Raises as ``find_journal``."""
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
        except Exception as error:  # one keyspace's error must not hide the others
            unseen = f"{'/'.join(place)}: {error}"
    raise UnknownJournal(name, sorted(names), unseen)


def open_address(address: Address, look_up: Lookup) -> Parts:
    """Opens the journal at an address. Raises ``UnknownJournal``."""
    connection = CassandraConnection.from_airflow(address.connection, look_up(address.connection))
    return open_parts(connect(connection), address.journal, address.keyspace)


def registries(place: Place, look_up: Lookup) -> Consensus:
    """The registry of a keyspace; an empty one where no journal was created there."""
    connection, keyspace = place
    session = connect(CassandraConnection.from_airflow(connection, look_up(connection)))
    found = session.cluster.metadata.keyspaces.get(keyspace)
    if found is None or tables.BUCKET not in found.tables:
        return MemoryConsensus()
    return tables.registry_consensus(session, keyspace)


def _places() -> list[Place]:
    return sorted({USUAL} | {(one.connection, one.keyspace) for one in load_journals().journals})
