"""The partitions of topics that keys come from, as the rows that are stored say.

Messages of a key in two partitions of a topic have no order; ``model/split_keys`` decides what follows from
that. Of each key only the newest row before a time is read, so of a key with messages in several topics the
partitions of the other topics are not known.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidemark.cassandra.scan.clustering import CqlOperator, Restriction
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import Extract
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.codec.cells import StoredRows, integer
from tidemark.collection.tables.layout import MESSAGE_ID, PARTITION, TOPIC, T
from tidemark.collection.tables.scanning import newest_up_to, rows_at, rows_of_keys
from tidemark.collection.tables.tables import CollectionTables

_OWN = (T, MESSAGE_ID, PARTITION, TOPIC)


class KeyOrigin(NamedTuple):
    """Where a key of a topic came from before a message.

    Attributes:
        message_id: The message that had it.
        partition: The partition of that message.
    """

    message_id: int
    partition: int


Origins = dict[tuple[Key, str], KeyOrigin]
"""By key and topic."""


def key_origins(tables: CollectionTables, t: int, keys: Iterable[Key]) -> Origins:
    """The newest rows of keys before the time ``t``; of keys that begin at it, their first rows there.

    Whether the key is gone in that row makes no difference. Rows after ``t`` do not count: a binding that is
    delivered again gets the same answer as at first. Keys without rows are left out. One row of each key is
    read; of those that an earlier attempt or another part has written at ``t``, all rows of that time.
    """
    found: Origins = {}
    begun: list[Key] = []
    for key, at, topic, origin in _read(tables, newest_up_to(t), keys):
        if at < t:
            found[key, topic] = origin
        else:
            begun.append(key)
    before = list(_read(tables, _newest_before(t), begun)) if begun else []
    found |= {(key, topic): origin for key, _, topic, origin in before}
    known = {key for key, *_ in before}
    if new := [key for key in begun if key not in known]:
        for key, _, topic, origin in _read(tables, rows_at(t), new):
            place = key, topic
            found[place] = min(found.get(place, origin), origin)
    return found


def _newest_before(t: int) -> Extract:
    return Extract((Restriction(T, CqlOperator.LESS, t),), rows=1)


def _read(
    tables: CollectionTables, extract: Extract, keys: Iterable[Key]
) -> Iterator[tuple[Key, int, str, KeyOrigin]]:
    place, stored = tables.place, StoredRows(tables.place)
    selected = Selected.of(place.rows, (*place.key_columns, *_OWN))
    for cells in rows_of_keys(tables, selected, extract, keys):
        t, message_id, partition, topic = stored.written(cells[-len(_OWN) :], _OWN)
        origin = KeyOrigin(integer(message_id), integer(partition))
        yield stored.key(cells), integer(t), topic.decode(), origin
