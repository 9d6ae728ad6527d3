"""A small Cassandra in memory: cells with write times, row, range and partition tombstones.

The newest write time wins and a tombstone wins a tie. Two different values with one write time that can both
be seen are refused outright: Cassandra would pick one by its bytes, and Tidemark must never get there.
"""

from dataclasses import dataclass, field
from typing import Any

NEVER = -(2**63)
_ALIVE = "(row marker)"

Cells = dict[str, Any]


@dataclass
class _Partition:
    deleted_at: int = NEVER
    ranges: list[tuple[int, int]] = field(default_factory=list)
    rows_deleted_at: dict[Any, int] = field(default_factory=dict)
    cells: dict[Any, dict[str, tuple[Any, int]]] = field(default_factory=dict)


class Table:
    """One table; clustering keys are tuples, and a range tombstone goes by their first part."""

    def __init__(self) -> None:
        self._partitions: dict[Any, _Partition] = {}

    def _at(self, partition: Any) -> _Partition:
        return self._partitions.setdefault(partition, _Partition())

    def insert(self, partition: Any, clustering: Any, cells: Cells, write_time: int) -> None:
        row = self._at(partition).cells.setdefault(clustering, {})
        for column, value in {**cells, _ALIVE: True}.items():
            old, old_time = row.get(column, (None, NEVER))
            if write_time == old_time > self._hidden_at(partition, clustering) and None not in (value, old):
                assert value == old, f"{column} of {partition}/{clustering} written twice at {write_time}"
            if write_time > old_time or (write_time == old_time and value is None):
                row[column] = (value, write_time)

    def delete_partition(self, partition: Any, write_time: int) -> None:
        found = self._at(partition)
        found.deleted_at = max(found.deleted_at, write_time)

    def delete_up_to(self, partition: Any, last: int, write_time: int) -> None:
        self._at(partition).ranges.append((last, write_time))

    def delete_row(self, partition: Any, clustering: Any, write_time: int) -> None:
        times = self._at(partition).rows_deleted_at
        times[clustering] = max(times.get(clustering, NEVER), write_time)

    def _hidden_at(self, partition: Any, clustering: Any) -> int:
        found = self._at(partition)
        return max(
            found.deleted_at,
            found.rows_deleted_at.get(clustering, NEVER),
            *(time for last, time in found.ranges if clustering[0] <= last),
            NEVER,
        )

    def read(self, partition: Any) -> dict[Any, Cells]:
        """The rows of a partition that a query would return, by clustering key, in its order."""
        found = self._partitions.get(partition, _Partition())
        rows = {}
        for clustering in sorted(found.cells):
            hidden_at = self._hidden_at(partition, clustering)
            cells = {name: cell[0] for name, cell in found.cells[clustering].items() if cell[1] > hidden_at}
            if any(value is not None for value in cells.values()):
                cells.pop(_ALIVE, None)
                rows[clustering] = {name: value for name, value in cells.items() if value is not None}
        return rows

    def partitions(self) -> list[Any]:
        return list(self._partitions)
