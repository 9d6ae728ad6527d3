"""Binding lists on plain values: what may leave, how lists are cut and folded, and the index of runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.log_samples import given_binding

from tidemark.log.errors import BadBinding
from tidemark.log.files import run_index
from tidemark.log.model.binding import Binding
from tidemark.log.model.binding_list import (
    SIZES,
    BindingList,
    BindingLists,
    ListedBindings,
    ListSizes,
    archivable,
    cut_lists,
    fold,
    lines_from_bytes,
)

pytestmark = pytest.mark.unit

HOUR = 3_600_000_000


def given_bindings(count: int, first: int = 0) -> list[Binding]:
    """Bindings at t = 10, 20, …, each owning one id."""
    return [
        given_binding(10 * (i + 1), i, ("orders", 0, i, i + 1), run_id=f"run-{i}")
        for i in range(first, first + count)
    ]


def given_line(number: int, level: int = 0, width: int = 1) -> BindingList:
    first = number * width
    return BindingList(
        f"bindings/{number}",
        "d",
        first,
        first + width - 1,
        first * 10,
        (first + width) * 10 - 1,
        width,
        level,
    )


# What may leave


@pytest.mark.parametrize(
    ("passed", "before", "newest", "expected"),
    [
        (4, 1_000, 50, [10, 20, 30, 40]),
        (2, 1_000, 50, [10, 20, 30]),
        (4, 30, 50, [10, 20]),
        (-1, 1_000, 50, []),
        (4, 1_000, 10, []),
    ],
    ids=[
        "all but the newest",
        "what every consumer passed",
        "what is old enough",
        "nothing is passed",
        "newest",
    ],
)
def test_the_oldest_bindings_leave_until_one_must_stay(passed, before, newest, expected):
    assert [one.t for one in archivable(given_bindings(5), passed, before, newest)] == expected


def test_a_binding_that_a_consumer_is_inside_of_stays():
    wide = [given_binding(10, 0, ("orders", 0, 0, 4)), given_binding(20, 4, ("orders", 0, 4, 5))]
    assert list(archivable(wide, 2, 1_000, 20)) == []


@pytest.mark.parametrize(
    ("unlisted", "age", "is_due"),
    [
        (5, 0, False),
        (5, SIZES.span - 1, False),
        (5, SIZES.span, True),
        (SIZES.bindings * 8, HOUR, True),
        (SIZES.bindings, HOUR, False),
    ],
    ids=["young", "few and not a day", "few but a day", "many within an hour", "not yet as many"],
)
def test_a_list_is_worth_it_once_many_bindings_or_a_day_of_them_are_old(unlisted, age, is_due):
    lists = BindingLists(unlisted=unlisted, since=1)
    assert lists.is_due(1 + 7 * HOUR + age, 7 * HOUR) is is_due


def test_nothing_is_due_before_the_first_publication():
    assert not BindingLists().is_due(10**18, 0)


def test_the_age_of_bindings_of_an_earlier_version_is_looked_up_once():
    assert BindingLists().with_published(500, is_first=False).is_due(500 + SIZES.span, 1)
    assert not BindingLists().with_published(500, is_first=True).is_due(501, 1)


# Cutting and folding


def test_lists_are_cut_at_their_greatest_size_and_the_rest_waits():
    bindings = given_bindings(25)
    assert [len(part) for part in cut_lists(bindings, ListSizes(bindings=10))] == [10, 10]
    assert [len(part) for part in cut_lists(bindings[:7], ListSizes(bindings=10))] == [7]
    assert cut_lists([], ListSizes(bindings=10)) == []


def test_bindings_of_many_partitions_make_short_lists():
    wide = [
        given_binding(10 * (i + 1), 100 * i, *(("orders", number, i, i + 1) for number in range(100)))
        for i in range(6)
    ]
    sizes = ListSizes(characters=2 * len(wide[0].to_json()))
    assert [len(part) for part in cut_lists(wide, sizes)] == [2, 2, 2]


@given(st.integers(1, 5 * SIZES.fanout**2))
def test_the_number_of_lines_grows_with_the_logarithm(count):
    lists = BindingLists()
    for number in range(count):
        lists = lists.with_list(given_line(number), since=0)
        while lines := lists.foldable():
            lists = lists.with_fold(fold(lines, f"bindings/up-{number}")[0])
    assert len(lists.lines) <= (SIZES.fanout - 1) * 3
    assert (lists.count, lists.last_id) == (count, count - 1)
    assert [line.first_id for line in lists.lines] == [0, *(line.last_id + 1 for line in lists.lines)][:-1]


def test_a_folded_line_names_what_it_stands_for():
    lines = tuple(given_line(number) for number in range(SIZES.fanout))
    line, data = fold(lines, "bindings/up")
    assert (line.level, line.count, line.first_id, line.last_id) == (1, SIZES.fanout, 0, SIZES.fanout - 1)
    assert lines_from_bytes(data) == lines


def test_a_list_that_leaves_a_gap_is_refused():
    with pytest.raises(BadBinding):
        BindingLists().with_list(given_line(0), since=0).with_list(given_line(2), since=0)


# Content


def test_a_list_holds_whole_bindings_and_the_offsets_before_them():
    first = ListedBindings((), tuple(given_bindings(3)))
    second = ListedBindings(first.after, tuple(given_bindings(2, first=3)))
    assert ListedBindings.from_bytes(second.to_bytes()) == second
    assert [(one.place, one.offset, one.base, one.t) for one in second.before] == [(("orders", 0), 2, 2, 30)]
    assert second.before[0].binding.offsets_at(2) == {("orders", 0): 2}


def test_equal_lists_have_equal_bytes():
    assert ListedBindings((), tuple(given_bindings(3))).to_bytes() == (
        ListedBindings((), tuple(given_bindings(3))).to_bytes()
    )


def test_bindings_that_do_not_follow_each_other_are_no_list():
    one, _, other = given_bindings(3)
    with pytest.raises(BadBinding):
        ListedBindings((), (one, other))


def test_the_manifests_entry_comes_back():
    lists = BindingLists().with_published(10, is_first=True).with_list(given_line(0), since=40)
    assert BindingLists.from_row(lists.to_row()) == lists
    assert BindingLists.from_row(None) == BindingLists()


# The index of runs


@given(st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=3_000), st.integers(0, 2**64 - 1))
def test_a_key_is_found_exactly_where_it_is(keys, other):
    data = run_index.encode(keys)
    assert len(data) == run_index.size_of(len(keys))
    assert run_index.decode(data) == sorted(keys)

    def read_at(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    for key in [min(keys), max(keys), *list(keys)[:10]]:
        assert run_index.has_key(key, len(keys), read_at)
    assert run_index.has_key(other, len(keys), read_at) is (other in keys)


def test_many_keys_need_few_reads():
    keys = [run_index.run_key(f"run-{number}") for number in range(100_000)]
    data, reads = run_index.encode(keys), []

    def read_at(offset: int, length: int) -> bytes:
        reads.append(offset)
        return data[offset : offset + length]

    for number in range(500):
        assert run_index.has_key(run_index.run_key(f"run-{number}"), len(keys), read_at)
        assert not run_index.has_key(run_index.run_key(f"other-{number}"), len(keys), read_at)
    assert len(reads) < 3 * 1_000


@given(st.integers(0, 4_095))
def test_a_damaged_block_is_an_error_and_never_a_run_that_is_not_found(byte):
    keys = [run_index.run_key(str(number)) for number in range(run_index.KEYS_PER_BLOCK)]
    data = bytearray(run_index.encode(keys))
    data[byte] ^= 1
    with pytest.raises(run_index.BlockDamaged):
        run_index.has_key(keys[0], len(keys), lambda offset, length: bytes(data[offset : offset + length]))
