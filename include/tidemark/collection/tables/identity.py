"""The identity of a collection's tables: their ids in Cassandra, which a table created anew does not keep."""

from tidemark.cassandra.driver import Session
from tidemark.collection.tables.errors import CollectionMissing
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.delivery.writer import TargetIdentity

_ID = "SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s"


def identify(session: Session, place: CollectionPlace) -> TargetIdentity:
    """The identity of both tables together, as they are now. Raises CollectionMissing where one is not there.

    A table that was dropped and created again has another id, and so has the collection: what was delivered
    is not in it.
    """
    ids = []
    for table in (place.rows, place.changes):
        row = session.execute(_ID, (place.keyspace, table.name)).one()
        if row is None:
            raise CollectionMissing(place.pipeline, place.writer, str(table))
        ids.append(str(row.id))
    return TargetIdentity("/".join(ids), f"table {place}")
