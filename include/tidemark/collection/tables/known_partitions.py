"""The partitions of topics that keys come from, as the rows that are stored say.

Messages of a key in two partitions of a topic have no order; ``model/split_keys`` decides what follows from
that. Only the newest row of a key is read, so of a key with messages in several topics the partitions of the
other topics are not known.
"""

from collections.abc import Iterable

from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import Extract
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.codec.cells import StoredRows, integer
from tidemark.collection.tables.layout import PARTITION, TOPIC
from tidemark.collection.tables.scanning import rows_of_keys
from tidemark.collection.tables.tables import CollectionTables

_NEWEST = Extract(rows=1)


def known_partitions(tables: CollectionTables, keys: Iterable[Key]) -> dict[tuple[Key, str], int]:
    """The partition of each key's newest row by key and topic, whether the key is gone or not: ``KeyPlaces``.

    Keys without rows are left out. Several statements are in flight, each for many keys.
    """
    place, stored = tables.place, StoredRows(tables.place)
    selected = Selected.of(place.rows, (*place.key_columns, TOPIC, PARTITION))
    found: dict[tuple[Key, str], int] = {}
    for cells in rows_of_keys(tables, selected, _NEWEST, keys):
        topic, partition = stored.written(cells[-2:], (TOPIC, PARTITION))
        found[stored.key(cells), topic.decode()] = integer(partition)
    return found
