"""Finds and deletes the versions of keys that no reader needs any more: the deletions of ``keep``.

Nothing here decides up to which time: readers may hold older times, and the caller knows them.
"""

from collections.abc import Iterable, Iterator

from tidemark.cassandra.scan.cell_facts import Fact, facts_of
from tidemark.cassandra.scan.clustering import CqlOperator, Restriction
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import Extract, Part
from tidemark.collection.tables.codec.cells import StoredRows
from tidemark.collection.tables.layout import GONE, MESSAGE_ID, T
from tidemark.collection.tables.scanning import scan_rows, whole_ring
from tidemark.collection.tables.tables import CollectionTables
from tidemark.collection.tables.versions import OlderVersions, obsolete


def find_obsolete(
    tables: CollectionTables, since: int, parts: Iterable[Part] | None = None
) -> Iterator[OlderVersions]:
    """The keys with versions that no time from ``since`` on can see. Reads at most two rows of a key."""
    place, stored = tables.place, StoredRows(tables.place)
    facts = facts_of(place.rows, Fact.WRITE_TIME, [GONE])
    selected = Selected.of(place.rows, (*place.key_columns, T, MESSAGE_ID), facts)
    up_to = Restriction(T, CqlOperator.LESS_OR_EQUAL, since)
    ranges = whole_ring(tables.session) if parts is None else parts
    # One part at a time: the rows of a key then come one after the other, also across pages.
    pages = scan_rows(tables, selected, Extract((up_to,), rows=2), ranges, in_flight=1)
    rows = (cells for page in pages for cells in page)
    yield from obsolete(stored.version(cells) for cells in rows)


def drop_obsolete(tables: CollectionTables, found: Iterable[OlderVersions]) -> int:
    """Deletes obsolete versions.

    Waits until all is acknowledged, and returns the number of keys. Can be repeated.
    """
    count = 0
    with tables.bulk() as bulk:
        for one in found:
            tables.drop_older(bulk, one)
            count += 1
    return count


def drop_times(tables: CollectionTables, times: Iterable[int]) -> int:
    """Deletes what there is about the changes at these times, which must be ``since`` or earlier.

    Waits until all is acknowledged, and returns the number of times. Can be repeated.
    """
    count = 0
    with tables.bulk() as bulk:
        for t in times:
            tables.drop_changes(bulk, t)
            count += 1
    return count
