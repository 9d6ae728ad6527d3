"""Every token is in exactly one range, whatever the nodes' tokens are."""

from itertools import chain, pairwise

import pytest
from cassandra.metadata import Murmur3Token
from hypothesis import example, given
from hypothesis import strategies as st

from tidemark.cassandra.token_ranges import HIGHEST, LOWEST, RING, TokenRange, cut_ring, deal

pytestmark = pytest.mark.unit

TOKENS = st.lists(st.integers(LOWEST, HIGHEST), max_size=20)
PIECES = st.integers(1, 200)


@given(TOKENS, PIECES)
@example([], 1)
@example([LOWEST, HIGHEST], 3)
@example([LOWEST + 1, LOWEST + 2], 100)
def test_the_ranges_are_the_whole_ring_without_gap_or_overlap(tokens: list[int], pieces: int) -> None:
    ranges = cut_ring(tokens, pieces)
    assert (ranges[0].after, ranges[-1].upto) == (LOWEST, HIGHEST)
    assert all(one.upto == next_.after for one, next_ in pairwise(ranges))
    assert all(each.width > 0 for each in ranges)


@given(TOKENS, PIECES)
def test_no_range_goes_past_the_token_of_a_node(tokens: list[int], pieces: int) -> None:
    for each in cut_ring(tokens, pieces):
        assert not [token for token in tokens if each.after < token < each.upto]


@given(PIECES)
def test_without_tokens_the_ring_is_cut_evenly(pieces: int) -> None:
    ranges = cut_ring([], pieces)
    assert len(ranges) == pieces
    assert max(each.width for each in ranges) - min(each.width for each in ranges) <= 1


@given(TOKENS, PIECES)
def test_no_range_is_much_wider_than_asked_for(tokens: list[int], pieces: int) -> None:
    assert max(each.width for each in cut_ring(tokens, pieces)) <= 2 * RING // pieces


@given(st.binary())
def test_the_lowest_token_belongs_to_no_key(key: bytes) -> None:
    assert LOWEST < Murmur3Token.from_key(key).value <= HIGHEST


@given(TOKENS, PIECES, st.integers(1, 50))
def test_dealt_ranges_are_all_there_in_their_order(tokens: list[int], pieces: int, hands: int) -> None:
    ranges = cut_ring(tokens, pieces)
    groups = deal(ranges, hands)
    assert list(chain.from_iterable(groups)) == ranges
    assert 0 < len(groups) <= hands
    assert all(groups)


def test_dealt_ranges_are_as_much_for_each() -> None:
    groups = deal(cut_ring([], 32), 4)
    assert [len(group) for group in groups] == [8, 8, 8, 8]


def test_a_range_is_named_with_its_ends() -> None:
    assert str(TokenRange(-5, 7)) == "tokens (-5, 7]"


@pytest.mark.parametrize(
    ("cut", "halves"),
    [
        (TokenRange(0, 5), [TokenRange(0, 2), TokenRange(2, 5)]),
        (TokenRange(LOWEST, HIGHEST), [TokenRange(LOWEST, -1), TokenRange(-1, HIGHEST)]),
        (TokenRange(4, 5), [TokenRange(4, 5)]),
    ],
)
def test_halves_are_together_the_whole(cut: TokenRange, halves: list[TokenRange]) -> None:
    assert cut.halves() == halves
