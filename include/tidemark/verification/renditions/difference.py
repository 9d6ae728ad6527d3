"""A row that is not the same in two renditions, with both of its versions. Pure.

What a row is depends on the kind: the visible row of a key at a time in a collection, an entity's head or
event in a journal, a message in files and topics. ``old`` is the rendition that readers use, ``new`` the one
that is to be verified.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tidemark.pipeline.expect import RowChange

Fields = Mapping[str, Any]
"""A row by the names of its fields, as plain values."""
MOST_TEXT = 200
"""The most characters of a value that a sample shows."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """One row that differs.

    Attributes:
        change: How it differs.
        where: Which row it is, in words.
        columns: The columns that differ; empty for a row that one of the renditions does not have.
        old: The row of the active rendition; None where it has none.
        new: The row of the new rendition; None where it has none.
    """

    change: RowChange
    where: str
    columns: tuple[str, ...] = ()
    old: Fields | None = None
    new: Fields | None = None

    @property
    def said(self) -> str:
        """The difference as a sentence."""
        if self.change is RowChange.CHANGED:
            pairs = (f"{name} {_shown(self.old, name)} → {_shown(self.new, name)}" for name in self.columns)
            return f"{self.where}: {', '.join(pairs)}"
        row = self.old if self.change is RowChange.MISSING else self.new
        fields = ", ".join(f"{name} {_text(value)}" for name, value in (row or {}).items())
        return f"{self.where}: {self.change} ({fields})" if fields else f"{self.where}: {self.change}"


def differing(old: Fields, new: Fields, leaving_out: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The names of the fields that differ, sorted. A field that one of the rows does not have is null."""
    names = {*old, *new} - leaving_out
    return tuple(sorted(name for name in names if not _is_same(old.get(name), new.get(name))))


def plain(value: Any) -> Any:
    """A value of a column as one that JSON has, or a ``Decimal``; other types become text."""
    if value is None or isinstance(value, bool | int | float | str | Decimal):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"0x{bytes(value).hex()}"
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=str)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    try:
        return [plain(one) for one in value]  # the driver's own collections
    except TypeError:
        return str(value)


def _is_same(one: Any, other: Any) -> bool:
    # 1, 1.0 and True are equal in Python, and are not the same value of a message.
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _shown(row: Fields | None, name: str) -> str:
    return _text((row or {}).get(name))


def _text(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"
