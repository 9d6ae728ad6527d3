"""The vectors of the contract's 3.3."""

import pytest

from tidemark.journal.segments import (
    head_segment,
    head_segments,
    java_hash,
    row_segment,
    stored_segment_size,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("key", "hashed", "today", "old"),
    [
        ("id", 3355, 3355, 55),
        ("ID", 3355, 3355, 55),
        ("journal ID", 969045668, 5668, 68),
        ("id0", 104053, 4053, 53),
        ("id1", 104054, 4054, 54),
        ("", 0, 0, 0),
        ("persistence-id-0001", -901926843, 6843, 43),
        ("žluťoučký", -1512236005, 6005, 5),
        ("\U0001f600", 1772899, 2899, 99),
    ],
)
def test_3_3_segment_of_a_head(key: str, hashed: int, today: int, old: int) -> None:
    assert java_hash(key.lower()) == hashed
    assert (head_segment(key), head_segment(key, 100)) == (today, old)


def test_3_3_a_head_is_looked_for_in_todays_segment_first() -> None:
    assert head_segments("id") == (3355, 55)


def test_3_3_no_second_look_where_both_segments_are_one() -> None:
    assert head_segments("") == (0,)


@pytest.mark.parametrize(
    ("seq_nr", "size", "segment"), [(1, 2, 0), (2, 2, 0), (3, 2, 1), (10_000, 10_000, 0), (10_001, 10_000, 1)]
)
def test_3_3_segment_of_a_row(seq_nr: int, size: int, segment: int) -> None:
    assert row_segment(seq_nr, size) == segment


@pytest.mark.parametrize(("stored", "meant"), [(None, 10_000), (0, 10_000), (1, 10_000), (2, 2), (500, 500)])
def test_3_3_a_stored_size_that_cannot_be_means_the_default(stored: int | None, meant: int) -> None:
    assert stored_segment_size(stored) == meant
