"""The rows of a page follow the size of its rows."""

from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.client.tables.page_size import FEWEST_ROWS, FIRST_ROWS, MOST_ROWS, PAGE_BYTES, rows_of_page

pytestmark = pytest.mark.unit


def page(rows: int, text: str | None, data: bytes | None = None) -> list[Any]:
    return [SimpleNamespace(payload_txt=text, payload_bin=data)] * rows


@pytest.mark.parametrize(
    ("found", "rows"),
    [
        (None, FIRST_ROWS),
        ([], FIRST_ROWS),
        (page(500, "x" * 200), 2_000),
        (page(500, None), MOST_ROWS),
        (page(500, "x" * 9_200), PAGE_BYTES // 10_000),
        (page(3, None, b"x" * 9_200), PAGE_BYTES // 10_000),
        (page(500, "x" * 1_000_000), FEWEST_ROWS),
    ],
)
def test_rows_of_the_next_page(found, rows: int) -> None:
    assert rows_of_page(found) == rows
