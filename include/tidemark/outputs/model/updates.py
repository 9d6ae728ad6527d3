"""Updates of a collection, (row, time, ±count), and their sums.

A state is the sum of all updates up to a time, as counts of rows. In the state of a sound collection every
count is 1. Sums here keep negative counts, so that a wrong history shows.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

RowCounts = Mapping[Hashable, int]
"""How often each row is there; rows that are not there have no entry."""


class RowUpdate(NamedTuple):
    """A row that appears (+) or disappears (−) at a time (µs)."""

    row: Hashable
    t: int
    diff: int


def accumulate(updates: Iterable[RowUpdate], at: int | None = None) -> dict[Hashable, int]:
    """The sum of the updates with times at or before ``at``; None: of all."""
    counts: dict[Hashable, int] = {}
    for row, t, diff in updates:
        if at is None or t <= at:
            counts[row] = counts.get(row, 0) + diff
    return {row: count for row, count in counts.items() if count}


def consolidate(updates: Iterable[RowUpdate]) -> list[RowUpdate]:
    """The same updates in the order of their times, those of a row at a time summed, and left out at 0."""
    sums: dict[tuple[int, Hashable], int] = {}
    for row, t, diff in updates:
        sums[t, row] = sums.get((t, row), 0) + diff
    # Removed rows first, then by text: rows of different types cannot be compared themselves.
    found = (RowUpdate(row, t, diff) for (t, row), diff in sums.items() if diff)
    return sorted(found, key=lambda one: (one.t, one.diff, repr(one.row)))


def difference(t: int, before: RowCounts, after: RowCounts) -> list[RowUpdate]:
    """The updates at ``t`` that turn one state into another."""
    gone = (RowUpdate(row, t, -count) for row, count in before.items())
    come = (RowUpdate(row, t, count) for row, count in after.items())
    return consolidate([*gone, *come])
