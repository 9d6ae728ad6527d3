"""The log's files: what a message is on disk, and that the same messages are always the same bytes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.support.log_samples import given_binding, given_many_messages, given_messages, write_file

from tidemark.log.errors import FileDamaged, FileMissing, FolderUnusable, RecordsMissing
from tidemark.log.files.parquet import LOG_SCHEMA, ROWS_PER_GROUP, LogFolder
from tidemark.log.model.binding import Slice
from tidemark.log.model.manifest import LogFile

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 1, 7, 10))
ORDERS = BINDING.slices[1]
MANY = given_binding(1_000_000, 0, ("orders", 0, 0, 150_000))


def write(folder: LogFolder, *batches: pa.RecordBatch, slice_: Slice = ORDERS) -> LogFile:
    return write_file(folder, BINDING, slice_, batches).file


@pytest.fixture(scope="module")
def messages() -> pa.Table:
    return given_many_messages(MANY)


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("large")


@pytest.fixture(scope="module")
def large_file(messages, large) -> LogFile:
    """All of them in one file, written from batches that do not fit the groups."""
    batches = messages.to_batches(max_chunksize=9_999)
    return write_file(LogFolder("orders", str(large)), MANY, MANY.slices[0], batches).file


# One file


def test_a_file_is_described_by_what_is_in_it(folder, tmp_path):
    file = write(folder, given_messages(BINDING, "orders", 1, {7: b"a", 9: b"c"}))
    on_disk = (tmp_path / file.path).read_bytes()
    assert file.path == "files/00000000000000000103-00000000000000000105.parquet"
    assert (file.t, file.topic, file.partition) == (1_000_000, "orders", 1)
    assert (file.first_id, file.last_id, file.count) == (103, 105, 2)
    assert file.bytes == len(on_disk)
    folder.verify(file)


def test_a_file_is_named_by_the_ids_its_slice_owns_hole_or_not(folder):
    file = write(folder, given_messages(BINDING, "orders", 1, {8: b"b"}))
    assert file.path == "files/00000000000000000103-00000000000000000105.parquet"
    assert (file.first_id, file.last_id) == (104, 104)


def test_what_is_left_of_a_slice_never_takes_the_whole_one_s_name(folder):
    messages = given_messages(BINDING, "orders", 1, {8: b"b"})
    whole = write(folder, messages)
    left = [write(folder, messages, slice_=Slice("orders", 1, *left)) for left in ((8, 10), (7, 9))]
    assert [file.path for file in (whole, *left)] == [
        "files/00000000000000000103-00000000000000000105.parquet",
        "files/00000000000000000104-00000000000000000105.parquet",
        "files/00000000000000000103-00000000000000000104.parquet",
    ]


def test_a_slice_without_messages_makes_no_file(folder, tmp_path):
    assert write_file(folder, BINDING, ORDERS, []) is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_messages_come_back_as_they_were_written(folder):
    written = given_messages(
        BINDING, "orders", 1, {7: b"a", 8: b"", 9: b"\xff\x00"}, headers=[("h", b"\x01")]
    )
    file = write(folder, written)
    assert pa.Table.from_batches(folder.read_file(file), LOG_SCHEMA).to_pylist() == written.to_pylist()


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        pytest.param(None, b"v", [], id="no key"),
        pytest.param(b"k", None, [], id="no value"),
        pytest.param(b"k", b"v", None, id="no headers"),
        pytest.param(b"", b"", [("", b"")], id="empty is not null"),
        pytest.param(b"k", b"v", [("h", None)], id="a header without value"),
        pytest.param(b"k", b"v", [("h", b"1"), ("h", b"2")], id="a header twice"),
    ],
)
def test_nulls_and_headers_survive(folder, key, value, headers):
    file = write(folder, given_messages(BINDING, "orders", 1, {7: value}, key=key, headers=headers))
    (message,) = next(folder.read_file(file)).to_pylist()
    found = message["headers"]
    assert (message["key"], message["value"]) == (key, value)
    assert (None if found is None else [(h["name"], h["value"]) for h in found]) == headers


def test_only_the_columns_asked_for_are_read(folder):
    file = write(folder, given_messages(BINDING, "orders", 1, {7: b"a"}))
    assert next(folder.read_file(file, ["id", "value"])).to_pylist() == [{"id": 103, "value": b"a"}]


def test_a_file_has_the_log_s_columns_and_is_compressed_with_zstd(folder, tmp_path):
    file = write(folder, given_messages(BINDING, "orders", 1, {7: b"a"}))
    stored = pq.ParquetFile(tmp_path / file.path)
    assert stored.schema_arrow.equals(LOG_SCHEMA)
    assert {stored.metadata.row_group(0).column(i).compression for i in range(13)} == {"ZSTD"}


# The same messages, the same bytes


def test_the_same_messages_again_keep_the_file(folder, tmp_path):
    first = write(folder, given_messages(BINDING, "orders", 1, {7: b"a", 8: b"b"}))
    inode = (tmp_path / first.path).stat().st_ino
    second = write(folder, given_messages(BINDING, "orders", 1, {7: b"a", 8: b"b"}))
    assert (second, (tmp_path / first.path).stat().st_ino) == (first, inode)


def test_one_batch_or_several_make_the_same_file(tmp_path):
    whole = given_messages(BINDING, "orders", 1, {7: b"a", 8: None, 9: b"c"})
    singly = [whole.slice(i, 1) for i in range(3)]
    empty = whole.slice(0, 0)
    one = write(LogFolder("orders", str(tmp_path / "one")), whole)
    other = write(LogFolder("orders", str(tmp_path / "other")), empty, *singly, empty)
    assert one == other


def test_other_messages_under_the_same_name_are_refused(folder):
    write(folder, given_messages(BINDING, "orders", 1, {7: b"a"}))
    with pytest.raises(FileDamaged, match=r"files/0+103-0+105\.parquet is damaged"):
        write(folder, given_messages(BINDING, "orders", 1, {7: b"b"}))


@pytest.mark.parametrize("batch_rows", [2_000, 65_536, 150_000])
def test_the_sizes_of_batches_do_not_change_the_bytes_of_a_large_file(
    folder, messages, large_file, batch_rows
):
    batches = messages.to_batches(max_chunksize=batch_rows)
    assert write_file(folder, MANY, MANY.slices[0], batches).file == large_file


def test_a_large_file_comes_back_whole_and_in_order(messages, large, large_file):
    batches = LogFolder("orders", str(large)).read_file(large_file)
    assert pa.Table.from_batches(batches).equals(messages)


def test_chosen_messages_of_a_large_file_come_alone_and_in_order(messages, large, large_file):
    asked = []

    def choose(keys: pa.ChunkedArray) -> pa.Array:
        asked.append(len(keys))
        return pc.fill_null(pc.equal(keys, b"k3"), False).combine_chunks()

    found = pa.concat_tables(LogFolder("orders", str(large)).read_chosen(large_file, choose))
    assert found.equals(messages.filter(pc.equal(messages["key"], b"k3")))
    assert sum(asked) == large_file.count


def test_where_no_row_is_chosen_nothing_comes(large, large_file):
    def choose(keys: pa.ChunkedArray) -> pa.Array:
        return pa.array([False] * len(keys))

    assert list(LogFolder("orders", str(large)).read_chosen(large_file, choose)) == []


def test_a_large_file_has_groups_of_a_fixed_size(large, large_file):
    stored = pq.ParquetFile(large / large_file.path).metadata
    groups = [stored.row_group(i).num_rows for i in range(stored.num_row_groups)]
    assert groups == [ROWS_PER_GROUP, ROWS_PER_GROUP, 150_000 - 2 * ROWS_PER_GROUP]


# What went wrong on the way


@pytest.mark.parametrize(
    "strange",
    [
        pytest.param(given_messages(BINDING, "orders", 1, {6: b"x", 7: b"a"}), id="from before the slice"),
        pytest.param(given_messages(BINDING, "orders", 1, {9: b"c", 10: b"x"}), id="from behind it"),
        pytest.param(given_messages(BINDING, "orders", 1, {9: b"c", 7: b"a"}), id="out of order"),
    ],
)
def test_messages_that_the_slice_does_not_own_leave_no_file(folder, tmp_path, strange):
    with pytest.raises(RecordsMissing, match=r"^orders: orders/1 was bound from offset 7 up to 10, but"):
        write(folder, strange)
    assert not (tmp_path / "files").exists()


def test_more_messages_than_the_slice_has_offsets_are_refused(folder):
    twice = given_messages(BINDING, "orders", 1, {7: b"a", 8: b"b"})
    with pytest.raises(RecordsMissing, match=r"ids 103 to 104 \(4 records\) instead of 103 and the next"):
        write(folder, twice, twice)


def test_a_folder_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path):
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(FolderUnusable, match="taken"):
        write(
            LogFolder("orders", str(tmp_path / "taken" / "log")),
            given_messages(BINDING, "orders", 1, {7: b"a"}),
        )
    assert [path.name for path in tmp_path.rglob("*")] == ["taken"]


def test_a_flipped_byte_is_refused_by_name(folder, tmp_path):
    file = write(folder, given_messages(BINDING, "orders", 1, {7: b"a"}))
    data = bytearray((tmp_path / file.path).read_bytes())
    data[10] ^= 1
    (tmp_path / file.path).write_bytes(data)
    with pytest.raises(FileDamaged, match=f"orders: log file {tmp_path}/{file.path} is damaged"):
        folder.verify(file)


@pytest.mark.parametrize("use", [LogFolder.verify, lambda folder, file: next(folder.read_file(file))])
def test_a_missing_file_is_refused_by_name(folder, tmp_path, use):
    file = write(folder, given_messages(BINDING, "orders", 1, {7: b"a"}))
    (tmp_path / file.path).unlink()
    with pytest.raises(FileMissing, match=f"orders: {tmp_path}/{file.path} is missing"):
        use(folder, file)
