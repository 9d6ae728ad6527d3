"""Types as the server spells them, and what they are in Arrow."""

import pyarrow as pa
import pytest
from tests.support.cql_samples import USER_TYPES

from tidemark.cassandra.cql_types import CqlKind, CqlType, NoPlaceInArrow, arrow_type, parse_type

pytestmark = pytest.mark.unit

TEXT, INT = CqlType(CqlKind.TEXT), CqlType(CqlKind.INT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text", TEXT),
        ("set<text>", CqlType(CqlKind.SET, (TEXT,))),
        ("frozen<set<text>>", CqlType(CqlKind.SET, (TEXT,))),
        ("map<text, int>", CqlType(CqlKind.MAP, (TEXT, INT))),
        ("list<frozen<map<text, int>>>", CqlType(CqlKind.LIST, (CqlType(CqlKind.MAP, (TEXT, INT)),))),
        ("counter", CqlType(CqlKind.COUNTER)),
        ("frozen<tuple<int, text>>", CqlType(CqlKind.TUPLE, (INT, TEXT), fields=("_1", "_2"))),
        ("vector<int, 3>", CqlType(CqlKind.VECTOR, (INT,), size=3)),
        (
            "map<text, frozen<map<int, text>>>",
            CqlType(CqlKind.MAP, (TEXT, CqlType(CqlKind.MAP, (INT, TEXT)))),
        ),
    ],
)
def test_a_type_is_read(text: str, expected: CqlType) -> None:
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "address",
        "frozen<address>",
        "list<frozen<address>>",
        "user-defined type",
        "tuple",
        "vector<float>",
        "vector<float, many>",
        "'org.apache.cassandra.db.marshal.DynamicCompositeType'",
        "set",
        "int<text>",
        "map<text>",
    ],
)
def test_a_type_without_a_place_in_arrow_is_refused(text: str) -> None:
    with pytest.raises(NoPlaceInArrow):
        parse_type(text)


def test_a_user_defined_type_is_known_by_its_name() -> None:
    address = CqlType(CqlKind.USER_TYPE, (TEXT, INT), fields=("street", "number"), name="address")
    assert parse_type("list<frozen<address>>", USER_TYPES) == CqlType(CqlKind.LIST, (address,))
    assert parse_type('map<int, frozen<"Odd Name">>', USER_TYPES).elements[1].elements[0] == address


def test_a_type_is_spelled_as_the_server_does() -> None:
    assert str(parse_type("map<text, frozen<list<int>>>")) == "map<text, list<int>>"
    assert str(parse_type("vector<float, 3>")) == "vector<float, 3>"
    assert str(parse_type("frozen<address>", USER_TYPES)) == "address"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("tuple<int, text>", pa.struct([("_1", pa.int32()), ("_2", pa.string())])),
        ("vector<float, 3>", pa.list_(pa.field("element", pa.float32()))),
        ("list<int>", pa.list_(pa.field("element", pa.int32()))),
        ("map<text, frozen<set<uuid>>>", pa.map_(pa.string(), pa.list_(pa.field("element", pa.string())))),
    ],
)
def test_a_type_has_its_counterpart(text: str, expected: pa.DataType) -> None:
    assert arrow_type(parse_type(text)) == expected
