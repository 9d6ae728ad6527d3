"""Cells of a result stay as they came."""

from io import BytesIO
from struct import pack
from types import SimpleNamespace

import pytest
from cassandra.cqltypes import Int32Type, UTF8Type
from cassandra.protocol import RESULT_KIND_ROWS
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cql_samples import PROTOCOL, with_length

from tidemark.cassandra.scan import raw_pages
from tidemark.cassandra.scan.raw_pages import Page

pytestmark = pytest.mark.unit

ROWS = st.lists(st.tuples(st.none() | st.binary(), st.none() | st.binary()))
COLUMNS = [("shop", "events", "id", Int32Type), ("shop", "events", "payload", UTF8Type)]


def body(rows: list[tuple[bytes | None, ...]]) -> bytes:
    cells = (b"\xff\xff\xff\xff" if cell is None else with_length(cell) for row in rows for cell in row)
    return pack(">i", len(rows)) + b"".join(cells)


@pytest.mark.parametrize("read", [raw_pages._read_rows_in_c, raw_pages._read_rows_in_python])
@given(rows=ROWS)
def test_rows_are_read_to_their_last_cell(read, rows) -> None:
    assert [tuple(row) for row in read(body(rows), ["id", "payload"], PROTOCOL)] == rows


@pytest.mark.parametrize("state", [None, b"further"])
def test_a_page_knows_where_the_next_begins(state: bytes | None) -> None:
    flags = 4 if state is None else 4 | 2
    data = body([(b"\0\0\0\1", None)])
    message = pack(">iii", RESULT_KIND_ROWS, flags, 2) + (with_length(state) if state else b"") + data
    result = raw_pages._RawResult.recv_body(BytesIO(message), PROTOCOL, {}, COLUMNS, None)
    assert result.parsed_rows == Page([(b"\0\0\0\1", None)], len(data), state)


def test_a_session_is_opened_once_beside_each_other() -> None:
    def connect() -> SimpleNamespace:
        return SimpleNamespace(execution_profile_clone_update=lambda profile, row_factory: None)

    class Session:
        cluster = SimpleNamespace(connect=connect)

    one, other = Session(), Session()
    assert raw_pages.raw_session(one) is raw_pages.raw_session(one)
    assert raw_pages.raw_session(one) is not raw_pages.raw_session(other)
