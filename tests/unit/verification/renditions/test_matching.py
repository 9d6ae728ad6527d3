"""Differences are matched with declared rules and counted; nothing depends on the order or on the pieces."""

import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.pipeline.expect import Expectation, RowChange
from tidemark.verification.renditions.difference import RowDifference, differing, plain
from tidemark.verification.renditions.matching import (
    MOST_SAMPLES,
    DifferenceTally,
    RuleMatcher,
    explained_rows,
    outcomes,
)

pytestmark = pytest.mark.unit

MISSING, ADDED, CHANGED = RowChange


def rule(**keys):
    return Expectation.model_validate({"reason": "meant", **keys})


def missing(key="a", **row):
    return RowDifference(MISSING, key, (), row, None)


def added(key="a", **row):
    return RowDifference(ADDED, key, (), None, row)


def changed(key="a", old=None, new=None):
    old, new = old or {}, new or {}
    return RowDifference(CHANGED, key, differing(old, new), old, new)


def counted(rules, *differences):
    matcher, tally = RuleMatcher(tuple(rules)), DifferenceTally()
    for one in differences:
        matcher.judge(tally, one)
    return tally


def explained(rules, *differences):
    tally = counted(rules, *differences)
    return explained_rows(tally, outcomes(rules, tally))


# Example 3.1: bob is one too high, and the test account carol is not filtered


BOB = rule(column="balance", where="owner == bob", reason="balances of bob were one too high")
CAROL = rule(rows="missing", where="owner == carol", reason="carol is a test account")


def test_3_1_every_difference_of_a_mended_transform_is_explained():
    rules = [BOB, CAROL]
    found = counted(
        rules,
        changed("bob", {"owner": "bob", "balance": 50}, {"owner": "bob", "balance": 49}),
        missing("carol", owner="carol", balance=7),
    )
    assert (found.total, found.unexplained) == (2, 0)
    assert (found.changes, found.columns) == ({CHANGED: 1, MISSING: 1}, {"balance": 1})
    assert [one.matched for one in outcomes(rules, found)] == [1, 1]


def test_3_1_a_difference_that_no_rule_is_about_is_unexplained():
    found = counted([BOB, CAROL], missing("dave", owner="dave", balance=5))
    assert (found.total, found.unexplained) == (1, 1)
    assert explained([BOB, CAROL], missing("dave", owner="dave")) == 0


# What a rule covers


@pytest.mark.parametrize(
    ("keys", "difference", "is_covered"),
    [
        ({"rows": "missing"}, missing(), True),
        ({"rows": "missing"}, added(), False),
        ({"rows": "added"}, added(), True),
        ({"rows": "changed"}, missing(), False),
        ({}, changed(old={"a": 1}, new={"a": 2}), True),
        ({"column": "a"}, changed(old={"a": 1}, new={"a": 2}), True),
        ({"column": "b"}, changed(old={"a": 1}, new={"a": 2}), False),
        ({"column": "a"}, changed(old={"a": 1, "b": 1}, new={"a": 2, "b": 2}), False),
        ({"column": "value"}, changed(old={"value.a": 1}, new={"value.a": 2}), True),
        ({"column": "val"}, changed(old={"value.a": 1}, new={"value.a": 2}), False),
    ],
)
def test_a_rule_covers_kinds_of_rows_and_columns(keys, difference, is_covered):
    assert explained([rule(**keys)], difference) == is_covered


def test_a_row_of_which_two_columns_differ_may_need_two_rules():
    difference = changed(old={"a": 1, "b": 1}, new={"a": 2, "b": 2})
    rules = [rule(column="a"), rule(column="b")]
    tally = counted(rules, difference)
    assert (tally.unexplained, tally.by_rule) == (0, {0: 1, 1: 1})
    assert counted(rules[:1], difference).by_rule == {}


@pytest.mark.parametrize(
    ("where", "is_met"),
    [
        ("owner == bob", True),
        ("old.owner == bob", True),
        ("new.owner == bob", False),
        ("new.owner == rob", True),
        ("balance > 49", True),
        ("balance > 50", False),
        ("new.balance <= 49.0", True),
        ("owner =~ ^b", True),
        ("owner > 3", False),
        ("tag > 3", False),
        ("tag == null", True),
        ("owner == bob and balance == 51", False),
        ("owner == bob and new.owner == rob", True),
    ],
)
def test_conditions_are_about_the_row_of_today_or_the_new_one(where, is_met):
    difference = changed(
        old={"owner": "bob", "balance": Decimal("50")}, new={"owner": "rob", "balance": Decimal("49")}
    )
    assert explained([rule(where=where)], difference) == is_met


