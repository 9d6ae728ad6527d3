"""The partitions of topics that keys belong to, as the rows that are stored say.

A key that turns up in two partitions of a topic is a bad message: messages of different partitions have no
order that a producer knows. What follows from it is the writer's decision.
"""

from collections.abc import Iterable

from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import Extract
from tidemark.collection.tables.cells import Key, StoredRows, integer
from tidemark.collection.tables.layout import PARTITION, TOPIC
from tidemark.collection.tables.scanning import rows_of_keys
from tidemark.collection.tables.tables import CollectionTables
from tidemark.log.model.binding import TopicPartition

_NEWEST = Extract(rows=1)


def known_partitions(tables: CollectionTables, keys: Iterable[Key]) -> dict[Key, TopicPartition]:
    """The topic and partition of each key's newest row, whether it is gone or not; keys without rows are left
    out."""
    place = tables.place
    selected = Selected.of(place.rows, (*place.key_columns, TOPIC, PARTITION))
    found: dict[Key, TopicPartition] = {}
    stored = StoredRows(place.schema)
    for cells in rows_of_keys(tables, selected, _NEWEST, keys):
        topic, partition = cells[-2:]
        found[stored.key(cells)] = ((topic or b"").decode(), integer(partition))
    return found
