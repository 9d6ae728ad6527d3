"""The rule that a key of a topic comes from one partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.collection_samples import given_records, given_rules

from tidemark.collection.model.rows import rows_of
from tidemark.collection.model.split_keys import first_split, places_of

pytestmark = pytest.mark.unit

RULES = given_rules()


def given_rows(keys, partition, base, topic="accounts"):
    """A row for each letter."""
    records = [(key.encode(), b"{}") for key in keys]
    return rows_of(given_records(*records, partition=partition, base=base, topic=topic), RULES).rows


def test_keys_of_different_partitions_have_nothing_in_common():
    assert first_split([*given_rows("aab", 0, 100), *given_rows("cd", 1, 200)], {}) is None


def test_the_lowest_message_whose_key_was_elsewhere_is_bad():
    found = first_split([*given_rows("ab", 0, 100), *given_rows("cba", 1, 200)], {})
    assert (found.id, found.topic, found.partition, found.offset) == (201, "accounts", 1, 11)
    assert found.problem.startswith("its key was in partition 0 of accounts before")


def test_a_key_that_was_known_before_counts():
    known = places_of(given_rows("ab", 0, 100))
    assert first_split(given_rows("b", 1, 200), known).id == 200
    assert first_split(given_rows("b", 0, 200), known) is None


def test_a_delete_says_as_much_about_the_place_of_a_key_as_any_message():
    known = places_of(given_rows("a", 0, 100))
    gone = rows_of(given_records((b"a", None), partition=1, base=200), RULES).rows
    assert first_split(gone, known).id == 200


def test_keys_of_different_topics_are_not_compared():
    known = places_of(given_rows("a", 0, 100, "orders"))
    assert first_split(given_rows("a", 1, 200, "accounts"), known) is None


def test_a_key_stays_where_it_was_first():
    known = places_of(given_rows("a", 1, 200), places_of(given_rows("a", 0, 100)))
    assert known == {((b"a",), "accounts"): 0}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=8), st.integers(0, 8))
def test_what_was_seen_before_and_what_is_seen_now_are_one_history(messages, cut):
    rows = [
        row
        for place, (key, partition) in enumerate(messages)
        for row in given_rows(key, partition, 100 + place)
    ]
    wanted = first_split(rows, {})
    before = first_split(rows[:cut], {})
    assert (before or first_split(rows[cut:], places_of(rows[:cut]))) == wanted
