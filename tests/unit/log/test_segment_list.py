"""Lists of closed segments: a log keeps its files however its lines are folded; a manifest stays short."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.list_samples import ListsInMemory
from tests.support.log_samples import given_binding

from tidemark.log.errors import ManifestFormatUnknown
from tidemark.log.model import segment_list
from tidemark.log.model.manifest import ListLine, LogFile, Manifest, Segment
from tidemark.log.model.segment_list import (
    FANOUT,
    folded,
    line_of,
    with_lists,
)

pytestmark = pytest.mark.unit

STORED = Path(__file__).parent / "manifests"
LARGE = 10**9


def given_file(number: int, partition: int = 0, width: int = 10) -> LogFile:
    first = width * number
    path = f"files/{first}-{partition}"
    return LogFile(path, number + 1, "orders", partition, first, first + width - 1, 3, 60, "d" * 64)


def given_log(lists: ListsInMemory, bindings: int) -> Manifest:
    """A log with a segment for each binding, published binding by binding."""
    log = Manifest("orders", lists=lists)
    for number in range(bindings):
        log = with_lists(log.with_binding(number + 1, 10 * number + 9, [given_file(number)], 1), lists.put)
    return log


@given(st.integers(0, 300), st.integers(2, 5))
def test_a_log_keeps_its_files_and_its_totals_however_often_lines_are_folded(bindings, fanout):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_list, "FANOUT", fanout)
        lists = ListsInMemory()
        log = given_log(lists, bindings)
        files = [given_file(number) for number in range(bindings)]
        assert list(log.files) == files
        assert [segment.files for segment in log.segments] == [(file,) for file in files]
        assert (log.count, log.bytes, log.file_count) == (3 * bindings, 60 * bindings, bindings)
        assert log.segment_count == bindings
        levels = [line.level for line in log.closed if isinstance(line, ListLine)]
        assert levels == sorted(levels, reverse=True)
        assert all(levels.count(level) < 2 * fanout for level in levels)


def test_a_publication_writes_and_reads_no_list_of_an_older_segment():
    lists = ListsInMemory()
    log = given_log(lists, 10 * FANOUT)
    before, lists.read = set(lists.content), []
    with_lists(log.with_binding(10**6, 10**6, [given_file(10**5)], 1), lists.put)
    assert lists.read == []
    assert len(set(lists.content) - before) <= 2  # the closed segment's, and sometimes an index


def test_a_binding_is_found_by_the_lists_of_its_ids_alone():
    lists = ListsInMemory()
    log = given_log(lists, 10 * FANOUT)
    lists.read = []
    binding = given_binding(101, 1_000, ("orders", 0, 0, 10))
    assert log.files_of(binding) == (given_file(100),)
    assert len(lists.read) == 2  # an index and a segment's list


def test_the_newest_binding_needs_no_list():
    lists = ListsInMemory()
    log = given_log(lists, 10 * FANOUT)
    lists.read = []
    newest = 10 * FANOUT - 1
    found = log.files_of(given_binding(newest + 1, 10 * newest, ("orders", 0, 0, 10)))
    assert (found, lists.read) == ((given_file(newest),), [])


def test_a_caller_that_stops_early_has_read_the_first_lists_only():
    lists = ListsInMemory()
    log = given_log(lists, 10 * FANOUT)
    lists.read = []
    assert next(log.files) == given_file(0)
    assert len(lists.read) == 2


def test_a_manifest_with_lists_comes_back_from_its_bytes():
    lists = ListsInMemory()
    log = given_log(lists, 3 * FANOUT)
    again = Manifest.from_bytes(log.to_bytes(), lists)
    assert (again, list(again.files)) == (log, list(log.files))


def test_a_manifest_whose_lists_are_not_written_cannot_be_stored():
    log = Manifest("orders").with_binding(1, 9, [given_file(0)], 1).with_binding(2, 19, [given_file(1)], 1)
    with pytest.raises(ValueError, match="a closed segment has no list yet"):
        log.to_bytes()


def test_a_million_files_are_a_manifest_of_a_few_lines():
    def put(data: bytes) -> tuple[str, str]:
        return "lists/some", "d" * 64

    segment = Segment(tuple(given_file(number) for number in range(200)))
    leaf = line_of("lists/leaf", "d" * 64, 0, [segment])
    lines = folded([leaf] * 5_000, put)
    assert sum(line.file_count for line in lines) == 1_000_000
    assert len(lines) <= 6 * FANOUT


def test_lines_that_a_merge_left_between_indexes_are_folded_too():
    lists = ListsInMemory()
    leaves = [line_of(*lists.put(b"%d" % n), 0, [Segment((given_file(n),))]) for n in range(9)]
    index = line_of(*lists.put(b"index"), 1, leaves[:2])
    assert [line.level for line in folded([*leaves[2:4], index, *leaves[4:]], lists.put)] == [
        1,
        1,
        0,
        0,
        0,
        0,
        0,
    ]


@pytest.mark.parametrize("number", [3, 1])
def test_a_manifest_of_another_form_is_refused(number):
    data = with_lists(Manifest("orders"), ListsInMemory().put).to_bytes()
    other = data.replace(b'"format": 2', b'"format": %d' % number)
    with pytest.raises(ManifestFormatUnknown, match=f"has format {number}, and this version"):
        Manifest.from_bytes(other)


# The first form of manifests


def test_a_manifest_of_the_first_form_is_read():
    log = Manifest.from_bytes((STORED / "first_form.json").read_bytes())
    assert (log.t, log.end, log.count, log.file_count, log.segment_count) == (5_000, 49, 50, 10, 3)
    assert [len(segment.files) for segment in log.segments] == [4, 4, 2]
    assert (log.policies, [f.first_id for f in log.files]) == (("journal",), list(range(0, 50, 5)))


def test_a_manifest_of_the_first_form_gets_lists_with_the_next_publication():
    lists = ListsInMemory()
    old = Manifest.from_bytes((STORED / "first_form.json").read_bytes(), lists)
    new = with_lists(old.with_binding(6_000, 59, [given_file(5)], LARGE), lists.put)
    assert [isinstance(part, ListLine) for part in new.closed] == [True, True]
    again = Manifest.from_bytes(new.to_bytes(), lists)
    assert list(again.files) == [*old.files, given_file(5)]
    assert again.policies == ("journal",)
