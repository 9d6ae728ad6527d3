"""JSON as the journal's tables store it: parsed without loss of numbers, written in one canonical form.

The form is kafka-journal's: compact, members in their order, numbers as decimals of at most 34 digits without
trailing zeros. A number becomes an int or a float where that is exact, and a ``Decimal`` otherwise. msgspec
parses nearly every document. Those that kafka-journal reads differently (integers of 20 digits or more, lone
surrogates, text after the document) are parsed again by the standard library, and only that parser reports
errors. Accepts only UTF-8; never NaN or Infinity.
"""

import json
import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal, DecimalException, InvalidOperation, Overflow
from typing import Annotated, Any, Final, NoReturn

import msgspec

from tidemark.journal.errors import Undecodable

LONG_MAX = 2**63 - 1
DEEPEST = 256
"""The most levels of nesting. Python's own limit is higher, but varies with the depth of the call stack."""

_DIGITS = 34
_TOO_MANY_DIGITS = 310
_TOO_LARGE_SCALE = 6178
_EXPANDED_BELOW = 10**20  # smaller integers are written without an exponent
_DECIMAL128 = Context(
    prec=_DIGITS, rounding=ROUND_HALF_EVEN, Emin=-(10**9), Emax=10**9, traps=[InvalidOperation, Overflow]
)

_WHITESPACE = " \t\n\r"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_DELETE = "\\u007f"
_RawDecode = Callable[[str], tuple[Any, int]]

_LONG = 20  # shorter integers are exact, and written as they were read
_LONG_DIGITS = b"0" * _LONG
_LONG_INTEGER = b"," + _LONG_DIGITS
# Maps every digit to 0 and every character that can precede a number to a comma, so that one search finds any
# long integer.
_ALIKE = bytes.maketrans(b"123456789 \t\n\r:[-", b"0" * 9 + b"," * 7)
_DEEPEST_INSIDE = DEEPEST - 3  # for an event's payload, which is three levels deep in its document

SeqNr = Annotated[int, msgspec.Meta(ge=1, le=LONG_MAX)]
"""A sequence number in a shape for ``quick_reader``."""


class _Exact(Exception):
    """The value contains a ``Decimal``, which the encoder cannot write."""


class NeedsCare(ValueError):
    """The fast path may give another result than kafka-journal, so the slow path has to decide."""


UNUSUAL: Final = (msgspec.MsgspecError, ValueError, RecursionError)
"""What the fast functions raise. The document may still be valid: use ``parse``."""


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) < _LONG else _exact(text)


def _number(text: str) -> int | float | Decimal:
    """A number with a fraction or an exponent."""
    # With at most 15 significant digits, the float's shortest text is the decimal itself without trailing
    # zeros.
    if len(text) <= 16:
        number = float(text)
        if 1e-4 <= number < 1e15 or -1e15 < number <= -1e-4:
            return int(number) if number.is_integer() else number
        if not number and "e" not in text and "E" not in text:
            return 0
    return _exact(text)


def _exact(text: str) -> int | Decimal:
    number = _within_limits(text, _DECIMAL128.create_decimal)
    if abs(number) < _EXPANDED_BELOW and number == number.to_integral_value():
        return int(number)
    return number.normalize(_DECIMAL128)


def _within_limits(text: str, create: Callable[[str], Decimal]) -> Decimal:
    """A number that is not so long, and whose exponent is not so large, that it cannot be stored."""
    is_plain = len(text) < _TOO_MANY_DIGITS and "e" not in text and "E" not in text
    if not is_plain and sum(map(str.isdigit, text.lower().partition("e")[0])) >= _TOO_MANY_DIGITS:
        raise Undecodable("not JSON we can keep: a number of 310 digits or more")
    try:
        number = create(text)
    except DecimalException:
        raise Undecodable("not JSON we can keep: a number with an exponent out of range") from None
    if not is_plain and abs(int(number.as_tuple().exponent)) >= _TOO_LARGE_SCALE:
        raise Undecodable("not JSON we can keep: a number with an exponent out of range")
    return number


