"""Canonical JSON (contract 2.4): what the original's parser and writer make of a document."""

import json
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidemark.journal.codec.json_text import (
    _exact,
    _integer,
    _number,
    canonical,
    canonical_text,
    long,
    parse,
    parse_exactly,
    sequence_number,
)
from tidemark.journal.errors import Undecodable

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("number", "written"),
    [
        ("1", "1"),
        ("1.0", "1"),
        ("1.50", "1.5"),
        ("1e3", "1000"),
        ("-1E2", "-100"),
        ("0.0", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0e5", "0"),
        ("0.000001", "0.000001"),
        ("1e-7", "1E-7"),
        ("1e-10", "1E-10"),
        ("0.00000012", "1.2E-7"),
        ("1e19", "10000000000000000000"),
        ("99999999999999999999", "99999999999999999999"),
        ("1e20", "1E+20"),
        ("100000000000000000000", "1E+20"),
        ("123456789012345678901", "123456789012345678901"),
        ("1234567890123456789010", "1.23456789012345678901E+21"),
        ("9223372036854775807", "9223372036854775807"),
        ("0.1234567890123456789", "0.1234567890123456789"),
        ("1234567890.12345678", "1234567890.12345678"),
        ("999999999999999.5", "999999999999999.5"),
        ("1" * 35, "1." + "1" * 33 + "E+34"),
        ("1.0000000000000000000000000000000005", "1"),
        ("1.0000000000000000000000000000000015", "1.000000000000000000000000000000002"),
        ("1e6177", "1E+6177"),
        ("1e-6177", "1E-6177"),
        ("1" * 309, "1." + "1" * 33 + "E+308"),
    ],
)
def test_2_4_numbers(number: str, written: str) -> None:
    assert canonical_text(number.encode()) == written
    assert canonical_text(f'{{"a":[{number}]}}'.encode()) == f'{{"a":[{written}]}}'


@pytest.mark.parametrize(
    "number", ["1" * 310, "0." + "1" * 310, "1e6178", "1e-6178", "0e9999", "1e99999999999"]
)
def test_2_4_numbers_out_of_range(number: str) -> None:
    with pytest.raises(Undecodable):
        canonical_text(number.encode())


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (' { "b" : 1 , "a" : [ true , null ] } ', '{"b":1,"a":[true,null]}'),
        ('{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'),
        (r'"\/\u00e9\ud83d\ude00"', '"/é😀"'),
        (r'"\"\\\b\f\n\r\t"', r'"\"\\\b\f\n\r\t"'),
        (r'"\u0001\u001F\u007f"', r'"\u0001\u001f\u007f"'),
        ('"\x7f"', r'"\u007f"'),
        (r'["\ud800",1e30]', r'["\ud800",1E+30]'),
        ('"<>&\u2028"', '"<>&\u2028"'),
        ("\ufeff{}", "{}"),
        ('{"a":1} trailing', '{"a":1}'),
        ("1 2", "1"),
    ],
)
def test_2_4_texts(text: str, written: str) -> None:
    assert canonical_text(text.encode()) == written


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{",
        b"nul",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"01",
        b"1.",
        b".5",
        b"+1",
        b"12abc",
        b"'a'",
        b'"\x01"',
        b'"\xff"',
        b'{"a"}',
        b"[1,]",
        b"[" * 100_000,
        b"[" * 257 + b"]" * 257,
        b"[" * 257 + b"1e30" + b"]" * 257,
    ],
)
def test_2_4_not_json(data: bytes) -> None:
    with pytest.raises(Undecodable):
        parse(data)


@pytest.mark.parametrize("number", ["1", "1e30"])
def test_2_4_nested_as_deep_as_we_go(number: str) -> None:
    text = '{"a":[' * 128 + number + "]}" * 128
    assert canonical_text(text.encode()) == text.replace("e", "E+")


