"""Applies a dead letter to a journal's tables: rows first, then the head where the rows are readable.

An acknowledgement may have deleted the rows of its message, with tombstones of the message's own write time.
Those tombstones hide the same rows for ever, so the rows are read back before the head is written. The caller
has to check that the entity has no later messages.
"""

from collections.abc import Sequence

from tidemark.delivery.writer import Check
from tidemark.errors import TidemarkError
from tidemark.journal.effect import Effect, Row
from tidemark.journal_tables.heads import ChangedHead, milliseconds
from tidemark.journal_tables.statements import JournalTables

REBUILD = "Rebuild with a new writer, a new keyspace and `start: earliest`: it applies all messages in order."


class RowsHidden(TidemarkError):
    """What an acknowledgement removed cannot be written again."""

    needs_person = True

    def __init__(self, key: str, hidden: int) -> None:
        super().__init__(
            f"{hidden} rows of entity {key} stay hidden behind the tombstones of the acknowledgement; its "
            f"head is as it was, so readers see no difference. {REBUILD}"
        )
        self.key, self.hidden = key, hidden


def apply_after_all(tables: JournalTables, effect: Effect, lease: Check) -> None:
    """Writes the effect of one message. Idempotent. Raises RowsHidden where tombstones hide its rows."""
    if effect.write_time is None:  # the head contains the message already
        return
    with tables.bulk(lease.check) as bulk:
        if tables.add_tombstones(bulk, [effect]):
            bulk.flush()
        tables.add_rows(bulk, tables.encode_rows(effect.rows))
        bulk.flush()
        if hidden := _hidden(tables, effect):
            raise RowsHidden(effect.key, len(hidden))
        changed = ChangedHead(effect.head_tombstone, effect.head, effect.write_time)
        if changed.tombstone:
            tables.add_head_tombstone(bulk, effect.topic, effect.key, changed.tombstone)
            bulk.flush()
        if changed.head:
            tables.add_head(bulk, effect.topic, effect.key, changed.head, changed.write_time)


def _hidden(tables: JournalTables, effect: Effect) -> Sequence[Row]:
    segments = {row.segment for row in effect.rows}
    readable = {
        (row.segment, row.seq_nr, milliseconds(row.timestamp), row.partition, row.offset)
        for row in tables.read_rows(effect.topic, effect.key, segments)
    }
    return [
        row
        for row in effect.rows
        if (row.segment, row.seq_nr, row.timestamp, row.partition, row.offset) not in readable
    ]
