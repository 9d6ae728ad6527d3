"""``tidemark collection``: rows and changes as of a time, readers, pins, and what is refused."""

import datetime
import json
import uuid
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pytest
from cassandra.util import Date, OrderedMap, SortedSet, Time
from tests.support.reading_world import ReadingWorld

from tidemark.cli.output.collection import row_of_driver, rows_of_batch
from tidemark.client.collection.settings import CollectionSettings
from tidemark.outputs.reader_errors import StillNeeded

pytestmark = pytest.mark.unit

BANK = """
name: bank
source: {kafka: {topics: [accounts], format: json}}
writers:
  - name: accounts
    kind: collection
    envelope: upsert
    key: {id: text}
    columns: {owner: text, balance: int}
  - name: seats
    kind: collection
    envelope: upsert
    key: {hall: text, seat: int}
    columns: {guest: text}
  - {name: guests, kind: collection, envelope: append, columns: {name: text}, keep: 30d}
  - {name: archive, kind: files, path: "${TIDEMARK_HOME}/bank"}
"""
WHY = ("--execute", "--reason", "the audit", "--by", "ann")


@pytest.fixture
def world(installation, control, monkeypatch) -> ReadingWorld:
    """A collection with a handover at 41."""
    (installation / "include/pipelines/bank.yaml").write_text(BANK)
    world = ReadingWorld()
    world.pipeline = "bank"
    from tests.support.output_store_world import FIRST

    world.store.create(FIRST)
    world.step(10, {"ann": 1, "bob": 2})
    world.step(40, {"ann": 3})
    world.build_second({10: {"ann": 1}, 40: {"ann": 30}})
    assert world.hand_over(2) == 41
    monkeypatch.setattr(CollectionSettings, "open", lambda self, who: world.opened(who=who))
    return world


def test_get_shows_a_row_as_of_a_time(run, world):
    assert run("collection", "get", "bank", "accounts", "ann", "--at", "40").out == (
        '{"id": "ann", "owner": "Ann", "balance": 3}\n'
    )
    newest = json.loads(run("collection", "get", "bank", "accounts", "ann", "--json").out)
    row = {"id": "ann", "owner": "Ann", "balance": 30}
    assert newest == {"pipeline": "bank", "writer": "accounts", "row": row}
    ended = run("collection", "get", "bank", "accounts", "cid")
    assert (ended.code, ended.out) == (0, "There is no such row.\n")
    assert json.loads(run("collection", "get", "bank", "accounts", "cid", "--json").out)["row"] is None
    assert world.held == []


def test_rows_are_printed_one_per_line(run, world):
    ended = run("collection", "rows", "bank", "accounts", "--at", "1970-01-01T00:00:00.000010Z")
    *rows, last = ended.out.splitlines()
    assert sorted(json.loads(row)["id"] for row in rows) == ["ann", "bob"]
    assert last == "2 rows at 10."
    (only,) = run("collection", "rows", "bank", "accounts", "--json").out.splitlines()
    assert json.loads(only) == {"id": "ann", "owner": "Ann", "balance": 30}
    assert world.held == []


def test_changes_go_through_the_handover(run, world):
    ended = run("collection", "changes", "bank", "accounts", "--after", "10", "--json")
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert [(one["t"], one["row"]["id"], one["row"]["balance"], one["diff"]) for one in found[:2]] == [
        (40, "ann", 1, -1),
        (40, "ann", 3, 1),
    ]
    assert {(one["t"], one["row"]["balance"], one["diff"]) for one in found[2:]} == {
        (41, 3, -1),
        (41, 2, -1),
        (41, 30, 1),
    }
    ended = run("collection", "changes", "bank", "accounts", "--after", "0", "--until", "10")
    assert ended.out.splitlines()[0] == '10  +  {"id": "ann", "owner": "Ann", "balance": 1}'
    assert ended.out.splitlines()[-1] == "2 changes through 10."


