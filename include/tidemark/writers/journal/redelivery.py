"""Applies a dead letter to a journal's tables: rows first, then the head where the rows are readable.

An acknowledgement may have deleted the rows of its message, with tombstones of the message's own write time.
Those tombstones hide the same rows for ever, so the rows are read back before the head is written. The caller
has to check that the entity has no later messages.
"""

from collections.abc import Sequence

from tidemark.delivery.writer import Check
from tidemark.errors import with_fields
from tidemark.journal.effect import Effect, Row
from tidemark.journal_tables.heads import ChangedHead, milliseconds
from tidemark.journal_tables.statements import JournalTables
from tidemark.writers.errors import WriterError

REBUILD = "Rebuild with a new writer, a new keyspace and `start: earliest`: it applies all messages in order."


@with_fields
class RowsHidden(WriterError):
    """Rows that an acknowledgement removed cannot be written again, because its tombstones hide them."""

    needs_person = True

    key: str
    hidden: int

    def __str__(self) -> str:
        return (
            f"{self.hidden} rows of entity {self.key} stay hidden behind the tombstones of the "
            f"acknowledgement; its head is as it was, so readers see no difference. {REBUILD}"
        )


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
