"""JSON as the journal's tables hold it: parsed with care for numbers, written in one canonical form.

The form is that of kafka-journal: compact, members in their order, numbers as decimals of 34 digits without
trailing zeros. Most numbers survive a double or an int unchanged, so those go through the C scanner and
encoder; a document with any other number is parsed a second time with ``Decimal``. Accepts exactly UTF-8;
never NaN or Infinity.
"""

import json
import re
from decimal import ROUND_HALF_EVEN, Context, Decimal, DecimalException, InvalidOperation, Overflow
from typing import NoReturn

from tidemark.journal.errors import Undecodable

LONG_MAX = 2**63 - 1
DEEPEST = 256
"""Levels of nesting. Python gives up somewhere above that, but where depends on who is calling."""

_DIGITS = 34
_TOO_MANY_DIGITS = 310
_TOO_LARGE_SCALE = 6178
_EXPANDED_BELOW = 10**20  # smaller integers are written without an exponent
_DECIMAL128 = Context(
    prec=_DIGITS, rounding=ROUND_HALF_EVEN, Emin=-(10**9), Emax=10**9, traps=[InvalidOperation, Overflow]
)

_WHITESPACE = " \t\n\r"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class _Exact(Exception):
    """This document holds a number that only ``Decimal`` keeps as it is."""


def _quick_int(text: str) -> int:
    if len(text) < 20:
        return int(text)
    raise _Exact


def _quick_float(text: str) -> int | float:
    # At most 15 significant digits: the double's shortest text is then the decimal itself, without trailing
    # zeros.
    if len(text) <= 16:
        number = float(text)
        if 1e-4 <= number < 1e15 or -1e15 < number <= -1e-4:
            return int(number) if number.is_integer() else number
        if not number and "e" not in text and "E" not in text:
            return 0
    raise _Exact


def _exact(text: str) -> int | Decimal:
    mantissa = text.lower().partition("e")[0]
    if sum(map(str.isdigit, mantissa)) >= _TOO_MANY_DIGITS:
        raise Undecodable("not JSON we can keep: a number of 310 digits or more")
    try:
        number = _DECIMAL128.create_decimal(text)
    except DecimalException:
        raise Undecodable("not JSON we can keep: a number with an exponent out of range") from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) >= _TOO_LARGE_SCALE:
        raise Undecodable("not JSON we can keep: a number with an exponent out of range")
    if abs(number) < _EXPANDED_BELOW and number == number.to_integral_value():
        return int(number)
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_quick = json.JSONDecoder(
    parse_int=_quick_int, parse_float=_quick_float, parse_constant=_refuse_constant
).raw_decode
_careful = json.JSONDecoder(parse_int=_exact, parse_float=_exact, parse_constant=_refuse_constant).raw_decode


def parse(data: bytes) -> object:
    """The value a JSON document stands for; numbers as int, float (where that is exact) or ``Decimal``."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"not UTF-8 at byte {error.start}") from None
    try:
        value, end = _quick(text)
    except (_Exact, ValueError, RecursionError):
        end = -1
    if end != len(text):
        value = _parse_with_care(text)
    if text.count("{") + text.count("[") > DEEPEST and _is_too_deep(value):
        raise Undecodable(f"not JSON we can keep: nested deeper than {DEEPEST} levels")
    return value


def _parse_with_care(text: str) -> object:
    """What the quick way did not take: exact numbers, space around the document, or no JSON at all.

    The original's second parser reads one document and does not look behind it, so neither do we.
    """
    text = text.removeprefix("\ufeff").lstrip(_WHITESPACE)
    try:
        value, end = _careful(text)
    except Undecodable:
        raise
    except ValueError as error:
        raise Undecodable(f"not JSON: {error}") from None
    except RecursionError:
        raise Undecodable(f"not JSON we can keep: nested deeper than {DEEPEST} levels") from None
    if not isinstance(value, dict | list | str) and text[end : end + 1] not in ("", *_WHITESPACE):
        raise Undecodable(f"not JSON: {text[: end + 1][:40]!r}")
    return value


def _is_too_deep(value: object) -> bool:
    level: list[dict[str, object] | list[object]] = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        inside = [items.values() if isinstance(items, dict) else items for items in level]
        level = [item for items in inside for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True


class _Encoder(json.JSONEncoder):
    def default(self, o: object) -> NoReturn:
        raise _Exact


_encode = _Encoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, allow_nan=False).encode


def canonical(value: object) -> str:
    """The canonical text of a value that ``parse`` gave."""
    try:
        text = _encode(value)
    except _Exact:
        text = _written(value)
    # Both can only stand inside a string. A lone surrogate has no UTF-8: its escape is the same JSON value.
    if "\x7f" in text:
        text = text.replace("\x7f", "\\u007f")
    if not text.isascii() and _LONE_SURROGATE.search(text):
        text = _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text


def canonical_text(data: bytes) -> str:
    """A JSON document in its canonical form."""
    return canonical(parse(data))


def _written(value: object) -> str:
    """The slow way, for values with a ``Decimal`` somewhere in them."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_encode(name)}:{_written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, Decimal):
        # Java's BigDecimal and Python's Decimal write the same text, once trailing zeros are gone.
        return str(value.normalize(_DECIMAL128))
    return _encode(value)


def long(value: object, name: str) -> int:
    """An integral JSON number in the range of a Java long; ``1.0`` and ``1e2`` count, text does not."""
    if type(value) is int or (isinstance(value, Decimal) and value == value.to_integral_value()):
        number = int(value)
        if -LONG_MAX - 1 <= number <= LONG_MAX:
            return number
    raise Undecodable(f"{name} must be a whole number of 64 bits, not {shown(value)}")


def sequence_number(value: object, name: str) -> int:
    """A sequence number: 1 to 2^63 - 1."""
    if type(value) is int and 1 <= value <= LONG_MAX:
        return value
    number = long(value, name)
    if number < 1:
        raise Undecodable(f"{name} must be at least 1, not {number}")
    return number


def optional_text(value: object, name: str) -> str | None:
    """Text, or None for a member that is missing or null."""
    if value is None:
        return None
    if type(value) is str:
        return value if value.isascii() else storable(value)
    raise Undecodable(f"{name} must be text, not {shown(value)}")


def storable(text: str) -> str:
    """Text as UTF-8 can hold it: a lone surrogate becomes ``?``, as it does in Java's own encoder."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def shown(value: object) -> str:
    """A value in an error's text: its beginning is enough."""
    if value is None:
        return "nothing"
    text = canonical(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
