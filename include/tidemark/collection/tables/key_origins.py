"""Where keys come from, as the rows that are stored say: their topics and partitions, and their offsets.

Messages of a key in two partitions of a topic have no order; ``model/split_keys`` decides what follows from
that. An operation may make a later correction void; ``model/void_corrections`` decides which. Of each key
only the newest row before a time is read, so of a key with messages in several topics the partitions of the
other topics are not known.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tidemark.cassandra.scan.clustering import CqlOperator, Restriction
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import Extract
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.codec.cells import StoredRows, integer
from tidemark.collection.tables.layout import MESSAGE_ID, OFFSET, PARTITION, TOPIC, T
from tidemark.collection.tables.scanning import newest_up_to, rows_at, rows_of_keys
from tidemark.collection.tables.tables import CollectionTables

_OWN = (T, MESSAGE_ID, PARTITION, OFFSET, TOPIC)


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


class KeyVersion(NamedTuple):
    """The message of a row.

    Attributes:
        t: The time of its binding.
        message_id: Its id.
        topic: Its topic.
        partition: Its partition.
        offset: Its offset.
    """

    t: int
    message_id: int
    topic: str
    partition: int
    offset: int


def key_origins(tables: CollectionTables, t: int, keys: Iterable[Key]) -> Origins:
    """The newest rows of keys before the time ``t``; of keys that begin at it, their first rows there.

    Whether the key is gone in that row makes no difference. Rows after ``t`` do not count: a binding that is
    delivered again gets the same answer as at first. Keys without rows are left out. One row of each key is
    read; of those that an earlier attempt or another part has written at ``t``, all rows of that time.
    """
    found: Origins = {}
    begun: list[Key] = []
    for key, at, topic, origin in _read_origins(tables, newest_up_to(t), keys):
        if at < t:
            found[key, topic] = origin
        else:
            begun.append(key)
    before = list(_read_origins(tables, _newest_before(t), begun)) if begun else []
    found |= {(key, topic): origin for key, _, topic, origin in before}
    known = {key for key, *_ in before}
    if new := [key for key in begun if key not in known]:
        for key, _, topic, origin in _read_origins(tables, rows_at(t), new):
            place = key, topic
            found[place] = min(found.get(place, origin), origin)
    return found


def newest_before(
    tables: CollectionTables, t: int, first_id: int, keys: Iterable[Key]
) -> Mapping[Key, KeyVersion]:
    """The newest rows of keys before a message of the binding at ``t``; keys without one are left out.

    Rows of the message and of later ones do not count: a part that is delivered again gets the same answer as
    at first.
    """
    found: dict[Key, KeyVersion] = {}
    written: list[Key] = []
    for key, version in _read(tables, newest_up_to(t), keys):
        if version.message_id < first_id:
            found[key] = version
        else:
            written.append(key)
    earlier: dict[Key, KeyVersion] = {}
    for key, version in _read(tables, rows_at(t), written) if written else ():
        if version.message_id < first_id:
            earlier[key] = max(version, earlier.get(key, version))
    found |= earlier
    if left := [key for key in written if key not in earlier]:
        found |= dict(_read(tables, _newest_before(t), left))
    return found


def replaced_since(tables: CollectionTables, t: int, ids: Mapping[Key, int]) -> frozenset[Key]:
    """The keys that have a row after a message of the binding at ``t``, and none of the message itself.

    ``ids`` has the id of the message of each key. Where such a key has no row before the message either, what
    there was may have been removed.
    """
    newest = dict(_read(tables, _NEWEST, ids))
    later = {key for key, version in newest.items() if version[:2] > (t, ids[key])}
    own = {key for key, version in _read(tables, rows_at(t), later) if version.message_id == ids[key]}
    return frozenset(later - own)


_NEWEST = Extract(rows=1)


def _newest_before(t: int) -> Extract:
    return Extract((Restriction(T, CqlOperator.LESS, t),), rows=1)


def _read_origins(
    tables: CollectionTables, extract: Extract, keys: Iterable[Key]
) -> Iterator[tuple[Key, int, str, KeyOrigin]]:
    for key, version in _read(tables, extract, keys):
        yield key, version.t, version.topic, KeyOrigin(version.message_id, version.partition)


def _read(
    tables: CollectionTables, extract: Extract, keys: Iterable[Key]
) -> Iterator[tuple[Key, KeyVersion]]:
    place, stored = tables.place, StoredRows(tables.place)
    selected = Selected.of(place.rows, (*place.key_columns, *_OWN))
    for cells in rows_of_keys(tables, selected, extract, keys):
        t, message_id, partition, offset, topic = stored.written(cells[-len(_OWN) :], _OWN)
        numbers = integer(t), integer(message_id)
        yield (
            stored.key(cells),
            KeyVersion(*numbers, topic.decode(), integer(partition), integer(offset)),
        )