def test_readers_and_pins_are_listed_and_a_pin_keeps_a_time(run, world):
    assert "No reader and no pin" in run("collection", "readers", "bank", "accounts").out
    pin = ("collection", "pin", "bank", "accounts", "--at", "40", "--name", "year-end")
    planned = run(*pin)
    assert (planned.code, world.held) == (0, [])
    assert "Nothing was changed" in planned.out
    assert run(*pin, *WHY).code == 0
    with world.collection(who="billing") as reader:
        reader.hold(30)
        shown = run("collection", "readers", "bank", "accounts", "--json")
    readers = json.loads(shown.out)
    assert (readers["since"], readers["frontier"]) == (0, world.output.frontier)
    assert [(one["t"], one["who"].split(" on ")[0]) for one in readers["readers"]] == [
        (30, "billing"),
        (40, "ann: the audit"),
    ]
    assert "unpinned" in run("collection", "readers", "bank", "accounts").out
    with pytest.raises(StillNeeded):
        world.retire_first()
    unpin = ("collection", "unpin", "bank", "accounts", "year-end")
    assert "ann: the audit" in run(*unpin).out
    assert world.held == [40]
    assert run(*unpin, *WHY).code == 0
    world.retire_first()


def test_trim_shows_its_plan_and_removes_on_request(run, world, installation, monkeypatch):
    from tidemark.app.renditions import opened, trim

    tables = TablesOfPlan()
    monkeypatch.setattr("tidemark.consensus.control_plane.look_at_cluster", lambda _: world.consensus)
    monkeypatch.setattr(opened.WriterRenditions, "progress", world.progress)
    monkeypatch.setattr(trim.Trimming, "_target", lambda self, rendition: tables)
    file = installation / "include/pipelines/bank.yaml"
    file.write_text(BANK.replace("balance: int}", "balance: int}\n    keep: 90d"))
    planned = json.loads(run("collection", "trim", "bank", "accounts", "--json").out)
    assert (planned["since_before"], planned["since"], planned["executed"]) == (0, 41, False)
    assert planned["renditions"] == [
        {"number": number, "place": place, "keys": 3, "times": 2, "bytes": 900}
        for number, place in ((1, "accounts"), (2, "accounts_r2"))
    ]
    assert "Nothing was changed. Add --execute" in run("collection", "trim", "bank", "accounts").out
    assert (tables.removed, world.readers.load().since) == ([], 0)

    done = json.loads(run("collection", "trim", "bank", "accounts", *WHY, "--json").out)
    assert [(one["number"], one["keys"], one["times"]) for one in done["removed"]] == [(1, 3, 2), (2, 3, 2)]
    assert tables.removed == [41, [40, 10], 41, [40, 10]]
    assert world.readers.load().since == 41
    again = run("collection", "trim", "bank", "accounts", *WHY)
    assert (again.code, "no version goes" in again.out) == (0, True)
    assert "Done by ann." in again.out


class TablesOfPlan:
    """The tables of any rendition: three keys have older versions."""

    def __init__(self) -> None:
        self.removed: list[object] = []

    def count_obsolete(self, since: int) -> int:
        return 3

    def size(self) -> int:
        return 900

    def drop_versions(self, since: int) -> int:
        self.removed.append(since)
        return 3

    def drop_changes(self, times: Iterable[int]) -> int:
        self.removed.append(list(times))
        return 2


