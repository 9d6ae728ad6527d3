"""The cells of one column as Cassandra sends them, in one buffer that numpy can process at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]

FEW = 16
"""With fewer cells left than this, a Python loop is faster than numpy."""


@dataclass(frozen=True)
class RawColumn:
    """Concatenated cells; the length of null is -1."""

    data: Bytes
    lengths: Numbers

    @classmethod
    def of(cls, cells: Sequence[bytes | None]) -> Self:
        """A column from single cells."""
        try:
            lengths = np.fromiter(map(len, cells), np.int64, len(cells))  # type: ignore[arg-type]
            data = b"".join(cells)  # type: ignore[arg-type]
        except TypeError:  # there are nulls; checking for them first would cost as much as the rest
            lengths = np.array([-1 if cell is None else len(cell) for cell in cells], np.int64)
            data = b"".join(filter(None, cells))
        return cls(np.frombuffer(data, np.uint8), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which cells are not null."""
        return self.lengths >= 0

    @cached_property
    def ends(self) -> Numbers:
        """Where each cell ends."""
        return np.cumsum(np.maximum(self.lengths, 0))

    @property
    def starts(self) -> Numbers:
        """Where each cell begins."""
        return self.ends - np.maximum(self.lengths, 0)

    def cells(self) -> list[bytes | None]:
        """The single cells."""
        data, ends = self.data.tobytes(), self.ends.tolist()
        return [
            None if length < 0 else data[end - length : end]
            for end, length in zip(ends, self.lengths.tolist(), strict=True)
        ]

    def elements(self, of_each: int) -> tuple[Numbers, list["RawColumn"]]:
        """The content of collections: the number of entries of each, and the columns of their parts.

        An entry has ``of_each`` parts: one in lists and sets, two in maps. Null has no entries.
        """
        filled = self.lengths >= 4
        counts = np.zeros(len(self), np.int64)
        places = self.starts[filled]
        if len(places) == 0:
            return counts, [RawColumn(self.data[:0], counts[:0])] * of_each
        # A view of the four bytes at every position as a number.
        numbers = np.ndarray((len(self.data) - 3,), ">i4", self.data.data, strides=(1,))
        counts[filled] = numbers[places]
        starts, lengths = _walk(numbers, places + 4, counts[filled] * of_each)
        return counts, [self._gathered(starts[n::of_each], lengths[n::of_each]) for n in range(of_each)]

    def fields(self, count: int) -> list["RawColumn"]:
        """The content of tuples: a column per field, null where the cell is null or too short."""
        places, ends = self.starts, self.ends
        numbers = np.ndarray((max(len(self.data) - 3, 0),), ">i4", self.data.data, strides=(1,))
        found = []
        for _ in range(count):
            there = places + 4 <= ends
            lengths = np.full(len(self), -1, np.int64)
            lengths[there] = numbers[places[there]]
            found.append(self._gathered(places + 4, lengths))
            places = places + np.where(there, 4 + np.maximum(lengths, 0), 0)
        return found

    def _gathered(self, starts: Numbers, lengths: Numbers) -> "RawColumn":
        sizes = np.maximum(lengths, 0)
        ends = np.cumsum(sizes)
        places = np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)
        return RawColumn(self.data[places], lengths)


def _walk(numbers: npt.NDArray[Any], places: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """Starts and lengths of the parts: follows the length prefixes of all cells in parallel."""
    total = int(counts.sum())
    starts, lengths = np.empty(total, np.int64), np.empty(total, np.int64)
    into = np.cumsum(counts) - counts
    done = 0
    walking = np.flatnonzero(counts > 0)
    while len(walking) >= FEW:
        here = places[walking]
        found = numbers[here].astype(np.int64)
        slots = into[walking] + done
        starts[slots], lengths[slots] = here + 4, found
        places[walking] = here + 4 + np.maximum(found, 0)
        done += 1
        walking = walking[counts[walking] > done]
    for cell in walking:
        place, slot = int(places[cell]), int(into[cell])
        for number in range(slot + done, slot + int(counts[cell])):
            length = int(numbers[place])
            starts[number], lengths[number] = place + 4, length
            place += 4 + max(length, 0)
    return starts, lengths