def _unrounded_integer(text: str) -> int:
    return int(text) if len(text) < _LONG else int(_within_limits(text, Decimal))


def _unrounded_number(text: str) -> float | Decimal:
    """A number with a fraction or an exponent; a float where its shortest text has the same value."""
    if len(text) <= 16:
        number = float(text)
        if 1e-4 <= abs(number) < 1e15 or (not number and "e" not in text and "E" not in text):
            return number
    return _within_limits(text, Decimal)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _careful_decoder(integer: Callable[[str], Any], number: Callable[[str], Any]) -> _RawDecode:
    decoder = json.JSONDecoder(parse_int=integer, parse_float=number, parse_constant=_refuse_constant)
    return decoder.raw_decode


_careful = _careful_decoder(_integer, _number)
_careful_unrounded = _careful_decoder(_unrounded_integer, _unrounded_number)


def quick_reader(shape: Any, number: Callable[[str], Any] = _number) -> Callable[[bytes], Any]:
    """A function that parses documents of one shape (a type for msgspec) and raises ``UNUSUAL`` for others.

    The shape must forbid unknown members, because msgspec skips them without checking their numbers.
    ``number`` reads numbers with a fraction or an exponent.
    """
    decode = msgspec.json.Decoder(shape, float_hook=number).decode

    def read(data: bytes) -> Any:
        # Of all that msgspec accepts, only long integers would be written differently from kafka-journal.
        alike = data.translate(_ALIKE)
        if _LONG_INTEGER in alike or alike.startswith(_LONG_DIGITS):
            raise NeedsCare
        return decode(data)

    return read


_quick: Callable[[bytes], object] = quick_reader(Any)
_quick_unrounded: Callable[[bytes], object] = quick_reader(Any, _unrounded_number)
_quick_encode = msgspec.json.Encoder(decimal_format="number").encode
_ordered_encode = msgspec.json.Encoder(decimal_format="number", order="sorted").encode


def quick_text(value: object) -> str:
    """The canonical text of a value from a quick reader.

    Raises ``UNUSUAL`` where the slow path has to decide.
    """
    data = _quick_encode(value)
    if len(data) > _DEEPEST_INSIDE and _is_deeper(_DEEPEST_INSIDE, value, data):
        raise NeedsCare
    text = data.decode()
    return text.replace("\x7f", _DELETE) if "\x7f" in text else text


def parse(data: bytes) -> object:
    """The value of a JSON document, its numbers as int, float (where that is exact) or ``Decimal``.

    Raises Undecodable where it is not UTF-8, not JSON, nested deeper than ``DEEPEST`` levels, or has a number
    that cannot be stored.
    """
    try:
        value = _quick(data)
    except UNUSUAL:
        value, text, end = _parse_with_care(data, _careful)
        # kafka-journal's fallback parser ignores text after a document.
        if not isinstance(value, dict | list | str) and text[end : end + 1] not in ("", *_WHITESPACE):
            raise Undecodable(f"not JSON: {text[: end + 1][:40]!r}") from None
    return _not_too_deep(value, data)


def parse_exactly(data: bytes) -> object:
    """The value of a JSON document with every number as it is written.

    A number without fraction and exponent is an int. Any other is a float where the float's shortest text has
    the same value, and else a ``Decimal`` of all its digits. Raises Undecodable as ``parse`` does, and where
    anything but white space follows the document.
    """
    try:
        value = _quick_unrounded(data)
    except UNUSUAL:
        value, text, end = _parse_with_care(data, _careful_unrounded)
        if rest := text[end:].strip(_WHITESPACE):
            raise Undecodable(f"not JSON: {rest[:40]!r} follows the document") from None
    return _not_too_deep(value, data)


def _not_too_deep(value: object, data: bytes) -> object:
    if len(data) > DEEPEST and _is_deeper(DEEPEST, value, data):
        raise Undecodable(f"not JSON we can keep: nested deeper than {DEEPEST} levels")
    return value


