"""Writes the messages of one Kafka partition into a journal's tables: rows in batches, heads at the end.

Messages are applied in id order. The first one that cannot be applied is therefore the lowest, and exactly
the messages below it are written. Memory holds one chunk of messages, the rows that are collected for larger
batches, and the heads read so far.
"""

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import NamedTuple

import pyarrow as pa
import structlog

from tidemark.cassandra.bulk.writer import BulkWriter
from tidemark.delivery.records import records_of
from tidemark.delivery.split_entities import begun
from tidemark.delivery.writer import Written
from tidemark.faults import at_once
from tidemark.journal.action import Mark
from tidemark.journal.codec.record import read_action
from tidemark.journal.effect import Effect, Message, Row
from tidemark.journal.errors import JournalError, Undecodable
from tidemark.journal.fold import Fold
from tidemark.journal_tables.cells import is_too_long, longest_key
from tidemark.journal_tables.heads import PartitionHeads
from tidemark.journal_tables.statements import JournalTables

events = structlog.get_logger()

ROWS_TOGETHER, BYTES_TOGETHER = at_once(125_000), 50 * 2**20
"""The rows, and their bytes, that are collected before they are written. The more there are, the more rows of
an entity share a batch, which Cassandra applies as one write."""
MOST_HEADS = 200_000
"""With more heads in memory, all are written early, and read again when they are needed again."""
SHOWN_DUPLICATES = 10


class Unapplicable(NamedTuple):
    """A message that cannot be applied, and the reason."""

    id: int
    offset: int
    problem: str


