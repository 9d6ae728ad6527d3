"""Whether the keyspaces of a pipeline's journals have too few copies for their cluster. Read-only."""

from tidemark.cassandra.failures import FAILURES
from tidemark.cassandra.replication import too_few_copies
from tidemark.cassandra.session import CassandraUnreachable, connect
from tidemark.connections import Connections
from tidemark.pipeline.model import Pipeline


def copies_warnings(pipeline: Pipeline, connections: Connections) -> list[str]:
    """One sentence for each keyspace with too few copies, with what to do; a missing one has none.

    A cluster that does not answer is reported as a warning; the other keyspaces are still checked.
    """
    warnings = []
    for name, keyspace in sorted({(one.connection, one.keyspace) for _, one in pipeline.journals}):
        try:
            warning = too_few_copies(connect(connections.cassandra[name]), keyspace)
        except (CassandraUnreachable, *FAILURES) as error:
            warning = f"how many copies keyspace {keyspace} has could not be looked at: {error}"
        if warning is not None:
            warnings.append(warning)
    return warnings
