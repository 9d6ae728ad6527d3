"""Dumps: which lines are read, and how bad ones are named."""

import gzip
import io
import json
from collections.abc import Iterable
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.operations.errors import BadOperation
from tidemark.oplog.sync.dump import reader
from tidemark.oplog.sync.dump.blocks import read_block
from tidemark.oplog.sync.dump.lines import DumpLine, read_line
from tidemark.oplog.sync.dump.reader import (
    LONGEST_LINE,
    MOST_BAD_LINES,
    DumpReader,
    opened_dump,
    parse_start,
    run_key,
)
from tidemark.oplog.sync.errors import DumpRefused, DumpUnreadable, StartRefused

pytestmark = pytest.mark.unit

AT_10 = '"timestamp":"2026-11-17T10:00:00Z"'
TEN = 1_794_909_600_000
X = f'{{{AT_10},"parents":["user/u"],"type":"video","id":"x"}}'


def reader_of(*lines: str | bytes, pack: bool = False) -> DumpReader:
    data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    return DumpReader("dump.jsonl", io.BytesIO(gzip.compress(data) if pack else data), lambda said: None)


def objects_in(batches: Iterable[pa.RecordBatch]) -> list[DumpLine]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [DumpLine(**{**row, "parents": tuple(row["parents"])}) for row in rows]


def read(*lines: str | bytes, pack: bool = False) -> list[DumpLine]:
    return objects_in(reader_of(*lines, pack=pack).batches())


def refusal_of(*lines: str | bytes) -> DumpRefused:
    with pytest.raises(DumpRefused) as refused:
        read(*lines)
    return refused.value


@pytest.mark.parametrize("pack", [False, True])
def test_R29_a_line_is_an_object_with_the_data_of_an_event(pack):
    assert read(X, pack=pack) == [DumpLine("video", "x", TEN, ("user/u",), 1)]


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_the_last_line_may_end_as_it_likes(ending):
    reader = DumpReader("dump", io.BytesIO((X + "\n" + X + ending).encode()), lambda said: None)
    assert [one.line for one in objects_in(reader.batches())] == [1, 2]


def test_S13_a_timestamp_is_cut_to_milliseconds():
    (found,) = read(X.replace("10:00:00Z", "10:00:00.167456Z"))
    assert found.timestamp == TEN + 167


def test_S14_R30_the_same_instant_in_another_offset_is_the_same_timestamp():
    (found,) = read(X.replace("10:00:00Z", "11:00:00+01:00"))
    assert found.timestamp == TEN


def test_S15_a_malformed_line_is_named_with_its_number():
    refused = refusal_of(X, X, "{nope", X)
    assert refused.lines == (3,)
    assert "line 3: it is not JSON" in str(refused)


def test_S15_every_bad_line_is_named():
    assert refusal_of("{", X, "", '"x"', X.replace('"x"', "7")).lines == (1, 3, 4, 5)


def test_S15_every_bad_line_is_shown():
    said: list[str] = []
    reader = DumpReader("dump.jsonl", io.BytesIO(b"{\n" * 30), said.append)
    with pytest.raises(DumpRefused, match="and 10 more"):
        list(reader.batches())
    assert [line.split(": ")[1] for line in said] == [f"line {number}" for number in range(1, 31)]


def test_S17_a_line_without_parents_has_none_and_leaves_others_alone():
    y = f'{{{AT_10},"type":"video","id":"y"}}'
    assert [(one.id, one.parents) for one in read(X, y)] == [("x", ("user/u",)), ("y", ())]


def test_S18_types_are_lower_cased():
    assert read(X.replace('"video"', '"Video"'))[0].type == "video"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        (X[:-5], "not JSON"),
        (X + ",", "not JSON"),
        (X.replace(AT_10, '"a":1'), "timestamp"),
        (X.replace(AT_10, '"timestamp":null'), "timestamp"),
        (X.replace("10:00:00Z", "10:00:00"), "offset"),
        (X.replace('"video"', '""'), "`type`"),
        (X.replace('"video"', '"a/b"'), "slash"),
        (X.replace('"id":"x"', '"id":7'), "`id`"),
        (X.replace('"id":"x"', '"ID":"x"'), "`id`"),
        (X.replace('["user/u"]', '[""]'), "parents"),
        (X.replace('["user/u"]', '"user/u"'), "parents"),
        (b"\xff" + X.encode(), "not JSON"),
        ("\ufeff" + X, "not JSON"),
        (X.replace("x", "y" * 1_025), "1024 bytes"),
    ],
)
def test_a_line_that_no_operation_could_say_is_bad(line, reason):
    assert reason in refusal_of(line).problems[0][1]


def test_a_line_of_an_event_stream_is_taken_as_it_is():
    stream = {**json.loads(X), "event": "insert", "ref": "https://example.org/x"}
    assert read(json.dumps(stream))[0].id == "x"


def test_a_line_that_is_too_long_is_bad_and_the_next_one_is_read():
    assert refusal_of("[" * (2 * LONGEST_LINE), "{").lines == (1, 2)


def test_what_is_no_dump_is_not_read_to_its_end():
    refused = refusal_of(*["x"] * (MOST_BAD_LINES + 5))
    assert refused.is_cut_short
    assert len(refused.problems) == MOST_BAD_LINES


def test_a_file_that_was_cut_off_is_unreadable():
    data = gzip.compress((X + "\n").encode() * 1_000)[:-20]
    with pytest.raises(DumpUnreadable, match="dump"):
        list(DumpReader("dump", io.BytesIO(data), lambda said: None).batches())


