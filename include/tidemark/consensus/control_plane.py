"""The control plane, keyspace ``tidemark`` in Cassandra: opened for changes, or read-only."""

from tidemark.cassandra.driver import Session
from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection, Connections
from tidemark.consensus.lightweight import KEYSPACE, LightweightConsensus, create_schema
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus


def open_control(connections: Connections) -> LightweightConsensus:
    """The control plane, for changes; its keyspace and tables are created where they are missing."""
    session: Session = connect(connections.control)
    create_schema(session, connections.control.control_replication)
    return LightweightConsensus(session)


def look_at_control(connections: Connections) -> Consensus:
    """The control plane, for reads only: nothing is created, and a missing one reads as empty."""
    return look_at_cluster(connections.control)


def look_at_cluster(control: CassandraConnection) -> Consensus:
    """As ``look_at_control``, for a Cassandra connection that belongs to no single pipeline."""
    session: Session = connect(control)
    if KEYSPACE not in session.cluster.metadata.keyspaces:
        return MemoryConsensus()
    return LightweightConsensus(session)
