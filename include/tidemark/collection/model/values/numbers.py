"""Numbers and booleans as CQL bytes.

Integers are JSON integers in range: neither ``1.0`` nor ``true``. Those that JSON producers often send as
text, because their own numbers are too narrow (``bigint``, ``varint``, ``decimal``), are read from text too.
A decimal keeps all digits. Its bytes do not depend on how it was written: 12.5, 12.50 and "12.50" are one
number, and 1e2 is 100.
"""

import re
from decimal import Decimal
from math import isfinite
from struct import Struct, error
from typing import Any

from tidemark.collection.model.values.misfit import Encode, Misfit

TRUE, FALSE = b"\x01", b"\x00"

_MOST_DIGITS = 310
"""As many as a JSON document may have in a number."""
_MOST_EXPONENT = 6178
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,5})?")
_scale = Struct(">i").pack
_SCALES = tuple(map(_scale, range(20)))
_NO_SCALE = _SCALES[0]
_double = Struct(">d").pack
_float = Struct(">f")


def boolean(value: Any) -> bytes:
    """``boolean``."""
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    raise Misfit(value, "is not true or false")


def boolean_in(text: Any) -> bytes:
    """A ``boolean`` where only text is possible."""
    return boolean({"true": True, "false": False}.get(text, text))


def integers(layout: str, bits: int, *, from_text: bool) -> Encode:
    """Integers of a fixed width; ``layout`` is their format for ``struct``."""
    pack = Struct(layout).pack
    what = f"a whole number of {bits} bits"

    def integer(value: Any) -> bytes:
        if type(value) is int:
            try:
                return pack(value)
            except error:
                raise Misfit(value, f"is not {what}") from None
        if from_text and type(value) is str:
            return integer(whole_number(value, what))
        raise Misfit(value, f"is not {what}")

    return integer


def varint(value: Any) -> bytes:
    """``varint``: a whole number of any size."""
    if type(value) is int:
        return _signed(value)
    if type(value) is str:
        return _signed(whole_number(value, "a whole number"))
    raise Misfit(value, "is not a whole number")


def decimal(value: Any) -> bytes:
    """``decimal``: with as many digits after the point as are not zeros at the end."""
    kind = type(value)
    if kind is int:
        return _NO_SCALE + _signed(value)
    if isinstance(value, float):
        # The decimal that the float was written as; the JSON reader makes a float only where this is exact.
        text = repr(float(value))
        whole, _, fraction = text.partition(".")
        if not fraction.isdigit():
            return _decimal_of(value, text)
        if fraction == "0":
            return _NO_SCALE + _signed(int(whole))
        return _SCALES[len(fraction)] + _signed(int(whole + fraction))
    if kind is str:
        if len(value) > _MOST_DIGITS or not _NUMBER.fullmatch(value):
            raise Misfit(value, "is not a number")
        return _decimal_of(value, value)
    if isinstance(value, Decimal) and value.is_finite():
        return _decimal_of(value, str(value))
    raise Misfit(value, "is not a number")


def double(value: Any) -> bytes:
    """``double``: the one that is nearest to the number, as every JSON reader takes it."""
    return _double(_nearest(value, "double"))


def single(value: Any) -> bytes:
    """``float``: the one that is nearest to the number."""
    number = _nearest(value, "float")
    try:
        data = _float.pack(number)
    except OverflowError:
        raise Misfit(value, "is too large for a float") from None
    if number and not _float.unpack(data)[0]:
        raise Misfit(value, "is too small for a float, which would hold 0")
    return data


def number_in(text: str) -> float | Decimal:
    """The number that a text is, as the JSON reader would read it; raises ``Misfit``."""
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        raise Misfit(text, "is not a number")
    return Decimal(text)


def whole_number(text: str, what: str = "a whole number") -> int:
    """The integer that a text is, in the one form that JSON has for it; raises ``Misfit``."""
    if len(text) > _MOST_DIGITS or not _WHOLE.fullmatch(text):
        raise Misfit(text, f"is not {what}")
    return int(text)


def _decimal_of(value: Any, text: str) -> bytes:
    digits, _, exponent = text.lower().partition("e")
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    try:
        scale = len(fraction) - int(exponent or 0)
        number = int(whole + fraction)
    except ValueError:  # NaN and infinity, which only a transform can make
        raise Misfit(value, "is not a number") from None
    if not number:
        return _NO_SCALE + b"\x00"
    if abs(scale) > _MOST_EXPONENT:
        raise Misfit(value, "has an exponent out of range")
    if scale and not fraction:  # written with an exponent: zeros may be at the end of the whole part
        while number % 10 == 0:
            number, scale = number // 10, scale - 1
    # A whole number has no exponent, unless it is so long that clients cannot write it without one.
    if scale < 0 and len(str(number)) - scale <= _MOST_DIGITS:
        number, scale = number * 10**-scale, 0
    return _scale(scale) + _signed(number)


def _nearest(value: Any, type_name: str) -> float:
    if isinstance(value, float) and isfinite(value):
        return value + 0.0  # without the sign of a zero: 0.0 and -0.0 are one number
    if type(value) is not int and not isinstance(value, Decimal):
        raise Misfit(value, "is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise Misfit(value, f"is too large for a {type_name}")
    if value and not number:
        raise Misfit(value, f"is too small for a {type_name}, which would hold 0")
    return number + 0.0


def _signed(number: int) -> bytes:
    """The shortest two's complement."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)
