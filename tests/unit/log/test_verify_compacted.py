"""Proving a compacted log: which files may lie between each other, whose ids they hold, and which gaps are
explained by what."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.support.log_samples import compact, given_binding, publish_all

from tidemark.log.model.manifest import LogFile, Manifest, Segment
from tidemark.log.read import select
from tidemark.log.verify import LogVerification, LogVerifier, range_problems

pytestmark = pytest.mark.unit

FIRST = given_binding(1_000, 0, ("orders", 0, 0, 3), ("orders", 1, 0, 2))
SECOND = given_binding(2_000, 5, ("orders", 0, 3, 6), ("orders", 1, 2, 4), run_id="run-2")
THIRD = given_binding(3_000, 10, ("orders", 0, 6, 8), run_id="run-3")
BINDINGS = (FIRST, SECOND, THIRD)
"""Ids 0-2 and 5-7 and 10-11 are of partition 0, 3-4 and 8-9 of partition 1."""
HOLES = {4, 11}


@pytest.fixture
def log(control, folder) -> Any:
    captures: Mapping[Any, Any] = {
        FIRST: {("orders", 0): {0: b"a", 1: b"b", 2: b"c"}, ("orders", 1): {0: b"x"}},
        SECOND: {("orders", 0): {3: b"d", 4: b"e", 5: b"f"}, ("orders", 1): {2: b"y", 3: b"z"}},
        THIRD: {("orders", 0): {6: b"g"}},
    }
    publish_all(control, folder, captures)
    return control


def verify(log, folder) -> LogVerification:
    verifier = LogVerifier(log, folder)
    list(verifier.files())
    return verifier.conclude()


def test_files_of_two_partitions_may_lie_between_each_other(log, folder):
    compact(log, folder, below=10, keep=lambda id_: id_ in {0, 3, 5, 9})
    found = verify(log, folder)
    assert (found.problems, found.messages, found.compacted_below) == ((), 5, 10)
    assert [(file.first_id, file.last_id) for file in LogVerifier(log, folder).manifest.files] == [
        (0, 5),
        (3, 9),
        (10, 10),
    ]


def test_what_compaction_dropped_is_told_apart_from_holes(log, folder):
    before = verify(log, folder)
    assert (before.holes, before.dropped) == (2, 0)
    compact(log, folder, below=10, keep=lambda id_: id_ in {0, 3, 5, 9})
    after = verify(log, folder)
    assert (after.holes, after.dropped) == (1, 6)


def test_a_watermark_inside_a_file_counts_by_messages(log, folder):
    compact(log, folder, below=10, keep=lambda id_: id_ in {0, 3, 5, 6, 9})
    manifest = LogVerifier(log, folder).manifest
    verifier = LogVerifier(log, folder)
    verifier.manifest = replace(manifest, compacted_below=6)
    list(verifier.files())
    found = verifier.conclude()
    assert (found.dropped, found.holes) == (6 - 3, 6 - 3)


def test_everything_may_be_dropped(log, folder):
    compact(log, folder, below=10, keep=lambda id_: False)
    found = verify(log, folder)
    assert (found.problems, found.messages, found.holes, found.dropped) == ((), 1, 1, 10)


def test_messages_come_in_id_order_out_of_files_that_lie_between_each_other(log, folder):
    manifest = compact(log, folder, below=10, keep=lambda id_: id_ != 1)
    whole = select(manifest, folder.root, allow_compacted=True)
    ids = [id_ for batch in whole.batches(["id"]) for id_ in batch["id"].to_pylist()]
    assert ids == [0, 2, 3, 5, 6, 7, 8, 9, 10]
    of_second = select(manifest, folder.root, t=2_000, allow_compacted=True)
    assert [id_ for b in of_second.batches(["id"]) for id_ in b["id"].to_pylist()] == [5, 6, 7, 8, 9]
    between = select(manifest, folder.root, first_id=2, last_id=5, allow_compacted=True)
    assert [id_ for b in between.batches(["id"]) for id_ in b["id"].to_pylist()] == [2, 3, 5]


def given_file(partition: int, first_id: int, last_id: int, first_t: int, t: int) -> LogFile:
    return LogFile(f"f{first_id}", t, "orders", partition, first_id, last_id, 1, 1, "", first_t)


def problems(*segments: list[LogFile]) -> list[str]:
    manifest = Manifest.of_segments(
        "orders", tuple(Segment(tuple(files)) for files in segments), 3_000, 11, 10
    )
    return list(range_problems(manifest, BINDINGS))


RIGHT = given_file(0, 0, 7, 1_000, 2_000)
ACTIVE = given_file(0, 10, 10, 3_000, 3_000)


def test_a_file_of_several_bindings_is_right():
    assert problems([RIGHT, given_file(1, 3, 9, 1_000, 2_000)], [ACTIVE]) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (given_file(0, 5, 7, 2_000, 2_000), "f5 begins with id 5, the file before it of orders/0 ends at 7"),
        (given_file(1, 3, 9, 1_500, 2_000), "f3 belongs to a binding at 1500 that does not exist"),
        (given_file(1, 3, 9, 1_000, 2_500), "f3 belongs to a binding at 2500 that does not exist"),
        (given_file(1, 2, 9, 1_000, 2_000), "of orders/1 the binding at 1000 owns 3 to 4"),
        (given_file(1, 3, 10, 1_000, 2_000), "of orders/1 the binding at 2000 owns 8 to 9"),
        (given_file(2, 3, 4, 1_000, 1_000), "of orders/2 the binding at 1000 owns 0 to -1"),
        (given_file(1, 8, 4, 2_000, 1_000), "f8 ends before it begins"),
    ],
    ids=["same partition", "first_t", "t", "first id", "last id", "partition", "backwards"],
)
def test_a_file_with_ids_of_another_file_is_told(wrong, said):
    assert any(said in one for one in problems([RIGHT, wrong], [ACTIVE]))


def test_a_file_of_the_active_segment_below_others_is_told():
    told = problems([given_file(0, 0, 7, 1_000, 2_000)], [given_file(1, 3, 9, 1_000, 2_000)])
    assert told == ["f3 begins with id 3 in the active segment, below 7, which is in another"]


def test_an_id_between_that_no_slice_of_the_partition_owns_is_found_in_the_file(log, folder, monkeypatch):
    compact(log, folder, below=10)
    bindings = [
        FIRST,
        given_binding(2_000, 5, ("orders", 0, 3, 5), ("orders", 1, 2, 5), run_id="run-2"),
        THIRD,
    ]
    verifier = LogVerifier(log, folder)
    verifier.bindings = bindings
    list(verifier.files())
    assert any("has id 7, which no binding of orders/0" in one for one in verifier.conclude().problems)
