"""Row groups of a log file by the ids they hold, so that only those are read that matter.

By the statistics that every writer of log files leaves in the footer; a group without them is read.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow.parquet as pq

ID_COLUMN = 0


class Group(NamedTuple):
    """One row group."""

    number: int
    rows: int
    first_id: int | None
    last_id: int | None

    def may_have(self, first_id: int, last_id: int) -> bool:
        """Whether a message in it can have one of these ids."""
        if self.first_id is None or self.last_id is None:
            return True
        return self.first_id <= last_id and self.last_id >= first_id

    def is_within(self, first_id: int, last_id: int) -> bool:
        """Whether all its messages have one of these ids."""
        if self.first_id is None or self.last_id is None:
            return False
        return first_id <= self.first_id and self.last_id <= last_id


def groups_of(metadata: pq.FileMetaData) -> Iterator[Group]:
    """All row groups of a file."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        found = group.column(ID_COLUMN).statistics
        known = found is not None and found.has_min_max
        yield Group(number, group.num_rows, *((found.min, found.max) if known else (None, None)))
