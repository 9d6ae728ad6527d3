"""Pages of what is stored: which tokens they have, and how wide the next one is."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operation_samples import operations

from tidemark.cassandra.token_ranges import HIGHEST, LOWEST, RING, TokenRange
from tidemark.collection.model.envelopes.oplog import OPLOG, operation_in
from tidemark.collection.tables import stored
from tidemark.collection.tables.stored import (
    FIRST_TOKEN,
    FIRST_WIDTH,
    RANGES_A_PAGE,
    WANTED_ROWS,
    WIDEST,
    TokenCursor,
    stored_page,
)
from tidemark.operations.operation import encoded

pytestmark = pytest.mark.unit


@pytest.fixture
def ring(monkeypatch):
    """A ring of evenly spread keys: reading a range gives their tokens."""

    def made(count):
        step = RING // count
        read = []

        def scan_rows(tables, selected, extract, ranges):
            for one in ranges:
                read.append(one)
                first = -(-(one.after + 1 - FIRST_TOKEN) // step)
                last = (one.upto - FIRST_TOKEN) // step
                yield [(FIRST_TOKEN + number * step,) for number in range(first, last + 1)]

        class Decoder:
            def __init__(self, place):
                pass

            def decode(self, cells):
                return cells

        monkeypatch.setattr(stored, "scan_rows", scan_rows)
        monkeypatch.setattr(stored, "_Decoder", Decoder)
        monkeypatch.setattr(stored, "_selected", lambda place: None)
        return read

    return made


class Tables:
    place = None


def pages_from(cursor):
    while cursor is not None:
        page = stored_page(Tables, 10, cursor)
        yield page
        cursor = page.next


@pytest.mark.parametrize("count", [1, 5, 1_000, 60_000])
def test_the_whole_ring_is_read_once_and_in_order(ring, count):
    read = ring(count)
    tokens = [row[0] for page in pages_from(TokenCursor()) for row in page.rows]
    assert tokens == sorted(set(tokens))
    assert len(tokens) in (count, count + 1)
    assert (read[0].after, read[-1].upto) == (LOWEST, HIGHEST)
    assert all(one.upto == other.after for one, other in itertools.pairwise(read))


def test_a_small_collection_takes_few_pages(ring):
    ring(3)
    assert len(list(pages_from(TokenCursor()))) <= 12


def test_a_page_has_about_as_many_rows_as_are_wanted(ring):
    ring(300_000)
    sizes = [len(page.rows) for page in pages_from(TokenCursor())][3:-1]
    assert max(sizes) < 2 * WANTED_ROWS
    assert min(sizes) > WANTED_ROWS // 2


def test_a_page_of_very_many_rows_makes_the_next_one_narrower():
    assert stored._next_width(FIRST_WIDTH, 10 * WANTED_ROWS) == FIRST_WIDTH // 10
    assert stored._next_width(1, 10 * WANTED_ROWS) == 1
    assert stored._next_width(WIDEST, 0) == WIDEST


def test_it_goes_on_with_the_token_that_was_seen_last(ring):
    ring(1_000)
    tokens = [row[0] for page in pages_from(TokenCursor()) for row in page.rows]
    rest = [row[0] for page in pages_from(TokenCursor(tokens[500])) for row in page.rows]
    assert rest == tokens[500:]


@given(st.integers(LOWEST, HIGHEST - 1), st.integers(1, 2**40))
def test_the_ranges_of_a_page_cover_it(after, width):
    upto = min(after + width, HIGHEST)
    ranges = stored._divided(TokenRange(after, upto))
    assert (ranges[0].after, ranges[-1].upto) == (after, upto)
    assert len(ranges) <= RANGES_A_PAGE
    assert all(one.width > 0 for one in ranges)


@given(operations)
def test_the_cells_of_a_row_are_its_operation(operation):
    assert OPLOG.read_whole is not None
    found = OPLOG.read_whole(operation.key, encoded(operation), ())
    assert operation_in(found.key, found.values) == operation
