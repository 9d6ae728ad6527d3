"""What is different between two visible states, and how it is said."""

from datetime import date
from typing import Any
from uuid import UUID

import pytest

from tidemark.journal.comparison import Comparison, compare
from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.journal.digest import row_digest
from tidemark.journal.head import Head
from tidemark.journal.visible import FoundRow, Hidden, Visible, choose_head, visible_of, why_hidden

pytestmark = pytest.mark.unit

OURS, THEIRS = UUID(int=1), UUID(int=2)


def head(**changes: Any) -> Head:
    told = {"seq_nr": 3, "delete_to": None, "segment_size": 2, "record_id": OURS, "partition": 0, "offset": 9}
    return Head(**{"segment": 7, "created": 1, "updated": 1, **told, **changes})


def row(seq_nr: int, payload: str = "{}", segment: int | None = None, whose: UUID | None = OURS) -> FoundRow:
    digest = row_digest(0, seq_nr, None, None, None, "{}", "json", payload, None, None)
    at = (seq_nr - 1) // 2 if segment is None else segment
    return FoundRow(at, seq_nr, 100 + seq_nr, whose, digest)


def expected() -> Visible:
    return visible_of(head(), [row(1), row(2), row(3)])


def differences(found: Head | None, *rows: FoundRow, most: int = 20) -> list[Difference]:
    comparison = Comparison("orders", "k", expected(), found, most)
    for each in rows:
        comparison.take(each)
    return comparison.conclude()


def said(*found: Difference) -> list[str]:
    return [one.what for one in found]


ALL = (row(1), row(2), row(3))


def test_the_same_is_no_difference() -> None:
    assert differences(head(), *ALL) == []


def test_what_cannot_be_told_is_no_difference() -> None:
    theirs = head(record_id=THEIRS, created=9, updated=9, origin="elsewhere", offset=12, segment=1)
    assert differences(theirs, *(row(n, whose=THEIRS) for n in (1, 2, 3))) == []


def test_a_head_that_is_missing() -> None:
    (found,) = differences(None, *ALL)
    assert (found.kind, found.expected) == (DifferenceKind.HEAD_MISSING, 3)
    assert str(found) == (
        "orders: k: the head is missing; it should be at event 3 "
        "(3 rows of it are there, and no reader can get them)"
    )


def test_a_head_that_should_not_be_there() -> None:
    comparison = Comparison("orders", "k", Visible(), head())
    comparison.take(row(1))
    assert said(*comparison.conclude()) == [
        "there is a head at event 3, and there should be no such entity (with 1 rows)"
    ]


def test_a_head_that_is_too_old() -> None:
    found = differences(head(seq_nr=2, offset=4), *ALL)
    assert said(*found) == ["seq_nr of the head is 2 instead of 3 (the head is too old: offset 4, not 9)"]
    assert (found[0].kind, found[0].columns) == (DifferenceKind.HEAD_DIFFERS, ("seq_nr",))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"segment_size": 10, "delete_to": 3}, "delete_to of the head is 3 instead of nothing"),
        ({"expire_after": 5}, "expire_after of the head is 5 instead of nothing"),
        ({"expire_on": date(2026, 1, 2)}, "expire_on of the head is 2026-01-02 instead of nothing"),
        ({"segment_size": 3}, "segment_size of the head is 3 instead of 2"),
    ],
)
def test_every_field_that_a_reader_can_tell_counts(change: dict[str, Any], what: str) -> None:
    assert what in said(*differences(head(**change), *ALL))


def test_the_day_of_another_replicator_does_not_count() -> None:
    """It counts its days by its own clock."""
    theirs = head(record_id=THEIRS, expire_on=date(2026, 1, 2))
    assert differences(theirs, *(row(n, whose=THEIRS) for n in (1, 2, 3))) == []


def test_nothing_deleted_is_no_number_or_zero() -> None:
    assert differences(head(delete_to=0), *ALL) == []


def test_rows_that_are_missing_changed_and_extra() -> None:
    found = differences(head(), row(1), row(3, '{"n":1}'), row(4))
    assert [(one.kind, one.seq_nr) for one in found] == [
        (DifferenceKind.ROW_DIFFERS, 3),
        (DifferenceKind.ROW_EXTRA, 4),
        (DifferenceKind.ROW_MISSING, 2),
    ]
    assert said(*found) == [
        "event 3 was changed: payload_txt",
        "event 4 is there and should not be (offset 4)",
        "event 2 is missing",
    ]


@pytest.mark.parametrize(
    ("hidden", "why"),
    [
        (row(2, whose=THEIRS), "of another incarnation: its meta_record_id is not the head's record_id"),
        (row(2, segment=7), "in another segment than segment_size 2 puts it"),
    ],
)
def test_a_row_that_is_hidden_is_missing_and_the_reason_is_said(hidden: FoundRow, why: str) -> None:
    found = differences(head(), row(1), hidden, row(3))
    assert said(*found) == [f"event 2 is missing (it is there, but hidden: {why})"]


@pytest.mark.parametrize(
    "hidden", [row(9, whose=THEIRS), row(9, whose=None), row(9, segment=0)], ids=["other", "none", "segment"]
)
def test_hidden_rows_that_are_not_expected_are_no_damage(hidden: FoundRow) -> None:
    assert differences(head(), *ALL, hidden) == []


def test_rows_without_a_head_are_no_damage() -> None:
    comparison = Comparison("orders", "k", Visible(), None)
    comparison.take(row(1))
    assert comparison.conclude() == []


def test_only_the_first_differences_are_told_and_all_are_counted() -> None:
    comparison = Comparison("orders", "k", expected(), head(), most=2)
    for number in range(10, 20):
        comparison.take(row(number))
    assert (len(comparison.conclude()), comparison.total) == (2, 13)


def test_two_states_that_are_known_whole() -> None:
    one, other = expected(), visible_of(head(), [row(1), row(2)])
    assert said(*compare("orders", "k", one, other)) == ["event 3 is missing"]
    assert said(*compare("orders", "k", other, one)) == ["event 3 is there and should not be (offset 3)"]
    assert compare("orders", "k", one, expected()) == []


@pytest.mark.parametrize(
    ("of", "row_", "why"),
    [
        (None, row(1), Hidden.NO_HEAD),
        (head(delete_to=1), row(1), Hidden.DELETED),
        (head(delete_to=1), row(2), None),
        (head(record_id=None), row(1, whose=THEIRS), None),
        (head(), row(1, whose=None), Hidden.OTHER_INCARNATION),
        (head(), row(3, segment=0), Hidden.WRONG_SEGMENT),
    ],
)
def test_why_a_row_is_hidden(of: Head | None, row_: FoundRow, why: Hidden | None) -> None:
    assert why_hidden(of, row_) is why


def test_a_reader_looks_in_todays_segment_first_and_nowhere_else() -> None:
    today, old, lost = head(segment=3355), head(segment=55), head(segment=1)
    assert choose_head("id", {55: old, 3355: today, 1: lost}) is today
    assert choose_head("id", {55: old, 1: lost}) is old
    assert choose_head("id", {1: lost}) is None
