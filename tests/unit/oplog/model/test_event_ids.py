"""Ids of events: what they say, and what is refused."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.operations.filters import OperationFilter
from tidemark.oplog.model.event_ids import (
    BEGINNING,
    LONGEST_ID,
    BadEventId,
    EventId,
    OperationId,
    OriginalId,
    ReplicationId,
    TimeId,
    WantedRows,
    read_event_id,
    stream_digest,
)
from tidemark.oplog.model.stream_filter import StreamFilter

pytestmark = pytest.mark.unit

DIGEST = "abcdefghi-_9"
OFFSETS = st.integers(0, 2**62)
VECTORS = st.lists(OFFSETS, min_size=1, max_size=6).map(tuple)
ROWS = st.one_of(
    st.just(WantedRows()),
    st.integers(0, 9_999_999_999_999).map(lambda ms: WantedRows(since=ms)),
    st.lists(st.none() | OFFSETS, min_size=1, max_size=6).map(lambda found: WantedRows(beyond=tuple(found))),
)
IDS = st.one_of(
    st.builds(OperationId, st.just(DIGEST), VECTORS),
    st.builds(
        ReplicationId,
        st.just(DIGEST),
        st.integers(0, 2**62),
        st.integers(BEGINNING, 2**63 - 1),
        ROWS,
        VECTORS,
    ),
    st.builds(TimeId, st.integers(0, 9_999_999_999_999)),
)


@given(IDS)
def test_an_id_comes_back_from_its_text(found: EventId) -> None:
    assert read_event_id(str(found)) == found


@given(IDS)
def test_an_id_needs_no_escape_in_a_url(found: EventId) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]+", str(found))


@given(st.text(max_size=40))
def test_any_text_is_an_id_or_refused(text: str) -> None:
    with suppress(BadEventId):
        read_event_id(text)


@pytest.mark.parametrize("text", ["z" * 24, "", "abcd", "o1", f"o1.{DIGEST}", f"o1.{DIGEST}.", "o1.x.AA"])
def test_T6_what_is_no_operation_id(text: str) -> None:
    with pytest.raises(BadEventId):
        read_event_id(text)


def test_T6_a_time_is_no_operation_id() -> None:
    assert isinstance(read_event_id("1419043454520"), TimeId)


@pytest.mark.parametrize("text", ["545b4f8ef095528dd0f3863b", "141904345452014190434545"])
def test_T7_24_hexadecimal_digits_are_an_operation_id_of_the_original(text: str) -> None:
    assert isinstance(read_event_id(text), OriginalId)


@pytest.mark.parametrize("text", ["141904345452a", "14190434545201", "-5", "+5", " 5", "5 ", "1e3", "٥"])
def test_T8_what_is_no_time_id(text: str) -> None:
    with pytest.raises(BadEventId):
        read_event_id(text)


@pytest.mark.parametrize("text", ["1419043454520", "0", "00", "9999999999999"])
def test_T9_R23_up_to_13_digits_are_a_time(text: str) -> None:
    assert read_event_id(text) == TimeId(int(text))


@pytest.mark.parametrize("text", ["", "abcd"])
def test_T10_C20_an_empty_or_malformed_id_is_an_error(text: str) -> None:
    with pytest.raises(BadEventId):
        read_event_id(text)


def test_T11_an_operation_id_prints_back_the_same() -> None:
    assert str(read_event_id("54e07b75f2fcd8c74bb7bad3")) == "54e07b75f2fcd8c74bb7bad3"


def test_T12_a_time_id_has_its_value() -> None:
    assert read_event_id("1423995187898") == TimeId(1423995187898)


def test_T13_H5_an_id_of_the_original_falls_back_to_its_seconds() -> None:
    assert OriginalId("54e07b75f2fcd8c74bb7bad3").fallback == TimeId(1423997813000)


def test_none_of_our_ids_looks_like_a_time_or_an_id_of_the_original() -> None:
    assert str(OperationId(DIGEST, (0,))).startswith("o1.")


def test_an_id_without_end_is_refused() -> None:
    with pytest.raises(BadEventId):
        read_event_id(f"o1.{DIGEST}.{'A' * LONGEST_ID}")


@pytest.mark.parametrize("token", ["x", "9223372036854775808", "-9223372036854775809", "١"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(BadEventId):
        read_event_id(f"r1.{DIGEST}.5.{token}.f.AA")


def test_the_ids_of_one_replication_differ_in_their_token_only() -> None:
    one = ReplicationId(DIGEST, 5, -7, WantedRows(), (1, 2))
    before, after = one.around_token
    assert f"{before}-7{after}" == str(one)


def digest(types: list[str], parents: list[str], topic_id: str = "t") -> str:
    filter_ = StreamFilter(OperationFilter.of(types, parents))
    return stream_digest("cluster", topic_id, filter_)


def test_equal_filters_have_equal_digests() -> None:
    assert digest(["a", "B"], []) == digest(["b", "a"], [])


@pytest.mark.parametrize(
    "other",
    [digest(["a"], ["b"]), digest(["a", "b"], [], "u"), digest([], [])],
)
def test_another_filter_or_topic_has_another_digest(other: str) -> None:
    assert digest(["a", "b"], []) != other


def test_limits_are_told_from_filters() -> None:
    one = OperationFilter.of(["a"])
    found = {stream_digest("c", "t", StreamFilter(*both)) for both in ((one, one), (one,), ())}
    assert len(found) == 3