def test_a_file_that_is_not_there_is_unreadable(tmp_path):
    with pytest.raises(DumpUnreadable, match="No such file"), opened_dump(str(tmp_path / "no"), print):
        pass


@pytest.mark.parametrize("place", [str, lambda path: path.as_uri()])
def test_R28_a_dump_is_a_path_or_a_uri(tmp_path, place):
    path = tmp_path / "dump.jsonl"
    path.write_text(X + "\n")
    with opened_dump(place(path), print) as reader:
        assert [one.id for one in objects_in(reader.batches())] == ["x"]


def test_a_dump_may_come_from_standard_input():
    with opened_dump("-", print, io.BytesIO(X.encode())) as reader:
        assert [one.id for one in objects_in(reader.batches())] == ["x"]


def test_H13_the_newest_timestamp_of_all_lines_is_known():
    reader = reader_of(X, X.replace("10:00", "12:00"), X.replace("10:00", "11:00"))
    assert (len(objects_in(reader.batches())), reader.newest) == (3, TEN + 2 * 3_600_000)


def test_an_empty_dump_has_no_newest_timestamp():
    reader = reader_of()
    assert (list(reader.batches()), reader.newest) == ([], None)


def test_the_digest_is_that_of_the_lines_packed_or_not():
    found = [reader_of(X, pack=pack) for pack in (False, True)]
    assert all(list(one.batches()) for one in found)
    assert found[0].digest == found[1].digest


def test_a_run_is_known_by_dump_and_start():
    assert len({run_key("a", 1), run_key("a", 2), run_key("b", 1)}) == 3
    assert run_key("a", 1) == run_key("a", 1)


def test_a_start_is_a_date_or_the_newest_timestamp():
    assert parse_start("2026-11-17T10:00:00Z") == TEN
    assert parse_start(" Newest ") is None


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-17T10:00:00", "1794909600000"])
def test_another_text_is_no_start(text):
    with pytest.raises(StartRefused, match="newest"):
        parse_start(text)


FIELDS = ['"type":"v"', '"id":"x"', AT_10, '"parents":null', '"event":7', '"id":"}"', '"o":{"a":[]}']
NOISE = ["{", "}", '"', "\\", "[", "]", " ", ":", ","]
GIVEN = st.tuples(st.permutations(FIELDS), st.lists(st.sampled_from(NOISE), max_size=2), st.integers(0, 99))


@given(GIVEN)
def test_a_line_is_read_quickly_only_where_it_is_a_json_object(drawn):
    fields, noise, at = drawn
    good = "{" + ",".join(fields) + "}"
    line = good[: at % len(good)] + "".join(noise) + good[at % len(good) :]
    try:
        found = read_line(line.encode())
    except BadOperation:
        return
    sent = json.loads(line)
    assert (found.type, found.id, found.parents) == (sent["type"], sent["id"], ())


NAMES = st.sampled_from(["x", "Video", "a/b", "", "ü", "İ", "y" * 1_024, "y" * 1_025, "ü" * 600, "\x00"])
TIMES = st.sampled_from(
    [
        "2026-11-17T10:00:00Z",
        "2026-11-17T10:00:00.167456Z",
        "2026-11-17T10:00:00.1679999999Z",
        "2026-11-17T11:00:00.999999+01:00",
        "1969-12-31T23:59:59.999999Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "2026-11-17T10:00:00",
        "2026-11-17 10:00:00z",
        "2026-13-17T10:00:00Z",
        "now",
    ]
)
GIVEN_OBJECTS = st.fixed_dictionaries(
    {"type": NAMES, "id": NAMES, "timestamp": TIMES | st.none()},
    optional={"parents": st.none() | st.lists(NAMES, max_size=3), "event": NAMES, "n": st.floats()},
)


@given(st.lists(GIVEN_OBJECTS.map(json.dumps).map(str.encode), min_size=1, max_size=3))
def test_lines_that_are_read_together_are_read_as_they_are_one_by_one(lines):
    found = read_block(lines, 1)
    if found is None:
        return
    ones = [(number, read_line(line)) for number, line in enumerate(lines, 1)]
    assert objects_in([found]) == [
        DumpLine(one.type, one.id, one.timestamp, one.parents, number) for number, one in ones
    ]


def test_usual_lines_are_read_together():
    assert read_block([X.encode()] * 3, 1) is not None


@pytest.mark.parametrize(
    "lines", [[X + X, ""], [X[:20], X[20:]], [X, "[1]"], ['{"a":[{}', '{"b":1}]}'], [X, "{}"]]
)
def test_what_is_not_one_object_a_line_is_not_read_together(lines):
    assert read_block([line.encode() for line in lines], 1) is None


def test_blocks_with_and_without_unusual_lines_follow_each_other(monkeypatch):
    monkeypatch.setattr(reader, "LINES_AT_ONCE", 2)
    found = read(X, X, X.replace("video", "vidéo"), X, X)
    assert [(one.type, one.line) for one in found] == [
        ("video", 1),
        ("video", 2),
        ("vidéo", 3),
        ("video", 4),
        ("video", 5),
    ]


def test_S15_bad_lines_of_several_blocks_are_named(monkeypatch):
    monkeypatch.setattr(reader, "LINES_AT_ONCE", 2)
    assert refusal_of(X, "{", X, X, "", X, "{").lines == (2, 5, 7)


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=10))
def test_no_input_ends_otherwise_than_with_a_refusal(lines):
    data = b"\n".join(lines)
    with suppress(DumpRefused, DumpUnreadable):
        list(DumpReader("dump", io.BytesIO(data), lambda said: None).batches())
