"""The refusal of one value, and how a value is shown in it."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

Encode = Callable[[Any], bytes]
"""From a JSON value other than null to the bytes of a CQL value, without length. Raises ``Misfit``."""

_MOST_CHARACTERS = 40


class Misfit(ValueError):
    """A value that its type cannot hold; the text begins with the value."""

    def __init__(self, value: Any, problem: str) -> None:
        super().__init__(f"{shown(value)} {problem}")


def shown(value: Any) -> str:
    """The beginning of a value, for the text of an error: on one line, and without lone surrogates."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if value.bit_length() > 1_000:  # Python refuses to write such numbers
            return f"a number of {value.bit_length()} bits"
        case int() | float() | Decimal():
            return _cut(str(value))
        case str():
            quoted = json.dumps(_cut(value), ensure_ascii=False)
            return quoted.encode("utf-8", "backslashreplace").decode()
        case dict():
            return "a JSON object"
        case list():
            return "a JSON list"
    return f"something of type {type(value).__name__}"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
