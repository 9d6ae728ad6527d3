"""Which columns are read as what, and which types go together."""

import pickle
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.support.cql_samples import USER_TYPES
from tests.support.table_samples import EVENTS, ODD, ORDERS

from tidemark.cassandra.cql_types import arrow_type, parse_type
from tidemark.cassandra.scan.columns import Selected, TypeMismatch, ValueRefused, gives, takes
from tidemark.cassandra.table import TypeRefused, UnknownColumn

pytestmark = pytest.mark.unit


def test_all_columns_come_in_the_table_s_order() -> None:
    assert Selected.of(ORDERS).columns == ["customer", "year", "number", "Note", "placed", "tags", "total"]


def test_chosen_columns_come_in_the_order_they_are_named() -> None:
    selected = Selected.of(ORDERS, ["Note", "year"])
    assert selected.schema == pa.schema([("Note", pa.string()), ("year", pa.int32())])


def test_a_column_that_is_not_there_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(UnknownColumn, match=r"shop.orders has no column `nmber`\. Did you mean `number`"):
        Selected.of(ORDERS, ["nmber"])


def test_a_type_without_a_place_is_refused_by_name() -> None:
    with pytest.raises(TypeRefused, match="Leave it out") as refused:
        Selected.of(ODD, ["id", "home"])
    assert (refused.value.table, refused.value.column) == ("shop.odd", "home")
    assert refused.value.type_name == "'org.apache.cassandra.db.marshal.FooType'"


def test_a_table_is_read_without_such_columns() -> None:
    assert Selected.of(ODD, ["id"]).columns == ["id"]


def test_rows_become_a_batch() -> None:
    batch = Selected.of(EVENTS).batch([(b"\0\0\0\1", b"a"), (b"\0\0\0\2", None)])
    assert batch.to_pylist() == [{"id": 1, "payload": "a"}, {"id": 2, "payload": None}]


def test_no_rows_are_an_empty_batch_with_all_columns() -> None:
    assert Selected.of(EVENTS).batch([]).schema.names == ["id", "payload"]


def test_a_schema_may_give_decimals_another_precision() -> None:
    selected = Selected.by_schema(ORDERS, pa.schema([("total", pa.decimal128(10, 2))]))
    assert selected.batch([(b"\0\0\0\1\x0f",)]).to_pylist() == [{"total": Decimal("1.50")}]


def test_a_schema_with_another_type_is_refused() -> None:
    with pytest.raises(TypeMismatch) as refused:
        Selected.by_schema(ORDERS, pa.schema([("number", pa.int32())]))
    assert (refused.value.column, str(refused.value.cql_type)) == ("number", "bigint")


def test_null_is_refused_where_the_schema_has_none() -> None:
    selected = Selected.by_schema(EVENTS, pa.schema([pa.field("payload", pa.string(), nullable=False)]))
    with pytest.raises(ValueRefused, match="column `payload` has null"):
        selected.batch([(None,)])


def test_a_value_that_does_not_fit_is_refused_by_column() -> None:
    with pytest.raises(ValueRefused) as refused:
        Selected.of(EVENTS).batch([(b"\0\0\0\1", b"\xff")])
    assert (refused.value.table, refused.value.column) == ("shop.events", "payload")


@pytest.mark.parametrize(
    "error",
    [UnknownColumn("t", "c", ["d"]), TypeRefused("t", "c", "counter"), ValueRefused("t", "c", "null")],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_the_way_from_a_task(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    "name", ["int", "text", "decimal", "duration", "set<text>", "map<text, frozen<list<int>>>"]
)
def test_the_usual_type_goes_both_ways(name: str) -> None:
    cql_type = parse_type(name)
    assert gives(cql_type, arrow_type(cql_type))
    assert takes(cql_type, arrow_type(cql_type))


@pytest.mark.parametrize(
    ("name", "arrow", "is_given", "is_taken"),
    [
        ("bigint", pa.int32(), False, True),
        ("int", pa.int64(), False, False),
        ("int", pa.string(), False, False),
        ("float", pa.float64(), False, False),
        ("double", pa.float32(), False, True),
        ("decimal", pa.decimal128(5, 1), True, True),
        ("decimal", pa.int64(), False, True),
        ("varint", pa.decimal128(20, 0), True, True),
        ("text", pa.binary(), False, False),
        ("text", pa.large_string(), False, True),
        ("blob", pa.large_binary(), False, True),
        ("blob", pa.string(), False, False),
        ("timestamp", pa.timestamp("us", tz="Europe/Prague"), False, True),
        ("timestamp", pa.timestamp("us"), False, False),
        ("duration", pa.struct([("months", pa.int32())]), False, False),
        ("set<text>", pa.list_(pa.field("element", pa.string(), nullable=False)), True, True),
        ("set<text>", pa.string(), False, False),
        ("list<bigint>", pa.list_(pa.int32()), False, True),
        ("map<text, int>", pa.map_(pa.string(), pa.string()), False, False),
        ("map<text, int>", pa.list_(pa.string()), False, False),
        ("int", pa.null(), False, True),
        ("counter", pa.int64(), True, True),
        ("vector<float, 2>", pa.list_(pa.float32()), True, True),
        ("tuple<int, text>", pa.struct([("a", pa.int32()), ("b", pa.string())]), False, True),
        ("tuple<int, text>", pa.struct([("_1", pa.int32())]), False, False),
        ("address", pa.struct([("street", pa.string()), ("number", pa.int32())]), True, True),
        ("address", pa.struct([("number", pa.int32()), ("street", pa.string())]), False, True),
        ("address", pa.struct([("number", pa.int32()), ("road", pa.string())]), False, False),
        ("address", pa.string(), False, False),
    ],
)
def test_other_types_go_where_nothing_is_lost(
    name: str, arrow: pa.DataType, is_given: bool, is_taken: bool
) -> None:
    cql_type = parse_type(name, USER_TYPES)
    assert (gives(cql_type, arrow), takes(cql_type, arrow)) == (is_given, is_taken)
