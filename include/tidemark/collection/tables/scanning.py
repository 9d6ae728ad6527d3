"""Undecoded rows of a collection's tables: of the whole table as of a time, and of given keys.

What is read of each partition is decided by the server, which has the newest row first.
"""

from collections.abc import Iterable, Iterator, Sequence

from tidemark.cassandra.driver import Session
from tidemark.cassandra.scan.cell_facts import Fact, facts_of
from tidemark.cassandra.scan.clustering import CqlOperator, Restriction
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.partition_keys import PartitionKey, key_groups
from tidemark.cassandra.scan.raw_pages import Row
from tidemark.cassandra.scan.table_scan import (
    EVERY_ROW,
    USUAL,
    Extract,
    Part,
    ScanSettings,
    scan_pages,
)
from tidemark.cassandra.size import ring_tokens
from tidemark.cassandra.token_ranges import TokenRange, cut_ring
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.layout import GONE, CollectionPlace, T
from tidemark.collection.tables.statements import row_columns
from tidemark.collection.tables.tables import CollectionTables

PIECES = 32
"""Ranges that the ring is cut into. A scan cuts those for which the server times out."""
GROUPS_IN_FLIGHT = 16
"""Statements in flight that each read up to ``KEYS_AT_ONCE`` partitions."""


def whole_ring(session: Session) -> list[TokenRange]:
    """The ranges of the whole ring, for callers that do not divide it themselves."""
    return cut_ring(ring_tokens(session), PIECES)


def newest_up_to(at: int) -> Extract:
    """The newest row of each partition up to a time."""
    return Extract((Restriction(T, CqlOperator.LESS_OR_EQUAL, at),), rows=1)


def between(after: int, until: int) -> Extract:
    """All rows after a time and up to another one."""
    after_it = Restriction(T, CqlOperator.GREATER, after)
    return Extract((after_it, Restriction(T, CqlOperator.LESS_OR_EQUAL, until)))


def rows_at(t: int) -> Extract:
    """All rows of a time."""
    return Extract((Restriction(T, CqlOperator.EQUAL, t),))


def last_two_times(place: CollectionPlace, t: int) -> Extract:
    """The newest row of each of the last two times up to ``t``."""
    up_to = Restriction(T, CqlOperator.LESS_OR_EQUAL, t)
    return Extract((up_to,), rows=2, one_for_each=(*place.key_columns, T))


def whole_rows(place: CollectionPlace) -> Selected:
    """Everything in a row: the columns in the order of ``row_columns``, then the write time."""
    return Selected.of(place.rows, row_columns(place), facts_of(place.rows, Fact.WRITE_TIME, [GONE]))


def scan_rows(
    tables: CollectionTables,
    selected: Selected,
    extract: Extract,
    parts: Iterable[Part],
    in_flight: int = USUAL.in_flight,
) -> Iterator[Sequence[Row]]:
    """Undecoded rows of parts of the table, page by page."""
    settings = ScanSettings(tables.consistency, in_flight=in_flight)
    for page in scan_pages(tables.session, selected, parts, extract, settings):
        yield page.rows


def rows_of_keys(
    tables: CollectionTables, selected: Selected, extract: Extract, keys: Iterable[Key]
) -> Iterator[Row]:
    """Undecoded rows of these keys, in no order; each key is read once."""
    for rows in scan_rows(tables, selected, extract, key_groups(keys), GROUPS_IN_FLIGHT):
        yield from rows


def keys_changed(tables: CollectionTables, shard: int, t: int) -> Iterator[list[Key]]:
    """The keys that have rows of a shard at a time, page by page and in the order of the table."""
    place = tables.place
    selected = Selected.of(place.changes, place.key_columns)
    for rows in scan_rows(tables, selected, EVERY_ROW, [PartitionKey((shard, t))]):
        yield [tuple(cell or b"" for cell in row) for row in rows]
