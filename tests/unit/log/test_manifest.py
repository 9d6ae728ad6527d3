"""The manifest: which files are the log, in which segments, and which bytes say so."""

from dataclasses import replace

import pytest
from tests.support.log_samples import given_binding

from tidemark.log.errors import BadBinding
from tidemark.log.model.manifest import LogFile, Manifest, Segment, digest_of

pytestmark = pytest.mark.unit

LARGE = 10**9


def given_file(first_id: int, *, t: int = 10, size: int = 60, partition: int = 0) -> LogFile:
    return LogFile(
        path=f"files/{first_id:020d}.parquet",
        t=t,
        topic="orders",
        partition=partition,
        first_id=first_id,
        last_id=first_id + 4,
        count=3,
        bytes=size,
        digest="d" * 64,
    )


def paths(manifest: Manifest) -> list[list[int]]:
    """First ids of the files, segment by segment."""
    return [[file.first_id for file in segment.files] for segment in manifest.segments]


def test_an_empty_log_ends_before_its_first_id():
    empty = Manifest("orders")
    assert (empty.t, empty.end, empty.bytes, empty.count, list(empty.files)) == (0, -1, 0, 0, [])


def test_a_binding_moves_t_and_end():
    manifest = Manifest("orders").with_binding(10, 4, [given_file(0)], LARGE)
    assert (manifest.t, manifest.end) == (10, 4)


def test_size_and_count_are_those_of_all_files():
    manifest = Manifest("orders").with_binding(10, 9, [given_file(0, size=60), given_file(5, size=7)], LARGE)
    assert (manifest.bytes, manifest.count) == (67, 6)


def test_files_are_in_id_order_however_they_were_given():
    manifest = Manifest("orders").with_binding(10, 14, [given_file(10), given_file(0), given_file(5)], LARGE)
    assert paths(manifest) == [[0, 5, 10]]


def test_files_go_on_in_the_active_segment():
    manifest = Manifest("orders").with_binding(10, 4, [given_file(0)], LARGE)
    assert paths(manifest.with_binding(20, 9, [given_file(5, t=20)], LARGE)) == [[0, 5]]


def test_a_segment_is_closed_when_it_has_reached_its_size():
    manifest = Manifest("orders")
    for i in range(5):
        manifest = manifest.with_binding(10 * (i + 1), 5 * i + 4, [given_file(5 * i, size=60)], 100)
    assert paths(manifest) == [[0, 5], [10, 15], [20]]


def test_a_segment_of_exactly_its_size_is_closed():
    manifest = Manifest("orders").with_binding(10, 4, [given_file(0, size=100)], 100)
    assert paths(manifest.with_binding(20, 9, [given_file(5, size=1)], 100)) == [[0], [5]]


def test_a_segment_is_never_closed_inside_a_binding():
    files = [given_file(5 * i, size=60, partition=i) for i in range(401)]
    manifest = Manifest("orders").with_binding(10, 2004, files, 100)
    assert [len(segment.files) for segment in manifest.segments] == [401]


def test_a_segment_is_closed_at_200_files():
    manifest = Manifest("orders")
    for i in range(401):
        manifest = manifest.with_binding(i + 1, 5 * i + 4, [given_file(5 * i, size=1)], LARGE)
    assert [len(segment.files) for segment in manifest.segments] == [200, 200, 1]


def test_a_binding_without_messages_moves_the_end_and_adds_no_segment():
    manifest = Manifest("orders").with_binding(10, 4, [], LARGE)
    assert (manifest.end, list(manifest.segments)) == (4, [])


def test_the_files_of_one_binding_are_found_by_its_ids():
    manifest = Manifest("orders").with_binding(10, 4, [given_file(0)], LARGE)
    manifest = manifest.with_binding(20, 14, [given_file(5, t=20), given_file(10, t=20)], LARGE)
    assert [file.first_id for file in manifest.files_of(given_binding(20, 5, ("orders", 0, 5, 15)))] == [
        5,
        10,
    ]


