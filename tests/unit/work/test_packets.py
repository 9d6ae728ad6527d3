"""Statements 1 to 13 and 18: what a journal's declaration gives, and which packets it refuses."""

import pytest
from tests.support.work_samples import at

from tidemark.settings import Settings
from tidemark.work.errors import BadRequest, JournalRefused, PayloadTooLarge, UnknownJournal
from tidemark.work.loader import find_journal, load_journals
from tidemark.work.model.columns import key_values
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.model.entry import Priority, Status
from tidemark.work.model.rules import FURTHEST
from tidemark.work.queue.packets import packet_of

pytestmark = pytest.mark.unit

PAGES = WorkDeclaration(name="pages", key={"page": "text"}, payload={"revision": "int"})
NOW = at("10:00")


def packet(key="page/42", payload=None, **options):
    return packet_of(PAGES, key, {"revision": 7} if payload is None else payload, now=NOW, **options)


def test_S1_only_key_and_payload_have_to_be_declared():
    made = packet()
    assert (made.key, made.payload, made.inserted, made.process) == ("page/42", '{"revision":7}', NOW, NOW)
    assert (made.priority, made.expires, made.schema) == (Priority.UPDATES, 0, 1)


def test_S2_the_client_library_fills_in_the_insertion_date():
    assert packet().inserted == NOW


def test_S3_the_client_s_date_is_kept():
    assert packet(inserted=at("09:00")).inserted == at("09:00")


def test_D2_7_a_date_too_far_ahead_is_refused():
    assert packet(inserted=at("10:05")).inserted == at("10:05")
    with pytest.raises(BadRequest, match="ahead of this clock"):
        packet(inserted=at("10:05") + 1)


@pytest.mark.parametrize("priority", [256, -1, True, "20", 1.5, None])
def test_S5_a_priority_is_0_to_255(priority):
    with pytest.raises(BadRequest, match=r"`priority` is .* 0 to 255"):
        packet(priority=priority)


@pytest.mark.parametrize("priority", [0, 255])
def test_S5_the_first_and_the_last_priority_are_taken(priority):
    assert packet(priority=priority).priority == priority


def test_S6_now_is_as_soon_as_possible():
    assert packet(inserted=at("09:00")).process == NOW
    assert packet(inserted=at("10:04")).process == at("10:04")


def test_S8_only_two_states_are_ever_stored():
    assert [status.value for status in Status] == ["W", "P"]


@pytest.mark.parametrize("key", [None, "", 7, {"page": 7}, {}, {"page": "a", "site": "b"}, "\ud800"])
def test_S11_a_key_is_required_and_as_declared(key):
    with pytest.raises(BadRequest, match=r"Nothing was changed\.$"):
        packet(key=key)


@pytest.mark.parametrize(
    "payload",
    [{}, {"revision": "7"}, {"revision": True}, {"revision": 2**63}, {"revision": 1, "x": 2}, [], "x"],
)
def test_S12_a_payload_is_required_and_as_declared(payload):
    with pytest.raises(BadRequest, match="the payload of page/42 is not as declared"):
        packet(payload=payload)


@pytest.mark.parametrize("column", ["status", "start", "timeouts"])
def test_S13_a_client_never_sets_what_the_cursor_sets(column):
    with pytest.raises(BadRequest, match=f"`{column}` is not declared"):
        packet(payload={"revision": 7, column: 1})


def test_S11_a_key_of_several_columns():
    declared = WorkDeclaration(name="p", key={"site": "text", "page": "int"}, payload={"x": "json"})
    made = packet_of(declared, {"page": 7, "site": "a"}, {"x": {"y": [1.5, None]}}, now=NOW)
    assert made.key == '["a",7]'
    assert key_values(declared.key, made.key) == {"site": "a", "page": 7}


def test_a_payload_over_the_limit_is_refused():
    small = WorkDeclaration(name="p", key={"k": "text"}, payload={"x": "text"}, payload_limit=20)
    with pytest.raises(PayloadTooLarge) as refusal:
        packet_of(small, "k", {"x": "0123456789abc"}, now=NOW)
    assert (refusal.value.size, refusal.value.limit) == (21, 20)
    assert packet_of(small, "k", {"x": "0123456789ab"}, now=NOW).payload == '{"x":"0123456789ab"}'


@pytest.mark.parametrize("option", ["inserted", "process", "expires"])
@pytest.mark.parametrize("value", [-1, 1.5, "10:00", True, 2**63])
def test_a_date_is_a_whole_number_of_milliseconds(option, value):
    with pytest.raises(BadRequest):
        packet(**{option: value})


@pytest.mark.parametrize("option", ["process", "expires"])
def test_a_date_is_at_most_ten_years_ahead(option):
    assert getattr(packet(**{option: NOW + FURTHEST}), option) == NOW + FURTHEST
    with pytest.raises(BadRequest, match="more than ten years ahead"):
        packet(**{option: NOW + FURTHEST + 1})


# Files


def given_file(folder, text, name="pages.yaml"):
    (folder / name).write_text(text)
    return Settings.read({"TIDEMARK_ROOT": str(folder / "none"), "TIDEMARK_WORK": str(folder)})


def test_D2_28_the_journal_that_comes_with_tidemark_is_right():
    assert not load_journals().refused
    assert find_journal("pages").rules.max_timeouts == 3


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("name: p\nkey: {k: text}\npayload: {x: int}\ntime_limti: 1h\n", 4, "Did you mean `time_limit`?"),
        ("name: p\nkey: {k: txt}\npayload: {x: int}\n", 2, "not one of text, int, float, bool, json"),
        ("name: p\nkey: {k: text}\n", 1, "`payload` is missing"),
        ("name: p\nkey: {}\npayload: {x: int}\n", 2, "is an empty mapping"),
        ("name: p\nkey: {k: text}\npayload: {status: int}\n", 3, "every journal has"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\nmax_timeouts: 256\n", 4, "at most 255"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\nmax_failures: 0\n", 4, "at least 1"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\nmax_timeouts: -1\n", 4, "at least 1"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\nshards: -1\n", 4, "at least 1"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\npayload_limit: -1\n", 4, "payload_limit"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\ntime_limit: -1h\n", 4, "time_limit"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\ntime_limit: 0s\n", 4, "longer than nothing"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\ntime_limit: 3651d\n", 4, "at most 3650d"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\ndead_letters: 3651d\n", 4, "at most 3650d"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\nhistory: 3651d\n", 4, "at most 3650d"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\nbackoff: {most: 3651d}\n", 4, "at most 3650d"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\nbucket: week\n", 4, "not one of hour, day, month"),
        ("name: p\nkey: {k: text}\npayload: {x: int}\nbackoff: {first: 2h}\n", 4, "0 < first"),
        ("", 1, "Declare a work journal"),
    ],
)
def test_D2_28_what_cannot_be_meant_is_refused_with_its_line(tmp_path, text, line, said):
    (refusal,) = load_journals(given_file(tmp_path, text)).refused
    assert refusal.problems[0].line == line
    assert said in str(refusal)


def test_a_broken_file_hides_no_other(tmp_path):
    given_file(tmp_path, "name: [", "bad.yaml")
    settings = given_file(tmp_path, "name: good\nkey: {k: text}\npayload: {x: int}\n", "good.yaml")
    assert find_journal("good", settings).name == "good"
    with pytest.raises(JournalRefused):
        find_journal("bad", settings)
    with pytest.raises(UnknownJournal, match="Did you mean `good`"):
        find_journal("goood", settings)
