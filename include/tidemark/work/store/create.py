"""Creating a work journal: its keyspace and tables where they are missing, and its row in the registry.

A keyspace that is there keeps the replication it has.
"""

import logging

from tidemark.cassandra.driver import Session
from tidemark.cassandra.replication import Copies, default_copies, local_nodes, too_few_copies
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.store import tables
from tidemark.work.store.registry import Registry

_LOG = logging.getLogger(__name__)


def create_journal(session: Session, declared: WorkDeclaration) -> bool:
    """Make the journal, or give it a changed declaration; False if it was as declared already.

    Warns in the log of the process where one node's loss would lose entries.
    """
    tables.create_tables(session, copies_of(session, declared).options, declared.keyspace)
    if warning := too_few_copies(session, declared.keyspace):
        _LOG.warning("%s: %s", declared.name, warning)
    registry = Registry(tables.registry_consensus(session, declared.keyspace), declared.name)
    return registry.create(declared)


def copies_of(session: Session, declared: WorkDeclaration) -> Copies:
    """What is declared; where nothing is, what the cluster can bear."""
    if declared.replication is None:
        return default_copies(*local_nodes(session))
    return Copies(declared.replication.strategy.value, declared.replication.factors)