def test_a_condition_on_an_added_row_is_about_the_new_one():
    rules = [rule(rows="added", where="owner == ann")]
    assert explained(rules, added(owner="ann")) == 1
    assert explained([rule(rows="added", where="old.owner == ann")], added(owner="ann")) == 0


def test_the_first_rule_that_covers_a_row_explains_it():
    rules = [rule(rows="missing", where="n == 1"), rule(rows="missing")]
    tally = counted(rules, missing(n=1), missing(n=2))
    assert [one.matched for one in outcomes(rules, tally)] == [1, 1]


def test_rows_beyond_the_limit_of_a_rule_are_not_explained():
    rules = [rule(rows="missing", at_most=2)]
    tally = counted(rules, *(missing(str(n), n=n) for n in range(5)))
    (outcome,) = outcomes(rules, tally)
    assert (outcome.matched, outcome.beyond, explained_rows(tally, [outcome])) == (5, 3, 2)


def test_a_rule_that_matches_nothing_is_known():
    rules = [rule(rows="added")]
    assert [one.matched for one in outcomes(rules, counted(rules, missing()))] == [0]


def test_only_some_rows_are_shown_and_always_the_same():
    differences = [missing(f"{n:03}") for n in range(50)]
    forwards, backwards = counted([], *differences), counted([], *reversed(differences))
    (samples,) = forwards.samples.values()
    assert [one.where for one in samples] == [f"{n:03}" for n in range(MOST_SAMPLES)]
    assert backwards.samples == forwards.samples


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"\x01", "0x01"),
        ({"b", "a"}, ["a", "b"]),
        ({1: b"\x00"}, {"1": "0x00"}),
        ((1, None), [1, None]),
        (Decimal("1.5"), Decimal("1.5")),
        (True, True),
    ],
)
def test_values_of_columns_become_plain(value, found):
    assert plain(value) == found


def test_a_truth_value_is_no_number():
    assert differing({"a": True, "b": 1}, {"a": 1, "b": 1.0}) == ("a",)


def test_long_values_are_shown_in_part():
    assert len(missing(value="x" * 10_000).said) < 300


# Hypothesis: counts add up, and nothing is explained that no rule covers

ROWS = st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2)
DIFFERENCES = st.one_of(
    st.builds(lambda key, row: missing(key, **row), st.sampled_from("xyz"), ROWS),
    st.builds(lambda key, row: added(key, **row), st.sampled_from("xyz"), ROWS),
    st.builds(changed, st.sampled_from("xyz"), ROWS, ROWS).filter(lambda one: one.columns),
)
WHERE = st.none() | st.builds(
    lambda side, field, number: f"{side}{field} == {number}",
    st.sampled_from(["", "old.", "new."]),
    st.sampled_from("ab"),
    st.integers(0, 2),
)
MOST = st.none() | st.integers(0, 3)
RULES = st.lists(
    st.one_of(
        st.fixed_dictionaries({"rows": st.sampled_from(RowChange), "where": WHERE, "at_most": MOST}),
        st.fixed_dictionaries({"column": st.sampled_from("ab"), "where": WHERE}),
    ),
    max_size=4,
).map(lambda declared: [rule(**keys) for keys in declared])


@given(RULES, st.lists(DIFFERENCES, max_size=12), st.integers(0, 12))
def test_counts_of_pieces_add_up_in_any_order(rules, differences, cut):
    whole = counted(rules, *differences)
    pieces = [counted(rules, *differences[cut:]), counted(rules, *differences[:cut])]
    assert DifferenceTally.sum(pickle.loads(pickle.dumps(pieces))) == whole


@given(RULES, st.lists(DIFFERENCES, max_size=12))
def test_nothing_is_explained_that_no_rule_covers(rules, differences):
    tally = counted(rules, *differences)
    found = outcomes(rules, tally)
    explained = explained_rows(tally, found)
    assert 0 <= explained <= tally.total == len(differences)
    assert (explained == tally.total) == (
        all(RuleMatcher(tuple(rules)).explain(one) for one in differences)
        and not any(one.beyond for one in found)
    )
    if not rules:
        assert explained == 0


@given(RULES, DIFFERENCES)
def test_a_further_rule_never_makes_a_row_unexplained(rules, difference):
    fewer = RuleMatcher(tuple(rules[:-1])).explain(difference)
    assert not fewer or RuleMatcher(tuple(rules)).explain(difference)