def test_2_4_many_brackets_are_not_depth() -> None:
    text = f"[{','.join(['[]'] * 1000)}]"
    assert canonical_text(text.encode()) == text


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("1.0", 1), ("1e2", 100), ("92e17", 92 * 10**17)])
def test_1_1_a_long_is_any_whole_number(text: str, value: int) -> None:
    assert long(parse(text.encode()), "n") == value


@pytest.mark.parametrize("text", ['"1"', "1.5", "true", "null", "9223372036854775808", "1e19", "1e40", "[1]"])
def test_1_1_a_long_is_nothing_else(text: str) -> None:
    with pytest.raises(Undecodable):
        long(parse(text.encode()), "n")


@pytest.mark.parametrize("value", [0, -1, Decimal(2**63)])
def test_1_1_a_sequence_number_starts_at_one(value: object) -> None:
    with pytest.raises(Undecodable):
        sequence_number(value, "n")


texts = st.text('aé"\\\n\x00\x7f/😀\u2028', max_size=6)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(values)
@settings(max_examples=80, deadline=None)
def test_canonical_text_means_the_same_and_is_a_fixed_point(value: object) -> None:
    text = json.dumps(value)
    written = canonical_text(text.encode())
    assert json.loads(written, parse_int=Decimal, parse_float=Decimal) == json.loads(
        text, parse_int=Decimal, parse_float=Decimal
    )
    assert canonical_text(written.encode()) == written


@given(st.decimals(allow_nan=False, allow_infinity=False, places=None))
@settings(max_examples=80, deadline=None)
def test_the_quick_way_writes_what_the_exact_one_does(number: Decimal) -> None:
    """Also beside a number that only ``Decimal`` can hold."""
    text = f"{number:f}" if abs(number.adjusted()) < 60 else "1"
    quick = canonical_text(f"[{text}]".encode())
    exact = canonical_text(f"[{text},1e5000]".encode())
    assert exact == f"{quick[:-1]},1E+5000]"


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,16})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?", fullmatch=True))
@example("900000000000000.3")  # 16 digits: the double's shortest text ends in 2
@settings(max_examples=300, deadline=None)
def test_a_double_is_taken_only_where_it_writes_the_decimal(text: str) -> None:
    read = _number if set(text) & set(".eE") else _integer
    assert canonical(read(text)) == canonical(_exact(text))


@pytest.mark.parametrize(
    ("number", "read"),
    [
        ("1", 1),
        ("-0", 0),
        ("1" * 60, int("1" * 60)),
        ("1.0", 1.0),
        ("1e2", 100.0),
        ("0.1", 0.1),
        ("123456789012.34", 123456789012.34),
        ("1234567890.123456789012345678", Decimal("1234567890.123456789012345678")),
        (f"0.{'123456789' * 5}", Decimal(f"0.{'123456789' * 5}")),
        ("1e30", Decimal("1e30")),
        ("0.00001", Decimal("0.00001")),
    ],
)
def test_no_number_is_rounded_where_it_is_read_exactly(number: str, read: object) -> None:
    found = parse_exactly(f'{{"a": [{number}]}}'.encode())
    assert found == {"a": [read]}
    assert type(found["a"][0]) is type(read)  # type: ignore[index]


@pytest.mark.parametrize("number", ["1" * 310, "1e6178", "1e99999999999999999999", "NaN", "01"])
def test_numbers_out_of_range_are_refused_where_they_are_read_exactly(number: str) -> None:
    with pytest.raises(Undecodable):
        parse_exactly(number.encode())


@pytest.mark.parametrize("data", [b'{"a": 1} x', b'{"a": 1}{"a": 2}', b'"a",', b"1 2"])
def test_nothing_follows_a_document_that_is_read_exactly(data: bytes) -> None:
    with pytest.raises(Undecodable, match="follows the document"):
        parse_exactly(data)


@given(st.integers(-(10**40), 10**40), st.integers(-50, 50))
def test_every_number_has_its_value_where_it_is_read_exactly(unscaled: int, exponent: int) -> None:
    text = str(Decimal(f"{unscaled}e{exponent}"))
    assert Decimal(str(parse_exactly(text.encode()))) == Decimal(text)
