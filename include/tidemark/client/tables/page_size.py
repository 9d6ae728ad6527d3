"""The number of rows that a page of the table ``journal`` should have. Knows nothing of Cassandra.

A page is a request, and Java, the driver and this process work on it one after the other. So large pages are
faster, but a reader holds two of them in memory, and waits for one before its first event.
"""

from collections.abc import Sequence
from typing import Any

FIRST_ROWS = 500
"""Rows of a page while the size of rows is not known."""
FEWEST_ROWS, MOST_ROWS = 50, 2_000
PAGE_BYTES = 2_000_000
"""Bytes of memory that a page should take."""
ROW_BYTES = 800
"""Bytes of memory that a row takes besides its payload."""

_EVERY = 16


def rows_of_page(page: Sequence[Any] | None) -> int:
    """The rows of the next page, after this one; some of its rows are measured.

    None, or a page without rows, says nothing about their size.
    """
    measured = (page or ())[::_EVERY]
    if not measured:
        return FIRST_ROWS
    payloads = sum(len(row.payload_txt or row.payload_bin or b"") for row in measured)
    return min(
        max(PAGE_BYTES * len(measured) // (ROW_BYTES * len(measured) + payloads), FEWEST_ROWS), MOST_ROWS
    )
