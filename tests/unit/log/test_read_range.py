"""Ids of a range out of a large file: only the row groups that hold them are read."""

import pyarrow.parquet as pq
import pytest
from tests.support.log_samples import captured_of, given_binding, given_many_messages, write_file

from tidemark.log.files.parquet import ROWS_PER_GROUP, LogFolder
from tidemark.log.files.row_groups import RowGroup
from tidemark.log.model.manifest import LogFile

pytestmark = pytest.mark.unit

COUNT = 2 * ROWS_PER_GROUP + 10
BASE = 1_000
BINDING = given_binding(5_000, BASE, ("orders", 0, 0, COUNT))
LAST = BASE + COUNT - 1
SECOND_GROUP = BASE + ROWS_PER_GROUP


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> tuple[LogFolder, LogFile]:
    """Three row groups that are never changed."""
    folder = LogFolder("orders", str(tmp_path_factory.mktemp("log")))
    batches = given_many_messages(BINDING).to_batches()
    captured = captured_of(BINDING, write_file(folder, BINDING, BINDING.slices[0], batches))
    return folder, captured.files[0]


def ids(stored, first: int | None = None, last: int | None = None) -> list[int]:
    folder, file = stored
    return [id_ for batch in folder.read_file(file, ["id"], first, last) for id_ in batch["id"].to_pylist()]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (BASE, LAST),
        (None, BASE + 2),
        (LAST - 1, None),
        (SECOND_GROUP - 2, SECOND_GROUP + 1),
        (SECOND_GROUP, SECOND_GROUP),
        (0, BASE),
        (LAST, LAST + 100),
    ],
)
def test_exactly_the_ids_of_a_range_are_given(stored, first, last):
    wanted = range(max(first or 0, BASE), min(LAST if last is None else last, LAST) + 1)
    assert ids(stored, first, last) == list(wanted)


@pytest.mark.parametrize(("first", "last"), [(0, BASE - 1), (LAST + 1, LAST + 9), (BASE + 5, BASE + 4)])
def test_a_range_that_the_file_has_nothing_of_gives_nothing(stored, first, last):
    assert ids(stored, first, last) == []


def test_other_groups_are_not_read(stored, monkeypatch):
    asked = []
    iter_batches = pq.ParquetFile.iter_batches

    def spy(self, *args, **keys):
        asked.append(keys["row_groups"])
        return iter_batches(self, *args, **keys)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    ids(stored, SECOND_GROUP + 1, SECOND_GROUP + 2)
    ids(stored, SECOND_GROUP - 1, SECOND_GROUP)
    ids(stored)
    assert asked == [[1], [0, 1], None]


def test_columns_without_the_id_are_restricted_too(stored):
    folder, file = stored
    (batch,) = folder.read_file(file, ["offset"], BASE + 3, BASE + 4)
    assert batch.to_pydict() == {"offset": [3, 4]}


@pytest.mark.parametrize(
    ("first", "last", "count"),
    [(0, LAST, COUNT), (0, BASE + 1, 2), (SECOND_GROUP - 3, SECOND_GROUP + 4, 8), (LAST + 1, LAST + 5, 0)],
)
def test_messages_of_a_range_are_counted_and_the_last_is_found(stored, first, last, count):
    folder, file = stored
    assert folder.count_between(file, first, last) == count
    assert folder.last_id(file, first, last) == (min(last, LAST) if count else None)


def test_a_group_without_statistics_may_have_everything():
    unknown = RowGroup(0, 10, None, None)
    assert unknown.may_have(5, 6)
    assert not unknown.is_within(0, 10**9)
