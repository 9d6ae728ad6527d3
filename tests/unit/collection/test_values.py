"""JSON values as CQL bytes: for every type what it takes, what the driver reads back, and what it refuses."""

from datetime import UTC, date, datetime
from decimal import Decimal
from ipaddress import ip_address
from uuid import UUID

import pytest
from cassandra import cqltypes
from cassandra.util import Date, Duration, Time
from tests.support.cql_samples import PROTOCOL

from tidemark.collection.model.column_types import column_type
from tidemark.collection.model.schema import Column
from tidemark.collection.model.values.encoders import column_encoder, encoder_of
from tidemark.collection.model.values.misfit import Misfit
from tidemark.journal.codec.json_text import parse_exactly

pytestmark = pytest.mark.unit

DRIVER = {
    "ascii": cqltypes.AsciiType,
    "bigint": cqltypes.LongType,
    "blob": cqltypes.BytesType,
    "boolean": cqltypes.BooleanType,
    "date": cqltypes.SimpleDateType,
    "decimal": cqltypes.DecimalType,
    "double": cqltypes.DoubleType,
    "duration": cqltypes.DurationType,
    "float": cqltypes.FloatType,
    "inet": cqltypes.InetAddressType,
    "int": cqltypes.Int32Type,
    "smallint": cqltypes.ShortType,
    "text": cqltypes.UTF8Type,
    "time": cqltypes.TimeType,
    "timestamp": cqltypes.DateType,
    "timeuuid": cqltypes.TimeUUIDType,
    "tinyint": cqltypes.ByteType,
    "uuid": cqltypes.UUIDType,
    "varchar": cqltypes.UTF8Type,
    "varint": cqltypes.IntegerType,
}
RANDOM_UUID, TIME_UUID = "2d1d9c8b-2f0e-4c2e-9d8a-6f1f3c0b5a77", "c232ab00-9414-11ec-b3c8-9f68deced846"
ONE_MONTH_ON = Duration(1, 2, 3 * 3_600_000_000_000)


def read_back(cql_type, data):
    """What the driver makes of the bytes."""
    return DRIVER[cql_type].from_binary(data, PROTOCOL)


@pytest.mark.parametrize(
    ("cql_type", "json", "value"),
    [
        ("tinyint", "127", 127),
        ("tinyint", "-128", -128),
        ("smallint", "-32768", -32768),
        ("int", "2147483647", 2**31 - 1),
        ("int", "0", 0),
        ("bigint", "9007199254740993", 9007199254740993),
        ("bigint", "-9223372036854775808", -(2**63)),
        ("bigint", '"9223372036854775807"', 2**63 - 1),
        ("bigint", '"-1"', -1),
        ("varint", "123456789012345678901234567890", 123456789012345678901234567890),
        ("varint", '"-123456789012345678901234567890"', -123456789012345678901234567890),
        ("varint", "-128", -128),
        ("varint", "128", 128),
        ("decimal", "1234567890.123456789012345678", Decimal("1234567890.123456789012345678")),
        ("decimal", f"0.{'123456789' * 5}", Decimal(f"0.{'123456789' * 5}")),
        ("decimal", '"12.50"', Decimal("12.50")),
        ("decimal", "12.5", Decimal("12.5")),
        ("decimal", "-0.1", Decimal("-0.1")),
        ("decimal", "0.00", Decimal(0)),
        ("decimal", "100", Decimal(100)),
        ("decimal", "1e2", Decimal(100)),
        ("decimal", "1e-7", Decimal("0.0000001")),
        ("decimal", '"1.5E+3"', Decimal(1500)),
        ("decimal", "1e6000", Decimal("1e6000")),
        ("double", "0.1", 0.1),
        ("double", "5", 5.0),
        ("double", "-1e300", -1e300),
        ("double", "0.30000000000000004", 0.30000000000000004),
        ("float", "0.5", 0.5),
        ("float", "16777216", 16777216.0),
        ("text", '"Zürich 😀"', "Zürich 😀"),
        ("text", '""', ""),
        ("text", r'"a\u0000b"', "a\0b"),
        ("varchar", '"x"', "x"),
        ("ascii", '"x~"', "x~"),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("blob", '"AAH/"', b"\x00\x01\xff"),
        ("blob", '""', b""),
        ("uuid", f'"{RANDOM_UUID}"', UUID(RANDOM_UUID)),
        ("uuid", f'"{RANDOM_UUID.upper()}"', UUID(RANDOM_UUID)),
        ("timeuuid", f'"{TIME_UUID}"', UUID(TIME_UUID)),
        ("inet", '"10.0.0.1"', str(ip_address("10.0.0.1"))),
        ("inet", '"2001:db8::1"', "2001:db8::1"),
        ("date", '"2024-02-29"', Date(date(2024, 2, 29))),
        ("date", '"0001-01-01"', Date(date(1, 1, 1))),
        ("time", '"23:59:59"', Time("23:59:59")),
        ("time", '"00:00:00.000000001"', Time(1)),
        ("time", '"12:30:00.5"', Time("12:30:00.500000000")),
        ("timestamp", "1714521600123", datetime(2024, 5, 1, 0, 0, 0, 123_000)),
        ("timestamp", '"2024-05-01T02:00:00.123+02:00"', datetime(2024, 5, 1, 0, 0, 0, 123_000)),
        ("timestamp", '"2024-05-01t00:00:00z"', datetime(2024, 5, 1)),
        ("timestamp", '"2024-05-01T00:00:00.1230000000Z"', datetime(2024, 5, 1, 0, 0, 0, 123_000)),
        ("timestamp", '"1969-12-31T23:59:59.999Z"', datetime(1969, 12, 31, 23, 59, 59, 999_000)),
        ("duration", '"1mo2d3h"', ONE_MONTH_ON),
        ("duration", '"P1M2DT3H"', ONE_MONTH_ON),
        ("duration", '"-1mo2d3h"', Duration(-1, -2, -3 * 3_600_000_000_000)),
        ("duration", '"-P1Y"', Duration(-12, 0, 0)),
        ("duration", '"1y2w"', Duration(12, 14, 0)),
        ("duration", '"P2W"', Duration(0, 14, 0)),
        ("duration", '"1s2ms3us4ns"', Duration(0, 0, 1_002_003_004)),
        ("duration", '"5µs"', Duration(0, 0, 5_000)),
        ("duration", '"PT1H2M3S"', Duration(0, 0, 3_723_000_000_000)),
        ("duration", '"0s"', Duration(0, 0, 0)),
    ],
)
def test_a_value_that_fits_is_what_the_driver_reads(cql_type, json, value):
    data = encoder_of(column_type(cql_type))(parse_exactly(json.encode()))
    assert read_back(cql_type, data) == value


