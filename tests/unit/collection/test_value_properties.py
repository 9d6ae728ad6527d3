"""Values of every type survive: what the driver decodes is what the JSON document said."""

import json
from base64 import b64encode
from decimal import Decimal
from ipaddress import ip_address
from uuid import UUID

import pytest
from cassandra import cqltypes
from cassandra.util import Date, Duration, Time
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cql_samples import PROTOCOL, signed

from tidemark.collection.model.column_types import column_type
from tidemark.collection.model.values.encoders import encoder_of
from tidemark.journal.codec.json_text import parse_exactly

pytestmark = pytest.mark.unit


def through(cql_type, driver, text):
    """A JSON document, as the driver reads its bytes."""
    return driver.from_binary(encoder_of(column_type(cql_type))(parse_exactly(text.encode())), PROTOCOL)


@given(signed(64), st.booleans())
def test_bigints(number, is_text):
    text = f'"{number}"' if is_text else str(number)
    assert through("bigint", cqltypes.LongType, text) == number


@given(st.integers(-(10**300), 10**300), st.booleans())
def test_varints(number, is_text):
    text = f'"{number}"' if is_text else str(number)
    assert through("varint", cqltypes.IntegerType, text) == number


@given(st.integers(-(10**60), 10**60), st.integers(-80, 80), st.booleans())
def test_decimals_keep_every_digit(unscaled, exponent, is_text):
    number = Decimal(f"{unscaled}e{exponent}")
    text = f'"{number}"' if is_text else str(number)
    assert through("decimal", cqltypes.DecimalType, text) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles(number):
    assert through("double", cqltypes.DoubleType, json.dumps(number)) == number


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats(number):
    assert through("float", cqltypes.FloatType, json.dumps(number)) == number


@given(st.text())
def test_texts(text):
    assert through("text", cqltypes.UTF8Type, json.dumps(text)) == text


@given(st.binary())
def test_blobs(data):
    assert through("blob", cqltypes.BytesType, f'"{b64encode(data).decode()}"') == data


@given(st.uuids())
def test_uuids(uuid):
    assert through("uuid", cqltypes.UUIDType, f'"{uuid}"') == UUID(str(uuid))


@given(st.ip_addresses())
def test_addresses(address):
    assert ip_address(through("inet", cqltypes.InetAddressType, f'"{address}"')) == address


@given(st.dates())
def test_dates(day):
    assert through("date", cqltypes.SimpleDateType, f'"{day.isoformat()}"') == Date(day)


@given(st.times())
def test_times(time):
    assert through("time", cqltypes.TimeType, f'"{time.isoformat()}"') == Time(time)


@given(st.datetimes(timezones=st.timezones()))
def test_timestamps_in_any_zone(moment):
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    offset = whole.utcoffset()
    if offset is None or offset.total_seconds() % 60:
        return  # historical offsets with seconds, which RFC 3339 cannot write
    found = encoder_of(column_type("timestamp"))(whole.isoformat())
    assert int.from_bytes(found, "big", signed=True) == _milliseconds(whole)


@given(
    st.sampled_from([1, -1]),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
)
def test_durations(sign, months, days, nanoseconds):
    text = f'"{"-" if sign < 0 else ""}{months}mo{days}d{nanoseconds}ns"'
    wanted = Duration(sign * months, sign * days, sign * nanoseconds)
    assert through("duration", cqltypes.DurationType, text) == wanted


@given(st.sets(signed(32)), st.randoms())
def test_sets_in_any_order_have_the_same_bytes(numbers, random):
    shuffled = list(numbers)
    random.shuffle(shuffled)
    encode = encoder_of(column_type("set<int>"))
    assert encode(shuffled) == encode(sorted(numbers))
    assert (
        through("set<int>", cqltypes.SetType.apply_parameters([cqltypes.Int32Type]), str(shuffled)) == numbers
    )


@given(st.dictionaries(st.text(), signed(64)), st.randoms())
def test_maps_in_any_order_and_either_form_have_the_same_bytes(entries, random):
    pairs = [list(entry) for entry in entries.items()]
    random.shuffle(pairs)
    encode = encoder_of(column_type("map<text, bigint>"))
    assert encode(pairs) == encode(entries)
    driver = cqltypes.MapType.apply_parameters([cqltypes.UTF8Type, cqltypes.LongType])
    assert dict(through("map<text, bigint>", driver, json.dumps(entries))) == entries


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5)
)
def test_any_value_fits_or_is_refused_in_words(value):
    for cql_type in ("int", "varint", "decimal", "double", "float", "text", "timestamp", "list<text>"):
        try:
            assert type(encoder_of(column_type(cql_type))(value)) is bytes
        except ValueError as refusal:
            assert str(refusal).encode()  # noqa: PT017  # a control row holds it


def _milliseconds(moment):
    """Counted by hand: subtraction of datetimes fails for zones at the ends of the calendar."""
    days = moment.toordinal() - 719_163
    seconds = days * 86_400 + moment.hour * 3_600 + moment.minute * 60 + moment.second
    return (seconds - int(moment.utcoffset().total_seconds())) * 1_000 + moment.microsecond // 1_000
