"""The files writer: one file per binding, whole, once, and never another one under its name."""

import json
import pickle
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.unit.log.samples import SENT_AT, given_binding, given_messages

from tidemark.delivery.pipeline import FilesDeclaration
from tidemark.log.errors import FileDamaged, FileMissing
from tidemark.log.files import LOG_SCHEMA, LogFolder
from tidemark.writers.files import FilesWriter
from tidemark.writers.writer import Part, Written

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
        log.write_file(BINDING, first, [given_messages(BINDING, "invoices", 0, invoices, **keys)]),
        log.write_file(BINDING, second, [given_messages(BINDING, "orders", 1, orders, **keys)]),
    )
    return Part(BINDING, tuple(one.file for one in files if one is not None))


def writer(path: Path, **keys: object) -> FilesWriter:
    declared = {"name": "archive", "kind": "files", "path": str(path / "archive")} | keys
    return FilesWriter("orders", FilesDeclaration.model_validate(declared, context={}))


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# What is in the file


def test_parquet_has_the_log_s_columns_and_every_message_in_id_order(tmp_path, log, part):
    writer(tmp_path).write(part, log)
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
    writer(tmp_path, format="jsonl").write(part, log)
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
    writer(tmp_path, format="jsonl").write(part, log)
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
    writer(tmp_path, format="jsonl").write(part, log)
    text = (tmp_path / "archive" / f"{NAME}.jsonl").read_bytes().decode()
    (line,) = (json.loads(line) for line in text.split("\n") if line)
    assert (line["key"], line["value"], line["headers"]) == (shown, shown, [["h", shown]])


def test_text_stays_readable_in_jsonl(tmp_path, log):
    writer(tmp_path, format="jsonl").write(given_part(log, {}, {7: "größer".encode()}), log)
    assert "größer" in (tmp_path / "archive" / f"{NAME}.jsonl").read_text()


@pytest.mark.parametrize("headers", [None, []])
def test_a_message_without_headers_has_an_empty_list_in_jsonl(tmp_path, log, headers):
    writer(tmp_path, format="jsonl").write(given_part(log, {}, {7: b"v"}, headers=headers), log)
    assert lines(tmp_path / "archive" / f"{NAME}.jsonl")[0]["headers"] == []


def test_nulls_survive_in_parquet(tmp_path, log):
    writer(tmp_path).write(given_part(log, {}, {7: None}, key=None, headers=None), log)
    (row,) = pq.read_table(tmp_path / "archive" / f"{NAME}.parquet").to_pylist()
    assert (row["key"], row["value"], row["headers"]) == (None, None, None)


# Filters and counts


def test_without_a_filter_every_message_is_written(tmp_path, log, part):
    assert writer(tmp_path).write(part, log) == Written(written=5, filtered=0)


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_what_the_namespaces_keep_out_is_counted(tmp_path, log, part, file_format):
    result = writer(tmp_path, namespaces="^inv", format=file_format).write(part, log)
    assert result == Written(written=2, filtered=3)


def test_what_the_namespaces_keep_out_is_not_in_the_file(tmp_path, log, part):
    writer(tmp_path, namespaces="^inv").write(part, log)
    table = pq.read_table(tmp_path / "archive" / f"{NAME}.parquet")
    assert table["namespace"].to_pylist() == ["invoices", "invoices"]


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_a_binding_of_which_nothing_is_admitted_still_makes_a_file(tmp_path, log, part, file_format):
    result = writer(tmp_path, namespaces="nothing", format=file_format).write(part, log)
    assert result == Written(written=0, filtered=5)
    assert [path.name for path in (tmp_path / "archive").glob("*.*")] == [f"{NAME}.{file_format}"]


def test_a_binding_without_messages_still_makes_a_file(tmp_path, log):
    assert writer(tmp_path).write(Part(BINDING, ()), log) == Written()
    assert pq.read_table(tmp_path / "archive" / f"{NAME}.parquet").schema.equals(LOG_SCHEMA)


# Once


def test_the_file_is_named_by_base_and_end(tmp_path, log, part):
    writer(tmp_path).write(part, log)
    assert [path.name for path in (tmp_path / "archive").iterdir() if path.is_file()] == [f"{NAME}.parquet"]


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_delivering_again_keeps_the_file(tmp_path, log, part, file_format):
    archive, path = writer(tmp_path, format=file_format), tmp_path / "archive" / f"{NAME}.{file_format}"
    first, before = archive.write(part, log), path.stat()
    second, after = archive.write(part, log), path.stat()
    assert first == second
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_another_file_under_the_name_is_refused_by_name_and_kept(tmp_path, log, part):
    path = tmp_path / "archive" / f"{NAME}.jsonl"
    path.parent.mkdir()
    path.write_text("somebody's\n")
    with pytest.raises(FileDamaged, match=f"^orders/archive: .*{path}") as refusal:
        writer(tmp_path, format="jsonl").write(part, log)
    assert refusal.value.path == str(path)
    assert path.read_text() == "somebody's\n"


def test_a_refusal_leaves_nothing_else_in_the_folder(tmp_path, log, part):
    path = tmp_path / "archive" / f"{NAME}.jsonl"
    path.parent.mkdir()
    path.write_text("somebody's\n")
    with pytest.raises(FileDamaged):
        writer(tmp_path, format="jsonl").write(part, log)
    assert [p for p in path.parent.rglob("*") if p.is_file()] == [path]


# A damaged log


def test_a_missing_log_file_is_refused_and_nothing_written(tmp_path, log, part):
    (tmp_path / "log" / part.files[1].path).unlink()
    with pytest.raises(FileMissing, match=part.files[1].path):
        writer(tmp_path).write(part, log)
    assert [p for p in (tmp_path / "archive").rglob("*") if p.is_file()] == []


def test_a_damaged_log_file_is_refused_and_nothing_written(tmp_path, log):
    """The flipped byte is inside a value, where Parquet itself does not notice it."""
    part = given_part(log, {}, {7: b"forty-two"})
    path = tmp_path / "log" / part.files[0].path
    assert b"forty-two" in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(b"forty-two", b"forty-too"))
    with pytest.raises(FileDamaged, match=f"orders: log file {path} is damaged"):
        writer(tmp_path).write(part, log)
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
    }


def test_a_writer_has_the_name_of_its_declaration(tmp_path):
    assert writer(tmp_path).name == "archive"


def test_a_writer_travels_to_where_its_parts_run(tmp_path, part):
    sent = (writer(tmp_path), part)
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_preparing_and_finishing_make_nothing(tmp_path):
    archive = writer(tmp_path)
    archive.prepare()
    archive.finish(BINDING)
    assert not (tmp_path / "archive").exists()
