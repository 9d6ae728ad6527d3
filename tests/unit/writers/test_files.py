"""The files writer: one file per binding, whole, once, and never another one under its name."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.support.leases import FakeLease
from tests.support.log_samples import SENT_AT, given_binding, given_messages, write_file

from tidemark.delivery.published_log import LogUnreadable, read_messages
from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.writer import BadMessage, Part, Writing, Written
from tidemark.log.errors import FolderUnusable
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.writers.files.kind import FilesDeclaration
from tidemark.writers.files.writer import FilesWriter, NameTaken

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 1, 7, 10))
NAME = "00000000000000000100-00000000000000000105"


@pytest.fixture
def log(tmp_path) -> LogFolder:
    return LogFolder("orders", str(tmp_path / "log"))


@pytest.fixture
def part(log) -> Part:
    """Five messages of two topics."""
    return given_part(log, {10: b"i10", 12: b"i12"}, {7: b"o7", 8: b"o8", 9: b"o9"})


def given_part(
    log: LogFolder, invoices: dict[int, bytes | None], orders: dict[int, bytes | None], **keys
) -> Part:
    first, second = BINDING.slices
    files = (
        write_file(log, BINDING, first, [given_messages(BINDING, "invoices", 0, invoices, **keys)]),
        write_file(log, BINDING, second, [given_messages(BINDING, "orders", 1, orders, **keys)]),
    )
    return Part(BINDING, tuple(one.file for one in files if one is not None))


class Lost:
    """A lease that another process has by now."""

    def check(self) -> None:
        raise LeaseLost("orders", "archive", "zombie")


FREE = FakeLease()


def writing_of(part: Part, log: LogFolder, acknowledged: tuple[int, ...] = ()) -> Writing:
    """What a part is written with."""
    return Writing(read_messages(log, part, acknowledged), FREE)


def given(log: LogFolder, *values: dict[int, bytes | None], **keys) -> tuple[Part, Writing]:
    part = given_part(log, *values, **keys)
    return part, writing_of(part, log)


def deliver_singly(archive: FilesWriter, part: Part, log: LogFolder) -> list[Written]:
    """Every message on its own, as a resume sends them; not finished."""
    messages = [batch.slice(i, 1) for batch in read_messages(log, part, ()) for i in range(batch.num_rows)]
    singles = [replace(part, first_id=m["id"][0].as_py(), last_id=m["id"][0].as_py()) for m in messages]
    return [
        archive.write(single, Writing([message], FREE))
        for single, message in zip(singles, messages, strict=True)
    ]


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def writer(path: Path, **keys: object) -> FilesWriter:
    declared = {"name": "archive", "kind": "files", "path": str(path / "archive")} | keys
    return FilesWriter("orders", FilesDeclaration.model_validate(declared, context={}))


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# What is in the file


def test_parquet_has_the_log_s_columns_and_every_message_in_id_order(tmp_path, log, part):
    writer(tmp_path).write(part, writing_of(part, log))
    table = pq.read_table(tmp_path / "archive" / f"{NAME}.parquet")
    assert table.schema.equals(LOG_SCHEMA)
    assert table.select(["id", "value"]).to_pylist() == [
        {"id": 100, "value": b"i10"},
        {"id": 102, "value": b"i12"},
        {"id": 103, "value": b"o7"},
        {"id": 104, "value": b"o8"},
        {"id": 105, "value": b"o9"},
    ]


def test_jsonl_has_every_message_in_id_order(tmp_path, log, part):
    writer(tmp_path, format="jsonl").write(part, writing_of(part, log))
    written = lines(tmp_path / "archive" / f"{NAME}.jsonl")
    assert [(line["id"], line["value"]) for line in written] == [
        (100, "i10"),
        (102, "i12"),
        (103, "o7"),
        (104, "o8"),
        (105, "o9"),
    ]


def test_a_line_of_jsonl_is_the_whole_message(tmp_path, log):
    part = given_part(log, {}, {7: b'{"n": 1}'}, headers=[("trace", b"abc")])
    writer(tmp_path, format="jsonl").write(part, writing_of(part, log))
    assert lines(tmp_path / "archive" / f"{NAME}.jsonl") == [
        {
            "id": 103,
            "t": 1_000_000,
            "write_time": 1_000_003,
            "topic": "orders",
            "partition": 1,
            "offset": 7,
            "timestamp": SENT_AT,
            "timestamp_type": 0,
            "key": "k",
            "value": '{"n": 1}',
            "headers": [["trace", "abc"]],
            "namespace": "orders",
        }
    ]


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        pytest.param(b"plain", "plain", id="text"),
        pytest.param("größer ≥ 𝄞".encode(), "größer ≥ 𝄞", id="text beyond ASCII"),
        pytest.param(b"two\nlines\r\n", "two\nlines\r\n", id="line breaks"),
        pytest.param("a\u2028b".encode(), "a\u2028b", id="a line separator"),
        pytest.param(b"\xff\x00", {"base64": "/wA="}, id="not text"),
        pytest.param(b"", "", id="empty"),
        pytest.param(None, None, id="null"),
    ],
)
def test_bytes_are_text_where_they_can_be_and_base64_where_not(tmp_path, log, data, shown):
    part = given_part(log, {}, {7: data}, key=data, headers=[("h", data)])
    writer(tmp_path, format="jsonl").write(part, writing_of(part, log))
    text = (tmp_path / "archive" / f"{NAME}.jsonl").read_bytes().decode()
    (line,) = (json.loads(line) for line in text.split("\n") if line)
    assert (line["key"], line["value"], line["headers"]) == (shown, shown, [["h", shown]])


def test_text_stays_readable_in_jsonl(tmp_path, log):
    writer(tmp_path, format="jsonl").write(*given(log, {}, {7: "größer".encode()}))
    assert "größer" in (tmp_path / "archive" / f"{NAME}.jsonl").read_text()


@pytest.mark.parametrize("headers", [None, []])
def test_a_message_without_headers_has_an_empty_list_in_jsonl(tmp_path, log, headers):
    writer(tmp_path, format="jsonl").write(*given(log, {}, {7: b"v"}, headers=headers))
    assert lines(tmp_path / "archive" / f"{NAME}.jsonl")[0]["headers"] == []


def test_nulls_survive_in_parquet(tmp_path, log):
    writer(tmp_path).write(*given(log, {}, {7: None}, key=None, headers=None))
    (row,) = pq.read_table(tmp_path / "archive" / f"{NAME}.parquet").to_pylist()
    assert (row["key"], row["value"], row["headers"]) == (None, None, None)


# Filters and counts


def test_without_a_filter_every_message_is_written(tmp_path, log, part):
    assert writer(tmp_path).write(part, writing_of(part, log)) == Written(written=5, filtered=0)


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_what_the_namespaces_keep_out_is_counted(tmp_path, log, part, file_format):
    result = writer(tmp_path, namespaces="^inv", format=file_format).write(part, writing_of(part, log))
    assert result == Written(written=2, filtered=3)


def test_what_the_namespaces_keep_out_is_not_in_the_file(tmp_path, log, part):
    writer(tmp_path, namespaces="^inv").write(part, writing_of(part, log))
    table = pq.read_table(tmp_path / "archive" / f"{NAME}.parquet")
    assert table["namespace"].to_pylist() == ["invoices", "invoices"]


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_a_binding_of_which_nothing_is_admitted_still_makes_a_file(tmp_path, log, part, file_format):
    result = writer(tmp_path, namespaces="nothing", format=file_format).write(part, writing_of(part, log))
    assert result == Written(written=0, filtered=5)
    assert [path.name for path in (tmp_path / "archive").glob("*.*")] == [f"{NAME}.{file_format}"]


def test_a_binding_without_messages_still_makes_a_file(tmp_path, log):
    assert writer(tmp_path).write(Part(BINDING, ()), Writing([], FREE)) == Written()
    assert pq.read_table(tmp_path / "archive" / f"{NAME}.parquet").schema.equals(LOG_SCHEMA)


# Once


def test_the_file_is_named_by_base_and_end(tmp_path, log, part):
    writer(tmp_path).write(part, writing_of(part, log))
    assert [path.name for path in (tmp_path / "archive").iterdir() if path.is_file()] == [f"{NAME}.parquet"]


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_delivering_again_keeps_the_file(tmp_path, log, part, file_format):
    archive, path = writer(tmp_path, format=file_format), tmp_path / "archive" / f"{NAME}.{file_format}"
    first, before = archive.write(part, writing_of(part, log)), path.stat()
    second, after = archive.write(part, writing_of(part, log)), path.stat()
    assert (first, second) == (Written(written=5), Written(ignored=5))
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_another_file_under_the_name_is_refused_by_name_and_kept(tmp_path, log, part):
    path = tmp_path / "archive" / f"{NAME}.jsonl"
    path.parent.mkdir()
    path.write_text("somebody's\n")
    with pytest.raises(
        NameTaken, match=f"^orders/archive: {path} is damaged, or another program wrote it"
    ) as refusal:
        writer(tmp_path, format="jsonl").write(part, writing_of(part, log))
    assert refusal.value.path == str(path)
    assert path.read_text() == "somebody's\n"


def test_a_refusal_leaves_nothing_else_in_the_folder(tmp_path, log, part):
    path = tmp_path / "archive" / f"{NAME}.jsonl"
    path.parent.mkdir()
    path.write_text("somebody's\n")
    with pytest.raises(NameTaken):
        writer(tmp_path, format="jsonl").write(part, writing_of(part, log))
    assert [p for p in path.parent.rglob("*") if p.is_file()] == [path]


# A damaged log


def test_a_missing_log_file_is_refused_and_nothing_written(tmp_path, log, part):
    (tmp_path / "log" / part.files[1].path).unlink()
    with pytest.raises(LogUnreadable, match=part.files[1].path):
        writer(tmp_path).write(part, writing_of(part, log))
    assert [p for p in (tmp_path / "archive").rglob("*") if p.is_file()] == []


def test_a_damaged_log_file_is_refused_and_nothing_written(tmp_path, log):
    """The flipped byte is inside a value, where Parquet itself does not notice it."""
    part = given_part(log, {}, {7: b"forty-two"})
    path = tmp_path / "log" / part.files[0].path
    assert b"forty-two" in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(b"forty-two", b"forty-too"))
    with pytest.raises(LogUnreadable, match=f"orders: log file {path} is damaged"):
        writer(tmp_path).write(part, writing_of(part, log))
    assert [p for p in (tmp_path / "archive").rglob("*") if p.is_file()] == []


# What callers rely on


def test_a_binding_is_one_part(log, part, tmp_path):
    assert writer(tmp_path).cut(BINDING, part.files) == [part]


def test_the_settings_that_shape_the_output(tmp_path):
    assert writer(tmp_path, format="jsonl", namespaces="^a").shape == {
        "kind": "files",
        "path": str(tmp_path / "archive"),
        "format": "jsonl",
        "namespaces": "^a",
        "transforms": [],
    }


def test_a_writer_has_the_name_of_its_declaration(tmp_path):
    assert writer(tmp_path).name == "archive"


def test_a_writer_travels_to_where_its_parts_run(tmp_path, part):
    sent = (writer(tmp_path), part)
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_preparing_makes_nothing(tmp_path):
    writer(tmp_path).prepare()
    assert not (tmp_path / "archive").exists()


# Finishing


def test_finishing_what_came_in_bulk_leaves_only_the_file(tmp_path, log, part):
    archive = writer(tmp_path)
    archive.write(part, writing_of(part, log))
    before = (tmp_path / "archive" / f"{NAME}.parquet").stat()
    archive.finish(part, writing_of(part, log))
    after = (tmp_path / "archive" / f"{NAME}.parquet").stat()
    assert everything_in(tmp_path / "archive") == [f"{NAME}.parquet"]
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_finishing_what_came_in_bulk_does_not_read_the_log(tmp_path, log, part):
    archive = writer(tmp_path)
    archive.write(part, writing_of(part, log))
    archive.finish(part, Writing((pytest.fail("read") for _ in range(1)), FREE))


def test_a_message_on_its_own_leaves_no_file(tmp_path, log, part):
    archive = writer(tmp_path)
    deliver_singly(archive, part, log)
    assert list((tmp_path / "archive").glob("*.*")) == []


def test_a_message_on_its_own_is_counted(tmp_path, log, part):
    archive = writer(tmp_path, namespaces="^inv")
    assert sum(deliver_singly(archive, part, log), Written()) == Written(written=2, filtered=3)


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_messages_that_came_singly_make_the_bytes_of_those_in_bulk(tmp_path, log, part, file_format):
    bulk, singly = writer(tmp_path / "bulk", format=file_format), writer(tmp_path / "one", format=file_format)
    bulk.write(part, writing_of(part, log))
    deliver_singly(singly, part, log)
    singly.finish(part, writing_of(part, log))
    name = f"archive/{NAME}.{file_format}"
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "bulk" / name).read_bytes()


def test_finishing_what_came_singly_leaves_only_the_file(tmp_path, log, part):
    archive = writer(tmp_path)
    deliver_singly(archive, part, log)
    archive.finish(part, writing_of(part, log))
    assert everything_in(tmp_path / "archive") == [f"{NAME}.parquet"]


def test_finishing_a_binding_of_which_nothing_came_makes_its_file(tmp_path, log, part):
    """All of its messages were acknowledged, or it has none."""
    archive = writer(tmp_path)
    archive.finish(part, writing_of(part, log, (100, 102, 103, 104, 105)))
    assert pq.read_table(tmp_path / "archive" / f"{NAME}.parquet").num_rows == 0


def test_finishing_twice_changes_nothing(tmp_path, log, part):
    archive, path = writer(tmp_path), tmp_path / "archive" / f"{NAME}.parquet"
    deliver_singly(archive, part, log)
    archive.finish(part, writing_of(part, log))
    before = path.stat()
    archive.finish(part, writing_of(part, log))
    assert path.stat().st_ino == before.st_ino


def test_finishing_what_came_singly_verifies_a_file_that_is_there(tmp_path, log, part):
    archive, path = writer(tmp_path), tmp_path / "archive" / f"{NAME}.parquet"
    deliver_singly(archive, part, log)
    path.write_bytes(b"somebody's")
    with pytest.raises(NameTaken):
        archive.finish(part, writing_of(part, log))
    assert path.read_bytes() == b"somebody's"


def test_what_a_killed_attempt_left_is_swept(tmp_path, log, part):
    archive = writer(tmp_path)
    left = tmp_path / "archive" / "staging" / NAME / "half"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"torn")
    archive.write(part, writing_of(part, log))
    archive.finish(part, writing_of(part, log))
    assert everything_in(tmp_path / "archive") == [f"{NAME}.parquet"]


def test_what_belongs_to_other_bindings_is_not_swept(tmp_path, log, part):
    other = tmp_path / "archive" / "staging" / "00000000000000000106-00000000000000000110" / "half"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"under way")
    archive = writer(tmp_path)
    archive.write(part, writing_of(part, log))
    archive.finish(part, writing_of(part, log))
    assert other.read_bytes() == b"under way"


# Bad messages


BAD_IN_THE_MIDDLE = ({10: b"{}", 12: b"[]"}, {7: b"{}"})


def test_a_wall_leaves_no_file(tmp_path, log):
    archive = writer(tmp_path, transforms=[{"omit": {"fields": ["x"]}}])
    with pytest.raises(BadMessage) as wall:
        archive.write(*given(log, *BAD_IN_THE_MIDDLE))
    assert (wall.value.id, everything_in(tmp_path / "archive")) == (102, [])


def test_a_bad_message_on_its_own_is_a_wall(tmp_path, log):
    archive = writer(tmp_path, transforms=[{"omit": {"fields": ["x"]}}])
    with pytest.raises(BadMessage) as wall:
        deliver_singly(archive, given_part(log, *BAD_IN_THE_MIDDLE), log)
    assert wall.value.id == 102


def test_what_was_acknowledged_is_left_out(tmp_path, log):
    archive = writer(tmp_path, transforms=[{"omit": {"fields": ["x"]}}])
    part = given_part(log, *BAD_IN_THE_MIDDLE)
    archive.write(part, writing_of(part, log, (102,)))
    table = pq.read_table(tmp_path / "archive" / f"{NAME}.parquet")
    assert table["id"].to_pylist() == [100, 103]


# Acknowledgements


@pytest.mark.parametrize(("id_", "refused"), [(99, False), (100, True), (105, True), (106, False)])
def test_a_message_whose_file_is_there_may_not_be_let_pass(tmp_path, log, part, id_, refused):
    archive = writer(tmp_path)
    archive.write(part, writing_of(part, log))
    assert (archive.refuses_acknowledgement({"id": id_}) is not None) == refused


def test_a_refusal_names_the_file(tmp_path, log, part):
    archive = writer(tmp_path)
    archive.write(part, writing_of(part, log))
    assert str(tmp_path / "archive" / f"{NAME}.parquet") in archive.refuses_acknowledgement({"id": 102})


def test_a_message_without_a_file_may_be_let_pass(tmp_path):
    assert writer(tmp_path).refuses_acknowledgement({"id": 102}) is None


def test_strangers_in_the_folder_refuse_nothing(tmp_path):
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "readme.parquet").write_text("")
    assert writer(tmp_path).refuses_acknowledgement({"id": 102}) is None


# The lease and the target


def test_a_process_that_lost_the_writer_gives_no_file_its_name(tmp_path, log, part):
    with pytest.raises(LeaseLost):
        writer(tmp_path).write(part, Writing(read_messages(log, part, ()), Lost()))
    assert everything_in(tmp_path / "archive") == []


def test_a_process_that_lost_the_writer_finishes_nothing(tmp_path, log, part):
    archive = writer(tmp_path)
    deliver_singly(archive, part, log)
    with pytest.raises(LeaseLost):
        archive.finish(part, Writing([], Lost()))
    assert list((tmp_path / "archive").glob("*.parquet")) == []


def test_a_folder_that_can_be_written_is_reachable_and_left_as_it_was(tmp_path):
    writer(tmp_path).is_reachable()
    assert everything_in(tmp_path / "archive") == []


def test_a_folder_that_cannot_be_written_is_not_reachable(tmp_path):
    (tmp_path / "archive").write_text("a file where the folder should be")
    with pytest.raises(FolderUnusable, match="nothing can be written into"):
        writer(tmp_path).is_reachable()