@pytest.mark.parametrize(
    ("cql_type", "json", "said"),
    [
        ("tinyint", "128", "128 is not a whole number of 8 bits"),
        ("smallint", "-32769", "-32769 is not a whole number of 16 bits"),
        ("int", "2147483648", "2147483648 is not a whole number of 32 bits"),
        ("int", "1.0", "1.0 is not a whole number of 32 bits"),
        ("int", "1e0", "1.0 is not a whole number of 32 bits"),
        ("int", "true", "true is not a whole number of 32 bits"),
        ("int", '"5"', '"5" is not a whole number of 32 bits'),
        ("int", "1.5", "1.5 is not"),
        ("bigint", "9223372036854775808", "9223372036854775808 is not a whole number of 64 bits"),
        ("bigint", '"9223372036854775808"', "9223372036854775808 is not a whole number of 64 bits"),
        ("bigint", '"01"', '"01" is not a whole number'),
        ("bigint", '"-0"', '"-0" is not a whole number'),
        ("bigint", '"+1"', '"+1" is not a whole number'),
        ("bigint", '" 1"', '" 1" is not a whole number'),
        ("bigint", '"1_000"', '"1_000" is not a whole number'),
        ("bigint", '"١"', "is not a whole number"),
        ("bigint", "false", "false is not"),
        ("varint", "1.0", "1.0 is not a whole number"),
        ("varint", "1e30", "1E+30 is not a whole number"),
        ("varint", '"12.0"', '"12.0" is not a whole number'),
        ("varint", f'"{"9" * 400}"', "…"),
        ("decimal", "true", "true is not a number"),
        ("decimal", '"1,5"', '"1,5" is not a number'),
        ("decimal", '"NaN"', '"NaN" is not a number'),
        ("decimal", '".5"', '".5" is not a number'),
        ("decimal", '"1e99999"', "has an exponent out of range"),
        ("decimal", '"1e999999999999"', "is not a number"),
        ("double", '"1.5"', '"1.5" is not a number'),
        ("double", "1e400", "1E+400 is too large for a double"),
        ("double", "9" * 309, "is too large for a double"),
        ("double", "1e-400", "is too small for a double, which would hold 0"),
        ("double", "true", "true is not a number"),
        ("float", "1e39", "is too large for a float"),
        ("float", "1e-50", "is too small for a float, which would hold 0"),
        ("text", "5", "5 is not text"),
        ("text", r'"\ud800x"', "half of a surrogate pair"),
        ("text", "{}", "a JSON object is not text"),
        ("ascii", '"é"', '"é" has characters that ASCII does not have'),
        ("ascii", "1", "1 is not text"),
        ("boolean", "1", "1 is not true or false"),
        ("boolean", '"true"', '"true" is not true or false'),
        ("blob", '"AAH"', "is not base64"),
        ("blob", '"AAH_"', "is not base64"),
        ("blob", '"AAF="', "is not base64"),
        ("blob", '"A A="', "is not base64"),
        ("blob", r'"\ud800"', "is not base64"),
        ("blob", "[1]", "a JSON list is not base64"),
        ("uuid", '"2d1d9c8b2f0e4c2e9d8a6f1f3c0b5a77"', "is not a UUID"),
        ("uuid", '"{2d1d9c8b-2f0e-4c2e-9d8a-6f1f3c0b5a7}"', "is not a UUID"),
        ("uuid", "7", "7 is not a UUID"),
        ("timeuuid", f'"{RANDOM_UUID}"', "is not a UUID of version 1"),
        ("inet", '"10.0.0"', "is not an internet address"),
        ("inet", '"010.0.0.1"', "is not an internet address"),
        ("inet", '"fe80::1%eth0"', "is not an internet address"),
        ("inet", "167772161", "is not an internet address"),
        ("date", '"2024-02-30"', "is a day that no calendar has"),
        ("date", '"20240229"', "is not a date such as"),
        ("date", '"2024-2-9"', "is not a date such as"),
        ("date", "19000", "is not a date such as"),
        ("date", '"0000-01-01"', "no calendar has"),
        ("time", '"24:00:00"', "is a time that no clock has"),
        ("time", '"12:00:60"', "is a time that no clock has"),
        ("time", '"12:00"', "is not a time such as"),
        ("time", '"12:00:00.1234567890"', "is not a time such as"),
        ("time", "0", "is not a time such as"),
        ("timestamp", '"2024-05-01T00:00:00"', "is neither a time such as"),
        ("timestamp", '"2024-05-01 00:00:00Z"', "is neither a time such as"),
        ("timestamp", '"2024-05-01T00:00:00.1234Z"', "is finer than a millisecond"),
        ("timestamp", '"2024-05-01T00:00:60Z"', "no clock has"),
        ("timestamp", '"2024-13-01T00:00:00Z"', "no calendar"),
        ("timestamp", '"2024-05-01T00:00:00+25:00"', "no clock has"),
        ("timestamp", '"1714521600123"', "is neither a time such as"),
        ("timestamp", "1.5", "is neither a time such as"),
        ("timestamp", "9223372036854775808", "is not a number of milliseconds with 64 bits"),
        ("duration", '"1h1d"', "is not a duration"),
        ("duration", '"1d1d"', "is not a duration"),
        ("duration", '""', "is not a duration"),
        ("duration", '"-"', "is not a duration"),
        ("duration", '"P"', "is not a duration"),
        ("duration", '"PT"', "is not a duration"),
        ("duration", '"P1H"', "is not a duration"),
        ("duration", '"PT1.5S"', "is not a duration"),
        ("duration", '"--1d"', "is not a duration"),
        ("duration", '"3000000000mo"', "is longer than a duration can be"),
        ("duration", "60", "is not a duration"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_the_value(cql_type, json, said):
    with pytest.raises(Misfit) as refusal:
        encoder_of(column_type(cql_type))(parse_exactly(json.encode()))
    assert said in str(refusal.value)


def test_the_first_moment_of_the_calendar_can_have_an_offset():
    data = encoder_of(column_type("timestamp"))("0001-01-01T00:00:00+05:00")
    midnight = datetime(1, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert int.from_bytes(data, "big", signed=True) == midnight.total_seconds() * 1000 - 5 * 3_600_000


def test_a_refusal_names_the_column_its_type_and_the_value():
    encode = column_encoder(Column("balance", column_type("decimal")))
    with pytest.raises(ValueError, match="balance") as refusal:
        encode("much")
    assert str(refusal.value) == 'column `balance` (decimal): "much" is not a number'


def test_a_long_value_is_shortened():
    with pytest.raises(Misfit) as refusal:
        encoder_of(column_type("decimal"))("x" * 10_000)
    assert len(str(refusal.value)) < 100


def test_the_text_of_a_refusal_can_be_stored():
    with pytest.raises(Misfit) as refusal:
        encoder_of(column_type("text"))("\ud800\n")
    assert str(refusal.value).encode().startswith(b'"\\ud800\\n" has one half')


@pytest.mark.parametrize(
    ("cql_type", "alike"),
    [
        ("decimal", ["12.5", "12.50", '"12.5"', '"12.500"', "125e-1", "0.125e2"]),
        ("decimal", ["100", "1e2", "100.0", '"1E+2"', "10000e-2"]),
        ("decimal", ["1e400", "10e399", '"0.1E401"']),
        ("decimal", ["0", "0.0", "-0.0", "0e5", '"0.00"']),
        ("double", ["0", "0.0", "-0.0"]),
        ("float", ["0", "-0.0"]),
        ("bigint", ["7", '"7"']),
        ("uuid", [f'"{RANDOM_UUID}"', f'"{RANDOM_UUID.upper()}"']),
        ("timestamp", ["0", '"1970-01-01T00:00:00Z"', '"1970-01-01T01:00:00.000+01:00"']),
        ("duration", ['"7d"', '"1w"', '"P7D"']),
        ("set<int>", ["[1, -1, 5]", "[5, 1, -1]"]),
        ("map<text, int>", ['{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '[["b", 2], ["a", 1]]']),
        ("list<frozen<set<text>>>", ['[["a", "b"]]', '[["b", "a"]]']),
    ],
)
def test_equal_values_have_equal_bytes(cql_type, alike):
    encode = encoder_of(column_type(cql_type))
    assert len({encode(parse_exactly(json.encode())) for json in alike}) == 1