def _parse_with_care(data: bytes, decode: _RawDecode) -> tuple[object, str, int]:
    """The slow path: documents with long integers, a byte order mark or text around them, and malformed ones.

    Returns the first document, the text, and where the document ends in it.
    """
    try:
        text = data.decode().removeprefix("\ufeff").lstrip(_WHITESPACE)
    except UnicodeDecodeError as error:
        raise Undecodable(f"not UTF-8 at byte {error.start}") from None
    try:
        value, end = decode(text)
    except Undecodable:
        raise
    except ValueError as error:
        raise Undecodable(f"not JSON: {error}") from None
    except RecursionError:
        raise Undecodable(f"not JSON we can keep: nested deeper than {DEEPEST} levels") from None
    return value, text, end


def _is_deeper(levels: int, value: object, data: bytes) -> bool:
    """Whether a value has more than so many levels.

    ``data``, its JSON, mostly has too few brackets for that.
    """
    if data.count(b"{") + data.count(b"[") <= levels:
        return False
    level: list[dict[str, object] | list[object]] = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
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
    """The canonical text of a value from ``parse``."""
    try:
        text = _encode(value)
    except _Exact:
        text = _encode_with_decimals(value)
    # Both occur only inside strings. A lone surrogate cannot be encoded as UTF-8; its escape is the same
    # value.
    if "\x7f" in text:
        text = text.replace("\x7f", _DELETE)
    if not text.isascii() and _LONE_SURROGATE.search(text):
        text = _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text


def canonical_text(data: bytes) -> str:
    """A JSON document in canonical form. Raises Undecodable as ``parse`` does."""
    try:
        return quick_text(_quick(data))
    except UNUSUAL:
        return canonical(parse(data))


def ordered(data: bytes) -> bytes:
    """A document with sorted members: equal for two documents of the same value."""
    try:
        return _ordered_encode(_quick(data))
    except UNUSUAL:
        return canonical(_sorted(parse(data))).encode()


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _encode_with_decimals(value: object) -> str:
    """The canonical text of a value that contains a ``Decimal``."""
    if isinstance(value, dict):
        return (
            "{"
            + ",".join(f"{_encode(name)}:{_encode_with_decimals(item)}" for name, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(_encode_with_decimals, value)) + "]"
    if isinstance(value, Decimal):
        # Without trailing zeros, Java's BigDecimal and Python's Decimal have the same text.
        return str(value.normalize(_DECIMAL128))
    return _encode(value)


def long(value: object, name: str) -> int:
    """An integral JSON number in the range of a Java long, including ``1.0`` and ``1e2``.

    Raises Undecodable, with ``name``, for any other value.
    """
    if type(value) is int or (isinstance(value, Decimal) and value == value.to_integral_value()):
        number = int(value)
        if -LONG_MAX - 1 <= number <= LONG_MAX:
            return number
    raise Undecodable(f"{name} must be a whole number of 64 bits, not {shown(value)}")


def sequence_number(value: object, name: str) -> int:
    """A sequence number, 1 to 2^63 - 1. Raises Undecodable, with ``name``, for any other value."""
    if type(value) is int and 1 <= value <= LONG_MAX:
        return value
    number = long(value, name)
    if number < 1:
        raise Undecodable(f"{name} must be at least 1, not {number}")
    return number


def optional_text(value: object, name: str) -> str | None:
    """A text, or None for a member that is missing or null. Raises Undecodable for any other value."""
    if value is None:
        return None
    if type(value) is str:
        return value if value.isascii() else storable(value)
    raise Undecodable(f"{name} must be text, not {shown(value)}")


def storable(text: str) -> str:
    """Text that UTF-8 can encode: a lone surrogate becomes ``?``, as in Java's encoder."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def shown(value: object) -> str:
    """The beginning of a value, for the text of an error."""
    if value is None:
        return "nothing"
    text = canonical(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
