"""Rows, heads and tombstones are byte for byte what the driver would send for them, column by column.

The statements are those that ``JournalTables`` prepares: a cell stands where its column's marker is.
"""

import re
import struct
from collections.abc import Callable
from datetime import date
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID

import pytest
from cassandra import cqltypes
from cassandra.util import Duration
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.journal.effect import Effect, HeadTombstone, Row, Tombstone
from tidemark.journal.head import Head
from tidemark.journal_tables import cells as journal_cells
from tidemark.journal_tables.statements import JournalTables
from tidemark.pipeline.model import JournalDeclaration

pytestmark = pytest.mark.unit

UNSET, NULL = "left as it is", "removed"
PROTOCOL = 5
TEXT, BIGINT, INT = cqltypes.UTF8Type, cqltypes.LongType, cqltypes.Int32Type
ROW_TYPES = {
    "id": TEXT,
    "topic": TEXT,
    "segment": BIGINT,
    "seq_nr": BIGINT,
    "partition": INT,
    "offset": BIGINT,
    "timestamp": cqltypes.DateType,
    "origin": TEXT,
    "version": TEXT,
    "meta_record_id": cqltypes.UUIDType,
    "tags": cqltypes.SetType.apply_parameters([TEXT]),
    "metadata": TEXT,
    "payload_type": TEXT,
    "payload_txt": TEXT,
    "payload_bin": cqltypes.BytesType,
    "headers": cqltypes.MapType.apply_parameters([TEXT, TEXT]),
    "write_time": BIGINT,
}
HEAD_TYPES = {
    "topic": TEXT,
    "segment": BIGINT,
    "id": TEXT,
    "partition": INT,
    "offset": BIGINT,
    "segment_size": INT,
    "seq_nr": BIGINT,
    "delete_to": BIGINT,
    "created": cqltypes.DateType,
    "created_date": cqltypes.SimpleDateType,
    "updated": cqltypes.DateType,
    "expire_after": cqltypes.DurationType,
    "expire_on": cqltypes.SimpleDateType,
    "record_id": cqltypes.UUIDType,
    "origin": TEXT,
    "write_time": BIGINT,
}

LITTLE = Row("k", "orders", 0, 1, 0, 0, 0, None, None, None, (), "", None, None, None, {}, 1)
MUCH = Row(
    *("ключ", "orders", 2**40, 2**63 - 1, 2**31 - 1, 2**62, 1_700_000_000_123, "host", "1.0.0"),
    *(UUID(int=2**127 + 5), ("a", "žluť"), '{"header":{"data":"' + "x" * 80 + '"},"payload":{}}', "text"),
    *("\U0001f600" * 100, b"\x00\xff" * 50, {"name": "value", "ž": ""}, 2**60),
)
NEW = Head(3355, 0, 0, 10_000, 1, None, 0, 0)
OLD = Head(
    *(55, 2**31 - 1, 2**62, 2, 2**63 - 1, 2**63 - 2, 1_700_000_000_123, 1_700_000_000_456),
    *(90_061_000_000_001, date(2100, 2, 28), UUID(int=7), "hôte"),
)


