"""The changes at a handover: the rows of the new rendition, less those of the old one. Pure.

Both renditions are read range by range. A key has one token, so a row that both have is in the same range of
both, and memory holds the differences of one range. That needs the same key columns. With others, every old
row disappears and every new one appears, which adds up to the same.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tidemark.collection.model.row import CollectionRow
from tidemark.collection.model.schema import CollectionSchema
from tidemark.collection.tables.codec.python_rows import VisibleRow

Part = TypeVar("Part")
Read = Callable[[Part], Iterable[CollectionRow]]
"""The rows of a range."""


def differences(
    schemas: tuple[CollectionSchema, CollectionSchema],
    parts: Iterable[Part],
    before: Read[Part],
    after: Read[Part],
) -> Iterator[tuple[VisibleRow, bool]]:
    """The rows that only one of two renditions has, and whether it is the new one; of each range the rows
    that disappear come first.

    Args:
        schemas: Of the old rendition and of the new one.
        parts: The ranges, which together have every key once.
        before: Reads the old rendition.
        after: Reads the new one.
    """
    order = _same_columns(*schemas)
    for part in parts:
        if order is None:
            yield from ((_visible(row), False) for row in before(part))
            yield from ((_visible(row), True) for row in after(part))
            continue
        old = {_visible(row): None for row in before(part)}
        new = []
        for row in after(part):
            seen = _visible(row)
            as_before = VisibleRow(seen.key, tuple([seen.values[place] for place in order]))
            if as_before in old:
                del old[as_before]
            else:
                new.append(seen)
        yield from ((row, False) for row in old)
        yield from ((row, True) for row in new)


def _same_columns(before: CollectionSchema, after: CollectionSchema) -> list[int] | None:
    """Where the data columns of the old rendition are in the new one; None where their rows differ by their
    columns alone."""
    if before.key != after.key or set(before.columns) != set(after.columns):
        return None
    return [after.columns.index(column) for column in before.columns]


def _visible(row: CollectionRow) -> VisibleRow:
    return VisibleRow(row.key, row.values)
