"""Messages of overlapping files come in one strict order, a bounded number in memory."""

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.log.files.merge import entwined, lanes, merged
from tidemark.log.model.manifest import LogFile

pytestmark = pytest.mark.unit

Ids = dict[int, list[int]]


def given_files(ids: Ids, sizes: list[int]) -> dict[LogFile, list[int]]:
    """The ids of every partition, cut into files of these sizes in turn."""
    found: dict[LogFile, list[int]] = {}
    for partition, own in ids.items():
        left, turn = sorted(own), 0
        while left:
            size = sizes[turn % len(sizes)]
            part, left, turn = left[:size], left[size:], turn + 1
            found[
                LogFile(f"{partition}/{part[0]}", 1, "a", partition, part[0], part[-1], len(part), 1, "")
            ] = part
    return {file: found[file] for file in sorted(found, key=lambda one: one.first_id)}


@st.composite
def partitioned(draw) -> Ids:
    """Ids, each in one of a few partitions."""
    owners = draw(st.lists(st.integers(0, 3), max_size=60))
    gaps = draw(st.lists(st.integers(1, 3), min_size=len(owners), max_size=len(owners)))
    ids: Ids = {}
    at = 0
    for owner, gap in zip(owners, gaps, strict=True):
        at += gap
        ids.setdefault(owner, []).append(at)
    return ids


@given(partitioned(), st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(1, 5))
def test_every_message_comes_once_and_in_order(ids, sizes, rows_a_batch):
    files = given_files(ids, sizes)
    open_now, most = set(), 0

    def read(file: LogFile) -> Iterator[pa.RecordBatch]:
        nonlocal most
        open_now.add(file)
        most = max(most, len(open_now))
        own = files[file]
        for first in range(0, len(own), rows_a_batch):
            part = own[first : first + rows_a_batch]
            yield pa.RecordBatch.from_pydict({"id": part, "p": [file.partition] * len(part)})
        open_now.discard(file)

    found = [row for batch in merged(files, read) for row in batch.to_pylist()]
    assert [row["id"] for row in found] == sorted(id_ for own in ids.values() for id_ in own)
    assert all(row["id"] in ids[row["p"]] for row in found)
    assert most <= max(len(ids), 1)  # of one partition never two files


@given(partitioned(), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_files_that_do_not_lie_between_others_are_alone(ids, sizes):
    groups = list(entwined(given_files(ids, sizes)))
    ranges = [(min(f.first_id for f in one), max(f.last_id for f in one)) for one in groups]
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    for one in groups:
        for lane in lanes(one):
            assert all(a.last_id < b.first_id for a, b in pairwise(lane))


def test_files_one_after_the_other_are_passed_on_as_they_are():
    files = given_files({0: [1, 2], 1: [3, 4]}, [2])
    batches = {file: pa.RecordBatch.from_pydict({"id": ids}) for file, ids in files.items()}
    assert [id(batch) for batch in merged(files, lambda file: [batches[file]])] == [
        id(batches[file]) for file in files
    ]


def test_no_file_has_no_message():
    assert list(merged([], lambda file: [])) == []
