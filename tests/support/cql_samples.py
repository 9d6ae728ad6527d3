"""For each type of CQL: what the driver takes for it, and what that is as a value of Arrow."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from struct import pack
from typing import Any

import pyarrow as pa
from cassandra import cqltypes
from cassandra.util import Date, Duration, Time
from hypothesis import strategies as st

from tidemark.cassandra.cql_types import CqlType, UserType, arrow_type, parse_type

PROTOCOL = 5
USER_TYPES = (
    UserType("address", (("street", "text"), ("number", "int"))),
    UserType("Odd Name", (("A b", "frozen<address>"), ("tags", "frozen<set<text>>"))),
)
MOST_MILLISECONDS = (2**63 - 1) // 1000


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@dataclass(frozen=True)
class Sample:
    """A type, values as Arrow has them in its integers and texts, and the driver's form of such a value."""

    text: str
    driver: Any
    values: st.SearchStrategy[Any]
    for_driver: Callable[[Any], Any] = lambda value: value
    storage: pa.DataType | None = None
    """What Arrow counts in, where Python's own types are too narrow to compare with."""

    @property
    def cql_type(self) -> CqlType:
        return parse_type(self.text, USER_TYPES)

    def cell(self, value: Any) -> bytes | None:
        """The driver's bytes of a value."""
        return None if value is None else self.driver.to_binary(self.for_driver(value), PROTOCOL)

    def array(self, values: list[Any]) -> pa.Array:
        wanted = arrow_type(self.cql_type)
        return pa.array(values, self.storage).view(wanted) if self.storage else pa.array(values, wanted)

    def read(self, array: pa.Array) -> list[Any]:
        return (array.view(self.storage) if self.storage else array).to_pylist()


def duration(value: dict[str, int]) -> Duration:
    return Duration(value["months"], value["days"], value["nanoseconds"])


def signs(sign: int) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries(
        {
            "months": st.integers(0, 2**31 - 1).map(lambda n: sign * n),
            "days": st.integers(0, 2**31 - 1).map(lambda n: sign * n),
            "nanoseconds": st.integers(0, 2**63 - 1).map(lambda n: sign * n),
        }
    )


SCALARS = [
    Sample("text", cqltypes.UTF8Type, st.text()),
    Sample("varchar", cqltypes.UTF8Type, st.text()),
    Sample("ascii", cqltypes.AsciiType, st.text(st.characters(max_codepoint=127))),
    Sample("blob", cqltypes.BytesType, st.binary()),
    Sample("bigint", cqltypes.LongType, signed(64)),
    Sample("int", cqltypes.Int32Type, signed(32)),
    Sample("smallint", cqltypes.ShortType, signed(16)),
    Sample("tinyint", cqltypes.ByteType, signed(8)),
    Sample("boolean", cqltypes.BooleanType, st.booleans()),
    Sample("float", cqltypes.FloatType, st.floats(width=32, allow_nan=False)),
    Sample("double", cqltypes.DoubleType, st.floats(allow_nan=False)),
    Sample("uuid", cqltypes.UUIDType, st.uuids().map(str), cqltypes.UUID),
    Sample("timeuuid", cqltypes.TimeUUIDType, st.uuids(version=1).map(str), cqltypes.UUID),
    Sample(
        "timestamp",
        cqltypes.DateType,
        st.integers(-MOST_MILLISECONDS, MOST_MILLISECONDS).map(lambda n: n * 1000),
        lambda micros: micros // 1000,
        pa.int64(),
    ),
    Sample("date", cqltypes.SimpleDateType, signed(32), Date, pa.int32()),
    Sample("time", cqltypes.TimeType, st.integers(0, 86_399_999_999_999), Time),
    Sample("inet", cqltypes.InetAddressType, st.ip_addresses().map(str)),
    Sample("duration", cqltypes.DurationType, signs(1) | signs(-1), duration),
    Sample(
        "decimal",
        cqltypes.DecimalType,
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda unscaled: Decimal(f"{unscaled}e-18")),
    ),
    Sample(
        "varint",
        cqltypes.IntegerType,
        st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
        int,
    ),
]
_TEXT, _INT = cqltypes.UTF8Type, cqltypes.Int32Type
_INTS = cqltypes.ListType.apply_parameters([_INT])
COLLECTIONS = [
    Sample("set<text>", cqltypes.SetType.apply_parameters([_TEXT]), st.lists(st.text(), unique=True)),
    Sample("list<int>", _INTS, st.lists(signed(32))),
    Sample(
        "frozen<list<blob>>", cqltypes.ListType.apply_parameters([cqltypes.BytesType]), st.lists(st.binary())
    ),
    Sample(
        "map<text, text>",
        cqltypes.MapType.apply_parameters([_TEXT, _TEXT]),
        st.dictionaries(st.text(), st.text()).map(lambda found: list(found.items())),
        dict,
    ),
    Sample(
        "map<int, frozen<list<int>>>",
        cqltypes.MapType.apply_parameters([_INT, _INTS]),
        st.dictionaries(signed(32), st.lists(signed(32))).map(lambda found: list(found.items())),
        dict,
    ),
]
_ADDRESS = cqltypes.UserType.make_udt_class("shop", "address", ("street", "number"), (_TEXT, _INT))
_ODD = cqltypes.UserType.make_udt_class(
    "shop", "Odd Name", ("A b", "tags"), (_ADDRESS, cqltypes.SetType.apply_parameters([_TEXT]))
)
addresses = st.fixed_dictionaries(
    {"street": st.none() | st.text(min_size=1), "number": st.none() | signed(32)}
)


def in_order(*names: str) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    return lambda value: tuple(value[name] for name in names)


def vector(element: Any, size: int) -> Any:
    return cqltypes.VectorType.apply_parameters([element, size], None)


STRUCTS = [
    Sample("frozen<address>", _ADDRESS, addresses, in_order("street", "number")),
    Sample(
        'frozen<"Odd Name">',
        _ODD,
        st.fixed_dictionaries({"A b": st.none() | addresses, "tags": st.lists(st.text(), unique=True)}),
        lambda value: (value["A b"] and in_order("street", "number")(value["A b"]), value["tags"]),
    ),
    Sample(
        "frozen<tuple<int, text, frozen<list<int>>>>",
        cqltypes.TupleType.apply_parameters([_INT, _TEXT, _INTS]),
        st.fixed_dictionaries(
            {"_1": st.none() | signed(32), "_2": st.none() | st.text(min_size=1), "_3": st.lists(signed(32))}
        ),
        in_order("_1", "_2", "_3"),
    ),
]
VECTORS = [
    Sample(
        "vector<float, 3>",
        vector(cqltypes.FloatType, 3),
        st.lists(st.floats(width=32, allow_nan=False), min_size=3, max_size=3),
    ),
    Sample("vector<text, 2>", vector(_TEXT, 2), st.lists(st.text(), min_size=2, max_size=2)),
    Sample(
        "vector<smallint, 2>", vector(cqltypes.ShortType, 2), st.lists(signed(16), min_size=2, max_size=2)
    ),
    Sample(
        "vector<frozen<vector<bigint, 2>>, 2>",
        vector(vector(cqltypes.LongType, 2), 2),
        st.lists(st.lists(signed(64), min_size=2, max_size=2), min_size=2, max_size=2),
    ),
]
ALL = SCALARS + COLLECTIONS + STRUCTS + VECTORS


def with_length(cell: bytes) -> bytes:
    """A cell as it stands in a row."""
    return pack(">i", len(cell)) + cell
