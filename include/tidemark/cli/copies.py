"""Whether the keyspaces of a pipeline's journals have too few copies for their cluster. Read-only."""

from tidemark.cassandra.replication import too_few_copies
from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.delivery.pipeline import Pipeline


def copies_warnings(pipeline: Pipeline, connections: Connections) -> list[str]:
    """One sentence for each keyspace with too few copies, with what to do; a missing one has none."""
    places = sorted({(journal.connection, journal.keyspace) for _, journal in pipeline.journals})
    found = (too_few_copies(connect(connections.cassandra[name]), keyspace) for name, keyspace in places)
    return [warning for warning in found if warning is not None]
