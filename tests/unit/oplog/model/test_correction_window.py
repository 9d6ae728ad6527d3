"""Corrections as a reader in the middle of a partition judges them: as one that has read all of it."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.oplog_samples import TOPIC_ID, bad_record, correction, operation, record

from tidemark.operations.corrections import FARTHEST, is_void
from tidemark.oplog.model import correction_window
from tidemark.oplog.model.correction_window import CorrectionWindow, short_key
from tidemark.oplog.model.judged_operations import (
    JudgedOperations,
    LookBack,
    LookedBack,
    TopicRecord,
)

pytestmark = pytest.mark.unit


def given_judge(records: Sequence[TopicRecord], first: int) -> tuple[JudgedOperations, list[LookBack]]:
    """A reader from an offset on, and what it looks back at."""
    asked: list[LookBack] = []

    def look_back(wanted: LookBack) -> LookedBack:
        asked.append(wanted)
        return LookedBack.of(
            wanted.first, [one for one in records if wanted.first <= one.offset < wanted.end]
        )

    judge = JudgedOperations(TOPIC_ID, look_back)
    judge.begin(0, first)
    return judge, asked


def valid_offsets(records: Sequence[TopicRecord], first: int) -> list[int]:
    judge, _ = given_judge(records, first)
    return [one.offset for one in records if one.offset >= first and judge.operation(one)]


def test_a_correction_is_valid_where_nothing_has_happened_since_its_sender_looked() -> None:
    log = [record(0, operation()), record(1, operation(), correction=correction(1))]
    assert valid_offsets(log, 0) == [0, 1]


def test_a_correction_is_void_where_its_object_has_changed() -> None:
    log = [record(0, operation()), record(1, operation(), correction=correction(0))]
    assert valid_offsets(log, 0) == [0]


def test_a_correction_is_valid_where_another_object_has_changed() -> None:
    log = [record(0, operation("y")), record(1, operation(), correction=correction(0))]
    assert valid_offsets(log, 0) == [0, 1]


def test_a_correction_of_an_earlier_topic_is_void() -> None:
    assert valid_offsets([record(1, operation(), correction=correction(1, "other"))], 0) == []


def test_a_correction_that_was_sent_too_late_is_void() -> None:
    assert valid_offsets([record(FARTHEST + 1, operation(), correction=correction(0))], 0) == []


def test_a_correction_is_void_by_an_operation_before_the_reader() -> None:
    log = [record(0, operation()), record(1, operation(), correction=correction(0))]
    assert valid_offsets(log, 1) == []


def test_a_reader_looks_back_once() -> None:
    log = [record(number, operation(str(number)), correction=correction(5)) for number in range(10, 20)]
    judge, asked = given_judge(log, 10)
    for one in log:
        judge.operation(one)
    assert asked == [LookBack(partition=0, needed=5, first=0, end=10)]


def test_a_reader_does_not_look_back_without_a_reason() -> None:
    log = [record(10, operation()), record(11, operation(), correction=correction(10))]
    judge, asked = given_judge(log, 10)
    for one in log:
        judge.operation(one)
    assert asked == []


def test_a_void_correction_makes_no_other_one_void() -> None:
    log = [
        record(0, operation()),
        record(1, operation(), correction=correction(0)),
        record(2, operation(), correction=correction(1)),
    ]
    assert valid_offsets(log, 0) == [0, 2]


def test_whether_an_earlier_correction_was_valid_is_looked_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correction_window, "FARTHEST", 1)
    monkeypatch.setattr("tidemark.oplog.model.judged_operations.FARTHEST", 1)
    log = [
        record(0, operation()),
        record(3, operation(), correction=correction(0)),
        record(4, operation(), correction=correction(2)),
    ]
    assert valid_offsets(log, 4) == [4]


def test_what_is_no_operation_is_counted_and_skipped() -> None:
    judge, _ = given_judge([], 0)
    assert judge.operation(bad_record(0)) is None
    assert (judge.counts.received, judge.counts.bad) == (1, 1)


def test_bad_records_before_the_reader_are_skipped() -> None:
    log = [bad_record(0), record(1, operation(), correction=correction(0))]
    assert valid_offsets(log, 1) == [1]


def test_a_look_back_that_does_not_reach_is_a_defect() -> None:
    judge = JudgedOperations(TOPIC_ID, lambda wanted: LookedBack(wanted.needed + 1, []))
    judge.begin(0, 9)
    with pytest.raises(ValueError, match="is needed"):
        judge.operation(record(9, operation(), correction=correction(3)))


def test_a_long_key_is_remembered_by_its_hash() -> None:
    assert len(short_key(b"k" * 1000)) < 100


def test_what_no_correction_can_reach_is_forgotten() -> None:
    window = CorrectionWindow(TOPIC_ID, 0)
    for offset in range(0, 5 * FARTHEST, 100):
        window.note(offset, b"video/%d" % offset, None)
    assert len(window._last_valid) <= 2 * FARTHEST / 100 + 1


@st.composite
def logs(draw: st.DrawFn) -> list[TopicRecord]:
    """A partition with a few objects, of which many operations are corrections, and holes."""
    found, offset = [], 0
    for _ in range(draw(st.integers(1, 25))):
        offset += draw(st.integers(1, 2))
        one = operation(draw(st.sampled_from("xyz")))
        header = draw(st.none() | st.integers(max(offset - 8, 0), offset).map(correction))
        found.append(record(offset, one, correction=header))
    return found


def folded(records: Sequence[TopicRecord]) -> Iterator[int]:
    """The valid offsets, as a fold over the whole partition finds them."""
    from tidemark.operations.reading import read_record

    last: dict[bytes, int] = {}
    for _, offset, key, value, headers in records:
        assert key is not None
        found = read_record(key, value, headers).correction
        if found is None or not is_void(found, offset, TOPIC_ID, last.get(key)):
            last[key] = offset
            yield offset


@given(logs(), st.integers(0, 40), st.integers(0, 6))
def test_a_reader_judges_as_the_fold_does_wherever_it_begins(
    log: list[TopicRecord], first: int, farthest: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (
            "operations.corrections",
            "oplog.model.correction_window",
            "oplog.model.judged_operations",
        ):
            patch.setattr(f"tidemark.{module}.FARTHEST", farthest)
        assert valid_offsets(log, first) == [offset for offset in folded(log) if offset >= first]
