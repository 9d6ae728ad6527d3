"""What is stored of a collection, deletes included, in the order of the token ring: for readers that go on.

A page is a range of the ring, with the newest row of each of its keys as of a time. It depends on the tables
and the cursor alone, so it can be read again, and a reader that has stored the last token it has seen goes on
with the page that begins at it. The ring is read from its first token to its last; ranges are made wider or
narrower by the number of rows that were in the last one, so that memory holds a few thousand rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from tidemark.cassandra.scan.cell_facts import KeyToken
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.raw_pages import Row
from tidemark.cassandra.token_ranges import HIGHEST, LOWEST, RING, TokenRange
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.codec.cells import StoredRows, integer, is_true
from tidemark.collection.tables.layout import OWN_COLUMNS, CollectionPlace
from tidemark.collection.tables.scanning import between, newest_up_to, rows_of_keys, scan_rows
from tidemark.collection.tables.tables import CollectionTables

FIRST_TOKEN = LOWEST + 1
"""The token that begins the ring."""
WANTED_ROWS = 5_000
"""Of a page, approximately."""
FIRST_WIDTH = RING // 1_024
WIDEST = RING // 8
MOST_GROWTH = 8
RANGES_A_PAGE = 4
"""Ranges of one page that are read at once."""


class StoredRow(NamedTuple):
    """A row as it is stored.

    Attributes:
        token: The token of its key.
        key: The serialized CQL value of each key column.
        values: The serialized CQL value of each data column, None for null. A row that is gone has values
            only where the envelope keeps them.
        t: The time of the binding that holds its message, in µs.
        message_id: The message's id in the commit log.
        gone: Whether the message deletes the key.
        partition: The message's partition.
        offset: The message's offset.
    """

    token: int
    key: Key
    values: tuple[bytes | None, ...]
    t: int
    message_id: int
    gone: bool
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class TokenCursor:
    """Where a page begins.

    Attributes:
        token: The first token of the page, included.
        width: How many tokens it has.
    """

    token: int = FIRST_TOKEN
    width: int = FIRST_WIDTH


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A range of the ring.

    Attributes:
        rows: The rows, by token.
        next: The next page; None after the last one.
    """

    rows: list[StoredRow]
    next: TokenCursor | None


def stored_page(tables: CollectionTables, at: int, cursor: TokenCursor) -> StoredPage:
    """The newest row of every key of a page as of a time, also where it says that the key is gone."""
    last = min(cursor.token + cursor.width - 1, HIGHEST)
    ranges = _divided(TokenRange(cursor.token - 1, last))
    pages = scan_rows(tables, _selected(tables.place), newest_up_to(at), ranges)
    decode = _Decoder(tables.place).decode
    rows = sorted((decode(cells) for page in pages for cells in page), key=itemgetter(0))
    following = TokenCursor(last + 1, _next_width(cursor.width, len(rows))) if last < HIGHEST else None
    return StoredPage(rows, following)


def stored_versions(
    tables: CollectionTables, keys: Iterable[Key], before: int, until: int
) -> dict[Key, list[StoredRow]]:
    """Rows of keys, the newest first: all after ``before`` up to ``until``, and the newest up to ``before``.

    Keys without any row up to ``until`` are left out.
    """
    selected, decode, wanted = _selected(tables.place), _Decoder(tables.place).decode, list(keys)
    found: dict[Key, list[StoredRow]] = {}
    for extract in (between(before, until), newest_up_to(before)):
        for cells in rows_of_keys(tables, selected, extract, wanted):
            row = decode(cells)
            found.setdefault(row.key, []).append(row)
    for rows in found.values():
        rows.sort(key=_age, reverse=True)
    return found


def _age(row: StoredRow) -> tuple[int, int]:
    return row.t, row.message_id


def _divided(whole: TokenRange) -> list[TokenRange]:
    """A range in parts of about the same width. Both ends of the last one are those of the ring at most."""
    count = min(RANGES_A_PAGE, whole.width)
    ends = [whole.after + whole.width * number // count for number in range(count + 1)]
    return [TokenRange(after, upto) for after, upto in pairwise(ends)]


def _next_width(width: int, rows: int) -> int:
    """The width at which the next page has about as many rows as are wanted: tokens are evenly spread."""
    fitting = width * WANTED_ROWS // max(rows, 1)
    return max(min(fitting, width * MOST_GROWTH, WIDEST), 1)


def _selected(place: CollectionPlace) -> Selected:
    columns = (*place.key_columns, *OWN_COLUMNS[:-1], *place.data_columns)
    return Selected.of(place.rows, columns, [KeyToken(place.key_columns)])


class _Decoder:
    """Decodes cells in the order of ``_selected``."""

    def __init__(self, place: CollectionPlace) -> None:
        self._stored, self._width = StoredRows(place), len(place.key_columns)
        self._end = self._width + len(OWN_COLUMNS) - 1

    def decode(self, cells: Row) -> StoredRow:
        """The row in cells."""
        own = self._stored.written(cells[self._width : self._end], OWN_COLUMNS)
        t, message_id, gone, partition, offset = own
        (token,) = self._stored.written(cells[-1:], ("token",))
        return StoredRow(
            integer(token),
            self._stored.key(cells),
            self._stored.values(cells[self._end : -1]),
            integer(t),
            integer(message_id),
            is_true(gone),
            integer(partition),
            integer(offset),
        )
