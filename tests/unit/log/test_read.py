"""Reading the log: by id, by binding, by namespace; what is not there is said before anything is given."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.support.log_samples import SEGMENT_BYTES, capture, given_binding

from tidemark.log.errors import BeyondTheEnd, CompactedAway, FileDamaged, FileMissing, NotPublished
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.log.read import Selection, select

pytestmark = pytest.mark.unit

FIRST = given_binding(1_000, 0, ("orders", 0, 0, 4), ("refunds", 0, 0, 2))
EMPTY = given_binding(2_000, 6, ("orders", 0, 4, 6), run_id="run-2")
"""Published without a message."""
THIRD = given_binding(3_000, 8, ("orders", 0, 6, 10), run_id="run-3")
"""Its last offset is a hole."""
LOG = {
    FIRST: {("orders", 0): {0: b"a", 1: b"b", 3: b"d"}, ("refunds", 0): {0: b"x", 1: b"y"}},
    EMPTY: {},
    THIRD: {("orders", 0): {6: b"e", 7: b"f", 8: b"g"}},
}
ALL = {0: b"a", 1: b"b", 3: b"d", 4: b"x", 5: b"y", 8: b"e", 9: b"f", 10: b"g"}
"""Ids 2, 6, 7 and 11 are holes; the log ends at 11."""


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, Manifest]:
    """The log, written once and never changed."""
    root = tmp_path_factory.mktemp("log")
    return root, given_log(root)


@pytest.fixture
def log(tmp_path) -> tuple[Path, Manifest]:
    """A log to be damaged."""
    return tmp_path, given_log(tmp_path)


def given_log(root: Path) -> Manifest:
    manifest, folder = Manifest("orders"), LogFolder("orders", str(root))
    for binding, values in LOG.items():
        files = capture(folder, binding, values).files
        manifest = manifest.with_binding(binding.t, binding.end, files, SEGMENT_BYTES)
    return manifest


def selected(log: tuple[Path, Manifest], **keys: object) -> Selection:
    root, manifest = log
    return select(manifest, str(root), **keys)


def read(selection: Selection) -> dict[int, bytes]:
    """The values of the chosen messages by id, in the order they are given."""
    rows = [row for batch in selection.batches() for row in batch.to_pylist()]
    return {row["id"]: row["value"] for row in rows}


def file_of(log: tuple[Path, Manifest], first_id: int) -> LogFile:
    (file,) = [file for file in log[1].files if file.first_id == first_id]
    return file


# Which messages


def test_the_whole_log_is_given_in_id_order(written):
    found = read(selected(written))
    assert found == ALL
    assert list(found) == sorted(ALL)


@pytest.mark.parametrize(
    ("first_id", "last_id", "ids"),
    [
        pytest.param(1, 4, [1, 3, 4], id="over two files"),
        pytest.param(4, 4, [4], id="one message"),
        pytest.param(2, None, [3, 4, 5, 8, 9, 10], id="begins in a hole"),
        pytest.param(7, 8, [8], id="begins in a binding without messages"),
        pytest.param(6, 7, [], id="nothing but holes"),
        pytest.param(2, 2, [], id="one hole"),
        pytest.param(-5, 1, [0, 1], id="before the beginning"),
        pytest.param(10, None, [10], id="the last message"),
        pytest.param(11, None, [], id="the end, which is a hole"),
        pytest.param(12, None, [], id="right after the end"),
        pytest.param(9, 99, [9, 10], id="up to beyond the end"),
        pytest.param(5, 4, [], id="no id at all"),
    ],
)
def test_messages_are_chosen_by_id(written, first_id, last_id, ids):
    assert list(read(selected(written, first_id=first_id, last_id=last_id))) == ids


@pytest.mark.parametrize(
    ("t", "ids"),
    [
        pytest.param(1_000, [0, 1, 3, 4, 5], id="the first"),
        pytest.param(3_000, [8, 9, 10], id="the newest"),
        pytest.param(2_000, [], id="one without messages"),
    ],
)
def test_messages_are_chosen_by_binding(written, t, ids):
    assert list(read(selected(written, t=t))) == ids


@pytest.mark.parametrize(
    ("namespaces", "ids"),
    [
        pytest.param(["refunds"], [4, 5], id="one"),
        pytest.param(["refunds", "orders"], list(ALL), id="both"),
        pytest.param(["order"], [], id="one that does not exist"),
        pytest.param([], list(ALL), id="any"),
    ],
)
def test_messages_are_chosen_by_namespace(written, namespaces, ids):
    assert list(read(selected(written, namespaces=namespaces))) == ids


def test_every_choice_counts(written):
    chosen = selected(written, first_id=1, last_id=4, t=1_000, namespaces=["orders"])
    assert list(read(chosen)) == [1, 3]


def test_an_empty_log_has_nothing_to_read(tmp_path):
    assert read(select(Manifest("orders"), str(tmp_path))) == {}


def test_a_selection_can_be_read_again(written):
    chosen = selected(written, first_id=8)
    assert read(chosen) == read(chosen)


def test_what_is_published_later_does_not_disturb_a_reader(log):
    chosen = selected(log)
    fourth = given_binding(4_000, 12, ("orders", 0, 10, 11), run_id="run-4")
    capture(LogFolder("orders", str(log[0])), fourth, {("orders", 0): {10: b"h"}})
    assert read(chosen) == ALL


# What is not there


def test_beyond_the_end_there_is_nothing_to_wait_for(written):
    with pytest.raises(
        BeyondTheEnd, match="orders: the log ends at id 11, so there is nothing from id 13 on"
    ):
        selected(written, first_id=13)


def test_a_binding_that_is_not_published_is_refused(written):
    with pytest.raises(NotPublished) as refused:
        selected(written, t=3_001)
    assert (refused.value.t, refused.value.newest) == (3_001, 3_000)


# Compaction


def compacted(log: tuple[Path, Manifest], below: int) -> tuple[Path, Manifest]:
    return log[0], replace(log[1], compacted_below=below)


@pytest.mark.parametrize("first_id", [-5, 0, 4])
def test_below_the_compacted_point_messages_are_refused(written, first_id):
    with pytest.raises(CompactedAway) as refused:
        selected(compacted(written, 5), first_id=first_id)
    assert (refused.value.first_id, refused.value.compacted_below) == (first_id, 5)


def test_who_is_content_with_what_is_left_gets_it(written):
    chosen = selected(compacted(written, 5), first_id=3, allow_compacted=True)
    assert list(read(chosen)) == [3, 4, 5, 8, 9, 10]
    assert chosen.partly_compacted


def test_from_the_compacted_point_on_the_log_is_whole(written):
    chosen = selected(compacted(written, 5), first_id=5)
    assert list(read(chosen)) == [5, 8, 9, 10]
    assert not chosen.partly_compacted


@pytest.mark.parametrize(
    ("t", "below"),
    [
        pytest.param(1_000, 1, id="the first binding"),
        pytest.param(2_000, 7, id="nothing of it is left, if there was something"),
        pytest.param(3_000, 9, id="a part of it"),
    ],
)
def test_a_binding_that_may_reach_below_the_compacted_point_is_refused(written, t, below):
    with pytest.raises(CompactedAway):
        selected(compacted(written, below), t=t)


def test_a_binding_above_the_compacted_point_is_whole(written):
    assert not selected(compacted(written, 6), t=3_000).partly_compacted


def test_a_binding_whose_first_id_is_known_to_be_above_is_whole(written):
    chosen = selected(compacted(written, 8), t=3_000, first_id=8)
    assert list(read(chosen)) == [8, 9, 10]
    assert not chosen.partly_compacted


# Files


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("spoil", "error"),
    [pytest.param(damage, FileDamaged, id="damaged"), pytest.param(Path.unlink, FileMissing, id="missing")],
)
def test_a_spoilt_file_is_refused_by_name_before_a_message_of_it_is_given(log, spoil, error):
    path = log[0] / file_of(log, first_id=4).path
    spoil(path)
    given = []
    with pytest.raises(error) as refused:
        given.extend(row["id"] for batch in selected(log).batches() for row in batch.to_pylist())
    assert refused.value.path == str(path)
    assert given == [0, 1, 3]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({"first_id": 6}, id="by id"),
        pytest.param({"last_id": 3}, id="up to an id"),
        pytest.param({"t": 3_000}, id="by binding"),
    ],
)
def test_a_file_that_is_not_needed_is_not_opened(log, keys):
    (log[0] / file_of(log, first_id=4).path).unlink()
    assert read(selected(log, **keys))


def test_a_file_is_opened_only_when_its_turn_comes(log):
    (log[0] / file_of(log, first_id=8).path).unlink()
    batches = selected(log).batches()
    assert next(batches)["id"].to_pylist() == [0, 1, 3]


# Columns and batches


def test_a_message_has_the_log_s_columns(written):
    assert all(batch.schema.equals(LOG_SCHEMA) for batch in selected(written).batches())


def test_only_the_columns_asked_for_are_given_in_that_order(written):
    (batch,) = selected(written, t=3_000).batches(["value", "offset"])
    assert batch.to_pydict() == {"value": [b"e", b"f", b"g"], "offset": [6, 7, 8]}


def test_a_choice_needs_none_of_the_columns_asked_for(written):
    batches = selected(written, first_id=1, t=1_000, namespaces=["orders"]).batches(["key"])
    assert [batch.to_pydict() for batch in batches] == [{"key": [b"k", b"k"]}]


def test_batches_without_a_chosen_message_are_left_out(written):
    assert list(selected(written, namespaces=["order"]).batches()) == []


def test_only_the_columns_that_are_needed_are_read(written, monkeypatch):
    asked = []

    def read_file(self, file, columns, first_id, last_id):
        asked.append(columns)
        return iter(())

    monkeypatch.setattr(LogFolder, "read_file", read_file)
    list(selected(written, t=3_000).batches(["offset"]))
    assert asked == [["id", "namespace", "offset", "t"]]


def test_a_large_file_is_given_in_batches(tmp_path):
    binding = given_binding(1_000, 0, ("orders", 0, 0, 20_000))
    values = {("orders", 0): dict.fromkeys(range(20_000), b"v")}
    files = capture(LogFolder("orders", str(tmp_path)), binding, values).files
    manifest = Manifest("orders").with_binding(1_000, binding.end, files, SEGMENT_BYTES)
    sizes = [batch.num_rows for batch in select(manifest, str(tmp_path)).batches(["id"])]
    assert (sum(sizes), max(sizes)) == (20_000, 8_192)


def test_the_batches_are_arrow_s_own(written):
    assert all(isinstance(batch, pa.RecordBatch) for batch in selected(written).batches(["id"]))
