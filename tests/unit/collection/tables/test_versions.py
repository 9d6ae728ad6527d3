"""What `keep` deletes: everything before the version that readers of later times still see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.collection.tables.versions import OlderVersions, Version, obsolete

pytestmark = pytest.mark.unit

ANN, BOB = (b"ann",), (b"bob",)


def test_of_two_versions_the_older_one_is_obsolete() -> None:
    versions = [Version(ANN, 20, 5, 25), Version(ANN, 10, 2, 12)]
    assert list(obsolete(versions)) == [OlderVersions(ANN, t=20, message_id=5, write_time=25)]


def test_of_two_messages_in_one_binding_the_older_one_is_obsolete() -> None:
    assert list(obsolete([Version(ANN, 20, 6, 26), Version(ANN, 20, 5, 25)])) == [
        OlderVersions(ANN, 20, 6, 26)
    ]


def test_a_single_version_stays() -> None:
    assert list(obsolete([Version(ANN, 20, 5, 25), Version(BOB, 10, 1, 11)])) == []


def test_nothing_is_obsolete_in_an_empty_table() -> None:
    assert list(obsolete([])) == []


@given(
    st.dictionaries(
        st.sampled_from([ANN, BOB, (b"cid",)]), st.sets(st.integers(1, 9), min_size=1), max_size=3
    )
)
def test_what_a_reader_of_later_times_sees_is_never_deleted(times: dict[tuple[bytes], set[int]]) -> None:
    newest_two = [
        Version(key, t, t, t) for key, found in times.items() for t in sorted(found, reverse=True)[:2]
    ]
    deleted = {one.key: {t for t in times[one.key] if t < one.t} for one in obsolete(newest_two)}
    left = {key: found - deleted.get(key, set()) for key, found in times.items()}
    assert left == {key: {max(found)} for key, found in times.items()}
