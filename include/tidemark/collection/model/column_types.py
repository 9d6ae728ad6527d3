"""The types that columns of a collection may have, and those that are refused, with the reason.

Everything that Cassandra itself would refuse when the table is created is refused here, when a pipeline file
is read. Nothing here knows the types of a table that exists already.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from tidemark.cassandra.type_tree import CqlKind, CqlType, NoPlaceInArrow, parse_type
from tidemark.errors import did_you_mean

KEY_KINDS = frozenset(
    {
        CqlKind.ASCII,
        CqlKind.BIGINT,
        CqlKind.BLOB,
        CqlKind.BOOLEAN,
        CqlKind.DATE,
        CqlKind.INET,
        CqlKind.INT,
        CqlKind.SMALLINT,
        CqlKind.TEXT,
        CqlKind.TIME,
        CqlKind.TIMESTAMP,
        CqlKind.TIMEUUID,
        CqlKind.TINYINT,
        CqlKind.UUID,
        CqlKind.VARINT,
    }
)
"""Kinds of which equal values have equal bytes in every client. A decimal has several scales for one value,
a float two zeros."""

RAW_KEY_KINDS = frozenset({CqlKind.ASCII, CqlKind.BLOB, CqlKind.TEXT})
"""Kinds of which a message key as it is can be the value."""

_MOST_DIMENSIONS = 8192
_NAME = re.compile(r"[A-Za-z_\"][^<>,\s]*")
_COUNTER = (
    "is or holds a counter. A delivery may be repeated, and adding twice would count twice. Use `bigint` for "
    "a number that the message has."
)
_USER_TYPE = (
    "User-defined types are refused, because they can be changed or dropped while rows use them: use a "
    "`map`, a `tuple`, or a column for each field."
)


def column_type(text: str) -> CqlType:
    """The type of a data column; raises ``ValueError`` with the rest of a sentence that begins with its
    name."""
    if text.count("<") != text.count(">"):
        raise ValueError(
            f'is `{text}`, where a bracket is open. Put a type with commas in quotes: "{text}…>".'
        )
    try:
        found = _with_one_name_each(parse_type(text))
    except NoPlaceInArrow:
        raise ValueError(_unknown(text)) from None
    for part in _parts(found):
        _check_part(text, part)
    return found


def key_type(text: str) -> CqlType:
    """The type of a key column; raises ``ValueError`` as ``column_type`` does."""
    found = column_type(text)
    if found.kind not in KEY_KINDS:
        known = ", ".join(sorted(KEY_KINDS))
        raise ValueError(f"is `{text}`, which a key column cannot be. Types of key columns: {known}.")
    return found


def _with_one_name_each(found: CqlType) -> CqlType:
    """``varchar`` is another name of ``text``; Cassandra's own tables of types know only the latter."""
    kind = CqlKind.TEXT if found.kind is CqlKind.VARCHAR else found.kind
    return replace(found, kind=kind, elements=tuple(map(_with_one_name_each, found.elements)))


def _parts(found: CqlType) -> Iterator[CqlType]:
    yield found
    for element in found.elements:
        yield from _parts(element)


def _check_part(text: str, part: CqlType) -> None:
    shown = f"is `{text}`" if str(part) == text else f"is `{text}`, which holds `{part}`"
    match part.kind:
        case CqlKind.COUNTER:
            raise ValueError(f"is `{text}`: it {_COUNTER}")
        case CqlKind.VECTOR if not 1 <= part.size <= _MOST_DIMENSIONS:
            raise ValueError(f"{shown}. A vector has 1 to {_MOST_DIMENSIONS} elements.")
        case CqlKind.SET | CqlKind.MAP if _has_duration(part.elements[0]):
            ordered = "the elements of a set" if part.kind is CqlKind.SET else "the keys of a map"
            raise ValueError(f"{shown}. Durations have no order, which {ordered} need. Use a list.")


def _has_duration(found: CqlType) -> bool:
    return any(part.kind is CqlKind.DURATION for part in _parts(found))


def _unknown(text: str) -> str:
    """What is wrong with a text that is not a type."""
    kinds = [kind.value for kind in CqlKind if kind is not CqlKind.USER_TYPE]
    names = [name for name in _NAME.findall(text) if name not in (*kinds, "frozen")]
    if not names and text.strip():
        return f"is `{text}`. Types in brackets are missing or too many. Write list<int>, or map<text, int>."
    name = names[0] if names else text
    shown = f"is `{text}`" if name == text else f"is `{text}`, which holds `{name}`"
    hint = did_you_mean(name, kinds, f"Types: {', '.join(kinds)}.")
    return f"{shown}, which is not a type that a column can have. {hint} {_USER_TYPE}"
