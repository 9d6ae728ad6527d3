"""The tables of a declared collection, for its writer and for its readers. Opens nothing."""

from tidemark.cassandra.replication import Copies
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.writers.collection.kind import CollectionDeclaration


def place_of(pipeline: str, declared: CollectionDeclaration) -> CollectionPlace:
    """Where a declared collection is, and what its rows consist of."""
    copies = None
    if declared.replication:
        copies = Copies(declared.replication.strategy, declared.replication.factors)
    return CollectionPlace(
        pipeline,
        declared.name,
        declared.keyspace,
        declared.table_name,
        declared.schema_of_rows,
        declared.consistency,
        copies,
    )
