"""The size of a table and the tokens of the ring, as the server knows them."""

from cassandra.cluster import Session

from tidemark.cassandra.errors import CassandraError
from tidemark.cassandra.token_ranges import HIGHEST, LOWEST, RING
from tidemark.errors import with_fields

_ESTIMATES = (
    "SELECT range_start, range_end, mean_partition_size, partitions_count FROM system.size_estimates "
    "WHERE keyspace_name = %s AND table_name = %s"
)


@with_fields
class PartitionerRefused(CassandraError):
    """A cluster whose tokens are not the usual ones."""

    partitioner: str

    text = (
        "The cluster's partitioner is {partitioner}; tables can be read whole only where it is "
        "Murmur3Partitioner. Nothing was read."
    )


def ring_tokens(session: Session) -> list[int]:
    """The tokens of all nodes."""
    metadata = session.cluster.metadata
    if not str(metadata.partitioner).endswith("Murmur3Partitioner"):
        raise PartitionerRefused(str(metadata.partitioner))
    return [token.value for token in metadata.token_map.ring] if metadata.token_map else []


def estimated_bytes(session: Session, keyspace: str, table: str) -> int:
    """Bytes of the whole table, extrapolated from the node that answers; 0 where it has no estimate."""
    found = session.execute(_ESTIMATES, (keyspace, table)).all()
    size = sum(row.mean_partition_size * row.partitions_count for row in found)
    width = sum(_width(int(row.range_start), int(row.range_end)) for row in found)
    # A node estimates its own ranges only; the others are assumed to hold as much.
    return size * RING // width if width else 0


def _width(start: int, end: int) -> int:
    return end - start if end > start else HIGHEST - start + end - LOWEST