class Sent(list[dict[str, bytes | str]]):
    """What a bulk was given: the cells of each statement, by the names of its markers."""

    def add(self, statement: Any, cells: bytes) -> None:
        names = marker_names(statement.prepared.query_string)
        self.append(dict(zip(names, split(cells), strict=True)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def marker_names(query: str) -> list[str]:
    """The columns that a statement's bind markers are for, in their order."""
    if found := re.search(r"INSERT INTO \S+ \((.*?)\) VALUES", query):
        return [*found[1].split(", "), "write_time"]
    return ["write_time", *re.findall(r"(\w+) <?= \?", query)]


def split(cells: bytes) -> list[bytes | str]:
    found, place = [], 0
    while place < len(cells):
        (length,) = struct.unpack_from(">i", cells, place)
        place += 4
        found.append({-1: NULL, -2: UNSET}.get(length, cells[place : place + max(length, 0)]))
        place += max(length, 0)
    return found


def as_the_driver(types: dict[str, Any], values: dict[str, Any], absent: str) -> dict[str, bytes | str]:
    return {
        name: absent if value is None else types[name].to_binary(value, PROTOCOL)
        for name, value in values.items()
    }


def prepare(query: str) -> Any:
    column = SimpleNamespace(keyspace_name="journal", table_name="table")
    return SimpleNamespace(
        query_string=query, query_id=b"id", column_metadata=[column], routing_key_indexes=()
    )


@pytest.fixture(scope="module")
def tables() -> JournalTables:
    declared = JournalDeclaration.model_validate({"name": "journal", "kind": "journal"}, context={})
    return JournalTables(SimpleNamespace(prepare=prepare), declared)


def sent(add: Callable[[Sent], object]) -> dict[str, bytes | str]:
    bulk = Sent()
    add(bulk)
    (only,) = bulk
    return only


def effect(*tombstones: Tombstone, rows: tuple[Row, ...] = ()) -> Effect:
    return Effect("orders", "k", tombstones, rows, None, None, 1, 1, 0, 0, (), 0, ())


@pytest.mark.parametrize("row", [LITTLE, MUCH], ids=["little", "much"])
def test_a_row_leaves_what_it_has_not_as_it_is(tables, row):
    found = sent(lambda bulk: tables.add_rows(bulk, tables.encode_rows([row])))
    assert found == as_the_driver(ROW_TYPES, row._asdict(), UNSET)


@settings(max_examples=50, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.binary(max_size=40),
    st.lists(st.sampled_from(["a", "b", "ž"]), unique=True).map(tuple),
    st.none() | st.uuids(),
)
def test_any_row_is_what_the_driver_makes_of_it(tables, text, other, number, data, tags, record_id):
    row = Row(
        *(text, other or "orders", number, number, 3, number, number, other, other, record_id, tags),
        *(text, other, other, data, {text: text}, number),
    )
    found = sent(lambda bulk: tables.add_rows(bulk, tables.encode_rows([row])))
    assert found == as_the_driver(ROW_TYPES, row._asdict(), UNSET)


@pytest.mark.parametrize(
    ("head", "created_date"), [(NEW, date(1970, 1, 1)), (OLD, date(2023, 11, 14))], ids=["new", "old"]
)
def test_a_head_is_written_whole(tables, head, created_date):
    values = head._asdict() | {"created_date": created_date, "topic": "orders", "id": "k", "write_time": 7}
    if head.expire_after is not None:
        values["expire_after"] = Duration(0, 1, 3_661_000_000_001)
    found = sent(lambda bulk: tables.add_head(bulk, "orders", "k", head, 7))
    assert found == as_the_driver(HEAD_TYPES, values, NULL)


@pytest.mark.parametrize(
    ("nanoseconds", "days", "rest"),
    [(0, 0, 0), (1, 0, 1), (86_400_000_000_000, 1, 0), (-86_400_000_000_001, -1, -1)],
)
def test_an_expiry_is_whole_days_and_the_rest(tables, nanoseconds, days, rest):
    head = NEW._replace(expire_after=nanoseconds)
    found = sent(lambda bulk: tables.add_head(bulk, "orders", "k", head, 7))
    assert found["expire_after"] == cqltypes.DurationType.to_binary(Duration(0, days, rest), PROTOCOL)


def test_a_segment_is_deleted_whole(tables):
    found = sent(lambda bulk: tables.add_tombstones(bulk, [effect(Tombstone(3, None, 7))]))
    values = {"write_time": 7, "id": "k", "topic": "orders", "segment": 3}
    assert found == as_the_driver(ROW_TYPES, values, UNSET)


def test_a_segment_is_deleted_up_to_a_number(tables):
    found = sent(lambda bulk: tables.add_tombstones(bulk, [effect(Tombstone(3, 2**40, 7))]))
    values = {"write_time": 7, "id": "k", "topic": "orders", "segment": 3, "seq_nr": 2**40}
    assert found == as_the_driver(ROW_TYPES, values, UNSET)


def test_there_may_be_no_tombstone(tables):
    assert tables.add_tombstones(Sent(), [effect()]) is False


def test_a_row_is_taken_back_at_its_own_write_time(tables, monkeypatch):
    bulk = Sent()
    monkeypatch.setattr(tables, "bulk", lambda: bulk)
    tables.remove_rows([MUCH])
    names = ("write_time", "id", "topic", "segment", "seq_nr", "timestamp")
    assert bulk == [as_the_driver(ROW_TYPES, {name: getattr(MUCH, name) for name in names}, UNSET)]


def test_a_head_is_deleted_in_every_segment(tables):
    bulk = Sent()
    tables.add_head_tombstone(bulk, "orders", "k", HeadTombstone((3355, 55), 7))
    values = {"write_time": 7, "topic": "orders", "id": "k"}
    assert bulk == [as_the_driver(HEAD_TYPES, values | {"segment": one}, UNSET) for one in (3355, 55)]


def test_the_partition_key_stands_first():
    """There its token is computed from."""
    assert journal_cells.ROW_COLUMNS[:3] == ("id", "topic", "segment")
    assert journal_cells.HEAD_COLUMNS[:2] == ("topic", "segment")
