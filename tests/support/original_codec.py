"""The original's replication of one entity, batch by batch, as the contract describes it in 4.3 to 4.5.

An oracle for the fold, written from the text and not from the fold: it knows nothing of write times, keeps
its rows in a dictionary and lets ``delete_to`` go back where the original does.
"""

from dataclasses import dataclass, field
from typing import Any

from tidemark.journal.segments import row_segment

Rows = dict[tuple[int, int], int]
"""(sequence number, offset of its record) → incarnation."""


@dataclass
class Original:
    segment_size: int
    head: dict[str, Any] | None = None
    rows: Rows = field(default_factory=dict)
    incarnations: int = 0

    def append(self, offset: int, records: list[tuple[int, list[int]]]) -> None:
        events = [(seq_nr, at) for at, numbers in records for seq_nr in numbers]
        if self.head is None:
            self.incarnations += 1
            first = events[0][0]
            self.head = {"delete_to": first - 1 or None, "offset": -1, "record_id": self.incarnations}
        elif offset <= self.head["offset"]:
            return
        for seq_nr, at in events:
            if at > self.head["offset"]:
                self.rows[seq_nr, at] = self.head["record_id"]
        self.head |= {"offset": offset, "seq_nr": events[-1][0]}

    def delete(self, offset: int, to: int) -> None:
        if self.head is None:
            self.head = {"seq_nr": to, "delete_to": to, "offset": offset, "record_id": None}
            return
        if offset <= self.head["offset"]:
            return
        before, seq_nr = self.head["delete_to"], self.head["seq_nr"]
        reached = max(before or 0, seq_nr)
        self.head |= {"offset": offset, "seq_nr": reached, "delete_to": min(to, reached)}
        first, last = (before or 0) + 1, min(to, seq_nr)
        if first <= last:
            low, high = self._segment(first), self._segment(last)
            for row in list(self.rows):
                segment = self._segment(row[0])
                whole = low <= segment < high or (segment == high and last >= seq_nr)
                if whole or (segment == high and row[0] <= last):
                    del self.rows[row]

    def purge(self, offset: int) -> None:
        if self.head is None or offset < self.head["offset"]:
            return
        deleted, seq_nr = self.head["delete_to"] or 1, self.head["seq_nr"]
        low, high = self._segment(min(deleted, seq_nr)) - 1, self._segment(max(deleted, seq_nr)) + 1
        self.rows = {row: of for row, of in self.rows.items() if not low <= self._segment(row[0]) <= high}
        self.head = None

    def _segment(self, seq_nr: int) -> int:
        return row_segment(seq_nr, self.segment_size)

    def visible(self) -> dict[str, Any] | None:
        if self.head is None:
            return None
        deleted, record_id = self.head["delete_to"] or 0, self.head["record_id"]
        return {
            "seq_nr": self.head["seq_nr"],
            "delete_to": self.head["delete_to"],
            "rows": {row for row, of in self.rows.items() if row[0] > deleted and record_id in (None, of)},
        }