def test_an_operator_reads_of_a_forgotten_time_what_to_ask_for(run, world):
    world.retire_first()
    ended = run("collection", "rows", "bank", "accounts", "--at", "40")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "bank/accounts: time 40 is no longer readable; since is 41. Nothing was read. Ask for 41 or later. "
        "To keep a time, pin it: tidemark collection pin bank accounts --at 41\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", "bonk", "accounts", "ann"), "There is no pipeline `bonk`. Did you mean `bank`?"),
        (
            ("get", "bank", "account", "ann"),
            "its writer account is not there. Its collections: accounts, seats, guests.",
        ),
        (("rows", "bank", "archive"), "its writer archive is of kind `files`."),
        (("rows", "orders", "archive"), "orders: it has no writer of kind `collection`. Nothing was read."),
        (("rows", "bank", "accounts", "--at", "soon"), "'soon' is no time of a collection"),
        (("rows", "bank", "accounts", "--at", "2026-01-01"), "it has no time zone"),
        (("rows", "bank", "accounts", "--at", "-5"), "it is before 1970"),
        (("rows", "bank", "accounts", "--at", "99"), "time 99 is not readable yet; times before 42 are."),
        (("changes", "bank", "accounts", "--after", "99"), "time 99 is not readable yet"),
        (("changes", "bank", "accounts", "--after", "0", "--until", "99"), "time 99 is not readable yet"),
        (("changes", "bank", "accounts", "--after", "x"), "'x' is no time of a collection"),
        (("get", "bank", "accounts", ""), "an empty key"),
        (("get", "bank", "seats", "main"), "its key is not a JSON object"),
        (("get", "bank", "seats", '{"hall": "main"}'), 'its key has no field "seat"'),
        (("pin", "bank", "accounts", "--at", "99"), "time 99 is not readable yet"),
        (("trim", "bonk", "accounts"), "There is no pipeline `bonk`. Did you mean `bank`?"),
        (("trim", "bank", "account"), "there is no such writer; there is: accounts, seats, guests, archive."),
        (("trim", "bank", "archive"), "it is of kind files; only collections have versions."),
        (("trim", "bank", "seats"), "it has no `keep`, so all versions stay. Add one to its declaration"),
        (("trim", "bank", "seats", *WHY), "it has no `keep`, so all versions stay."),
        (("trim", "bank", "guests"), "bank/guests: it has no output yet."),
        (
            ("unpin", "bank", "accounts", "nothing"),
            "there is no pin nothing. Nothing was changed. Pins: none.",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_input_is_one_sentence_and_ends_with_1(run, world, arguments, said):
    ended = run("collection", *arguments)
    assert ended.code == 1
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert world.held == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("changes", "bank", "accounts"),
        ("pin", "bank", "accounts"),
        ("get", "bank", "accounts"),
        ("pin", "bank", "accounts", "--at", "40", "--execute"),
        ("unpin", "bank", "accounts", "x", "--execute"),
        ("trim", "bank"),
        ("trim", "bank", "accounts", "--execute"),
    ],
    ids=" ".join,
)
def test_what_is_missing_is_said_with_2(run, world, arguments):
    assert run("collection", *arguments).code == 2
    assert world.held == []


def test_a_key_of_several_columns_is_a_json_object(world):
    from tidemark.client.collection.settings import collection_settings

    def look_up(name: str) -> dict[str, str]:
        return {"conn_type": "cassandra", "host": "127.0.0.1"}

    seats = collection_settings("bank", "seats", look_up)
    assert seats.parse_key('{"hall": "main", "seat": 12}') == {"hall": "main", "seat": 12}
    assert collection_settings("bank", "accounts", look_up).parse_key('{"a": 1}') == {"id": '{"a": 1}'}


def test_values_are_shown_as_a_producer_writes_them():
    id_ = uuid.uuid4()
    driver = {
        "amount": Decimal("12.50"),
        "blob": b"\x00\x01",
        "at": datetime.datetime(2026, 1, 1, 10),
        "day": Date("2026-01-02"),
        "hour": Time("10:00:00.5"),
        "id": id_,
        "tags": SortedSet(["b", "a"]),
        "names": OrderedMap([(1, "x")]),
        "pair": (1, None),
        "nan": float("nan"),
        "empty": None,
        "yes": True,
    }
    assert row_of_driver(driver) == {
        "amount": "12.50",
        "blob": "AAE=",
        "at": "2026-01-01T10:00:00Z",
        "day": "2026-01-02",
        "hour": "10:00:00.500000000",
        "id": str(id_),
        "tags": ["a", "b"],
        "names": {"1": "x"},
        "pair": [1, None],
        "nan": "nan",
        "empty": None,
        "yes": True,
    }
    batch = pa.record_batch(
        {
            "day": [datetime.date(2026, 1, 2)],
            "names": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    assert list(rows_of_batch(batch)) == [{"day": "2026-01-02", "names": {"a": 1}}]
