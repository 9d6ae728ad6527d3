"""The pairs of a full outer join of a dump with the objects: what each asks for, counted.

An engine makes the pairs. Those whose sides are the same it need not hand over: it says how many they are.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from tidemark.oplog.sync.decisions import CurrentObject, DumpedObject, Outcome, correction, decide
from tidemark.oplog.sync.file_columns import CURRENT, DIFF
from tidemark.oplog.sync.report import correction_line

SHOWN = 100
"""The most corrections that a plan lists."""

PAIRED = ("type", "id", "line", "dumped_at", "dumped_parents", *CURRENT.names[2:])
"""The columns of a pair: the object, the dump's side, the other one.

A side that is not there has null for ``line`` or for ``deleted``."""


_NOT_DUMPED = {Outcome.DELETE, Outcome.INSERTED_SINCE, Outcome.GONE}


@dataclass(frozen=True)
class Found:
    """What was found among some pairs.

    Attributes:
        outcomes: The number of objects by their outcome.
        live: The number of objects that are there.
        files: The paths of the files with the corrections.
        first: Some of the corrections, as people read them.
    """

    outcomes: dict[str, int]
    live: int
    files: tuple[str, ...]
    first: tuple[str, ...]

    def with_same(self, dumped: int) -> "Found":
        """With the pairs whose sides are the same and were not handed over; the dump has so many objects."""
        seen = sum(count for outcome, count in self.outcomes.items() if Outcome(outcome) not in _NOT_DUMPED)
        rest = Counter({Outcome.SAME.value: dumped - seen})
        return Found.sum([self, Found(dict(rest), dumped - seen, (), ())])

    @classmethod
    def sum(cls, parts: Iterable["Found"]) -> Self:
        """Everything in all parts, in an order that does not depend on theirs."""
        found = list(parts)
        outcomes = Counter[str]()
        for part in found:
            outcomes.update(part.outcomes)
        return cls(
            {one.value: outcomes[one] for one in Outcome if outcomes[one]},
            sum(part.live for part in found),
            tuple(sorted(path for part in found for path in part.files)),
            tuple(sorted(line for part in found for line in part.first)[:SHOWN]),
        )


class Comparison:
    """Decides about pairs, and counts the outcomes."""

    def __init__(self, start: int) -> None:
        """``start``: when the dump began, in ms since 1970."""
        self._start = start
        self._outcomes = Counter[str]()
        self._live = 0
        self._first: list[str] = []

    def corrections(self, pairs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The corrections that pairs in the columns ``PAIRED`` ask for, in the columns of ``DIFF``."""
        for batch in pairs:
            if rows := list(self._differing(batch)):
                yield pa.record_batch(list(zip(*rows, strict=True)), schema=DIFF)

    def found(self, files: Iterable[str]) -> Found:
        """What was found, once all corrections were taken and written to these files."""
        outcomes = {str(one): count for one, count in self._outcomes.items()}
        return Found(outcomes, self._live, tuple(files), tuple(self._first))

    def _differing(self, batch: pa.RecordBatch) -> Iterator[Sequence[Any]]:
        columns = [batch.column(name).to_pylist() for name in PAIRED]
        for type_, id_, line, *sides in zip(*columns, strict=True):
            dumped_at, dumped_parents, deleted, timestamp, parents, partition, offset = sides
            dumped = None if line is None else DumpedObject(dumped_at, tuple(dumped_parents or ()))
            current = None if deleted is None else CurrentObject(deleted, timestamp, tuple(parents or ()))
            outcome = decide(dumped, current, self._start)
            self._outcomes[outcome] += 1
            self._live += deleted is False
            sent = correction(type_, id_, outcome, dumped, current, self._start)
            if sent is not None:
                if len(self._first) < SHOWN:
                    self._first.append(correction_line(sent, outcome))
                row = (sent.type, sent.id, sent.event.value, sent.timestamp, sent.parents)
                yield (*row, outcome.value, partition, offset)
