"""Vectors and their texts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.oplog.model.vector import (
    LARGEST_OFFSET,
    MovingVector,
    covers,
    distance,
    joined,
    read_vector,
    vector_text,
)

pytestmark = pytest.mark.unit

VECTORS = st.lists(st.integers(0, LARGEST_OFFSET), min_size=1, max_size=12).map(tuple)


@given(VECTORS)
def test_a_vector_comes_back_from_its_text(vector: tuple[int, ...]) -> None:
    assert read_vector(vector_text(vector)) == vector


@given(VECTORS)
def test_the_text_of_a_vector_needs_no_escape_in_a_url(vector: tuple[int, ...]) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]+", vector_text(vector))


@given(st.text(max_size=24))
def test_a_text_that_no_vector_has_is_refused(text: str) -> None:
    try:
        found = read_vector(text)
    except ValueError:
        return
    assert vector_text(found) == text


@pytest.mark.parametrize("text", ["", "A", "gA", "AA==", "A A", "é", "gICAgICAgICAgAE", "AAB"])
def test_malformed_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a vector"):
        read_vector(text)


def test_offsets_of_a_thousand_partitions_fit_into_a_header() -> None:
    assert len(vector_text([10**9] * 1000)) < 7_000


def test_a_vector_covers_one_that_is_nowhere_ahead() -> None:
    assert covers((3, 5), (3, 4))


def test_a_vector_does_not_cover_one_that_is_ahead_somewhere() -> None:
    assert not covers((9, 4), (3, 5))


def test_joined_vectors_have_what_one_of_them_has() -> None:
    assert joined((3, 5), (4, 1)) == (4, 5)


def test_the_distance_leaves_out_where_the_vector_is_ahead() -> None:
    assert distance((3, 9), (5, 1)) == 2


@given(VECTORS, st.data())
def test_a_moving_vector_has_the_text_of_its_offsets(vector: tuple[int, ...], data: st.DataObject) -> None:
    moving = MovingVector(vector)
    partition = data.draw(st.integers(0, len(vector) - 1))
    moving.move(partition, data.draw(st.integers(0, LARGEST_OFFSET)))
    assert moving.text.decode() == vector_text(moving.offsets)


def test_a_moving_vector_never_goes_back() -> None:
    moving = MovingVector((5, 5))
    moving.move(0, 3)
    assert moving.offsets == (5, 5)