class JournalPart:
    """The messages of one partition in one binding."""

    def __init__(
        self,
        tables: JournalTables,
        bulk: BulkWriter,
        heads: PartitionHeads,
        place: tuple[str, int],
        pointer: int,
        segment_size: int,
        zone: tzinfo,
        created: int | None = None,
    ) -> None:
        """A part of the partition ``place``, whose messages up to offset ``pointer`` are in the tables.

        ``created`` is the creation time of new heads (ms), given where entities can also begin in another
        partition of the same binding; None otherwise.
        """
        self._tables, self._bulk, self._heads = tables, bulk, heads
        self._topic, self._partition = place
        self._pointer, self._segment_size, self._zone = pointer, segment_size, zone
        self._created = created
        self._folds: dict[str, Fold] = {}
        self._waiting: dict[str, list[bytes]] = {}
        self._waiting_rows = self._waiting_bytes = 0
        self._done = Written()
        self._shown = 0

    def take(self, chunk: pa.Table) -> Unapplicable | None:
        """Applies a chunk up to its first message that cannot be applied, and returns that message."""
        messages, ignored, bad = self._read(chunk)
        keys = {message.action.key for message in messages}
        self._heads.load(keys)
        bad = self._fold(messages) or bad
        written = sum(1 for message in messages if bad is None or message.id < bad.id)
        self._done += Written(written, ignored=ignored)
        self._conclude([key for key in keys if key in self._folds and not self._drain(key)])
        if self._waiting_rows >= ROWS_TOGETHER or self._waiting_bytes >= BYTES_TOGETHER:
            self._write_rows()
        if len(self._heads) > MOST_HEADS:
            self._write_heads()
        return bad

    def finish(self) -> Written:
        """Writes the remaining rows and the heads, and returns the counts of all messages."""
        self._write_heads()
        return self._done

    def _drain(self, key: str) -> bool:
        """Moves an entity's rows from its fold to the waiting rows; False where tombstones come first."""
        rows = self._folds[key].drain()
        if rows is None:
            return False
        self._keep(key, rows)
        return True

    def _conclude(self, keys: Iterable[str]) -> None:
        """Ends the folds of these entities and collects their effects. Tombstones are written before rows."""
        effects = [self._folds.pop(key).effect() for key in keys]
        for effect in effects:
            if effect.tombstones:
                # Rows are written before their tombstone, so that it need not outlive rows that arrive later.
                self._tables.add_rows(self._bulk, self._waiting.pop(effect.key, ()))
        if self._tables.add_tombstones(self._bulk, effects):
            self._bulk.flush()
        for effect in effects:
            self._keep(effect.key, effect.rows)
            self._heads.apply(effect)
        self._show_duplicates(effects)
        self._done += Written(details=_details(effects))

    def _keep(self, key: str, rows: Sequence[Row]) -> None:
        if rows:
            encoded = self._tables.encode_rows(rows)
            self._waiting.setdefault(key, []).extend(encoded)
            self._waiting_rows += len(encoded)
            self._waiting_bytes += sum(map(len, encoded))

    def _write_rows(self) -> None:
        """Ends all folds and writes the waiting rows."""
        self._conclude(list(self._folds))
        while self._waiting:
            self._tables.add_rows(self._bulk, self._waiting.popitem()[1])
        self._waiting_rows = self._waiting_bytes = 0

    def _write_heads(self) -> None:
        """Writes all rows, and then the heads."""
        self._write_rows()
        changed = self._heads.changed
        self._bulk.flush()
        for key, (tombstone, _, _) in changed.items():
            if tombstone:
                self._tables.add_head_tombstone(self._bulk, self._topic, key, tombstone)
        # A retry takes a new head in the current segment space as proof that the purge was applied. The old
        # head must therefore be deleted from the old segment space before.
        self._bulk.flush()
        for key, (_, head, write_time) in changed.items():
            if head:
                self._tables.add_head(self._bulk, self._topic, key, head, write_time)
        self._bulk.flush()
        self._done += Written(details={"entities": len(changed)})
        if self._created is not None:
            keys = self._heads.created_at(self._created)
            self._done += Written(begun=begun(self._topic, self._partition, keys))
        self._heads.forget()

    def _read(self, chunk: pa.Table) -> tuple[list[Message], int, Unapplicable | None]:
        """The messages beyond the pointer in id order, how many were ignored, and the first undecodable one.

        Messages after an undecodable one are not read.
        """
        messages: list[Message] = []
        ignored, pointer, partition = 0, self._pointer, self._partition
        longest = longest_key(self._topic)
        surely_short = longest // 4  # a character has at most four bytes
        for id_, offset, write_time, t, *record in records_of(chunk):
            if offset <= pointer:
                ignored += 1
                continue
            try:
                action = read_action(*record)
            except Undecodable as error:
                return messages, ignored, Unapplicable(id_, offset, error.reason)
            if action is None or type(action) is Mark:
                ignored += 1
            elif len(action.key) > surely_short and is_too_long(self._topic, action.key):
                problem = f"its key is longer than the {longest} bytes that Cassandra takes"
                return messages, ignored, Unapplicable(id_, offset, problem)
            else:
                messages.append(Message(id_, partition, offset, write_time, t, action))
        return messages, ignored, None

    def _fold(self, messages: Iterable[Message]) -> Unapplicable | None:
        folds = self._folds
        for message in messages:
            key = message.action.key
            fold = folds.get(key)
            if fold is None:
                head = self._heads[key]
                fold = Fold(self._topic, key, head, segment_size=self._segment_size, zone=self._zone)
                folds[key] = fold
            try:
                fold.apply(message)
            except JournalError as error:
                return Unapplicable(message.id, message.offset, f"entity {key}: {error}")
        return None

    def _show_duplicates(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            for seq_nr, offset in effect.duplicates:
                if self._shown >= SHOWN_DUPLICATES:
                    return
                self._shown += 1
                events.warning(
                    "sequence number used again: readers of this entity will fail",
                    topic=self._topic,
                    partition=self._partition,
                    offset=offset,
                    entity=effect.key,
                    seq_nr=seq_nr,
                )


def _details(effects: Sequence[Effect]) -> dict[str, int]:
    return {
        "events": sum(effect.events for effect in effects),
        "duplicates": sum(len(effect.duplicates) for effect in effects),
        "hidden": sum(effect.hidden for effect in effects),
        "metadata_dropped": sum(len(effect.metadata_dropped) for effect in effects),
    }