def test_a_file_that_spans_bindings_is_found_by_each_of_them():
    spanning = replace(given_file(0), t=30, first_t=10, last_id=29)
    manifest = Manifest.of_segments("orders", (Segment((spanning,)),), t=30, end=29)
    for t, base in ((10, 0), (20, 10), (30, 20)):
        assert manifest.files_of(given_binding(t, base, ("orders", 0, base, base + 10))) == (spanning,)
    assert manifest.files_of(given_binding(20, 10, ("orders", 1, 0, 10))) == ()


def test_the_files_of_a_binding_come_in_the_order_of_its_ids_not_of_their_own():
    # Partition 1 has a message of an older binding, so its file begins first.
    one = replace(given_file(0, partition=1, t=20), first_t=10, last_id=19)
    other = replace(given_file(5, partition=0, t=20), first_t=10, last_id=14)
    manifest = Manifest.of_segments("orders", (Segment((one, other)),), t=20, end=19)
    binding = given_binding(20, 10, ("orders", 0, 5, 10), ("orders", 1, 5, 10))
    assert manifest.files_of(binding) == (other, one)


def test_a_file_that_was_listed_before_there_was_first_t_begins_with_its_t():
    body = given_file(0).to_row()
    assert "first_t" not in body
    assert LogFile(**body).first_t == 10
    assert LogFile(**replace(given_file(0), first_t=5).to_row()).first_t == 5


def test_a_compaction_replaces_segments_and_remembers_how():
    manifest = Manifest("orders").with_binding(10, 4, [given_file(0)], LARGE)
    spanning = replace(given_file(0), first_t=5)
    once = manifest.with_segments([Segment(()), Segment((spanning,))], Segment(())).compacted(3, "journal")
    assert (list(once.segments), once.t, once.end) == ([Segment((spanning,))], 10, 4)
    assert (once.compacted_below, once.policies) == (3, ("journal",))
    twice = once.compacted(2, "latest")
    assert (twice.compacted_below, twice.policies) == (3, ("journal", "latest"))


@pytest.mark.parametrize(
    ("first_id", "last_id", "most"),
    [(0, 100, 3), (10, 14, 3), (10, 11, 2), (14, 20, 1), (0, 9, 0), (15, 20, 0), (12, 12, 1)],
)
def test_of_a_range_a_file_has_no_more_than_its_ids_and_its_messages(first_id, last_id, most):
    file = given_file(10)
    assert file.most(first_id, last_id) == most
    assert file.may_have(first_id, last_id) is (most > 0)


def test_the_manifest_before_stays_what_it_was():
    before = Manifest("orders").with_binding(10, 4, [given_file(0)], LARGE)
    before.with_binding(20, 9, [given_file(5)], LARGE)
    assert (before.end, paths(before)) == (4, [[0]])


@pytest.mark.parametrize(("t", "end"), [(10, 9), (9, 9), (20, 4), (20, 3)])
def test_a_binding_that_does_not_follow_is_refused(t, end):
    manifest = Manifest("orders").with_binding(10, 4, [given_file(0)], LARGE)
    with pytest.raises(BadBinding, match=f"orders: t={t} end={end} does not follow t=10 end=4"):
        manifest.with_binding(t, end, [given_file(5)], LARGE)


def test_the_same_manifest_has_the_same_bytes():
    one = Manifest("orders").with_binding(10, 9, [given_file(0), given_file(5)], LARGE)
    other = Manifest("orders").with_binding(10, 9, [given_file(5), given_file(0)], LARGE)
    assert one.to_bytes() == other.to_bytes()


def test_another_manifest_has_other_bytes():
    one = Manifest("orders").with_binding(10, 9, [given_file(0, size=1)], LARGE)
    other = Manifest("orders").with_binding(10, 9, [given_file(0, size=2)], LARGE)
    assert one.to_bytes() != other.to_bytes()


def test_a_manifest_comes_back_from_its_bytes():
    manifest = Manifest("orders", compacted_below=3).with_binding(
        10, 14, [given_file(0), given_file(5), given_file(10)], LARGE
    )
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


def test_an_empty_manifest_comes_back_from_its_bytes():
    assert Manifest.from_bytes(Manifest("orders").to_bytes()) == Manifest("orders")


def test_a_segment_is_as_large_as_its_files():
    assert Segment((given_file(0, size=60), given_file(5, size=7))).bytes == 67


def test_a_digest_is_sha256():
    assert digest_of(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
