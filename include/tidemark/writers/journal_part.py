"""One Kafka partition's messages on their way into a journal's tables: rows as they come, heads at the end.

Messages are applied in id order, so the first one that cannot be understood is the lowest: everything below
it is written and nothing at or above it. Memory is that of one chunk and of the heads it has met.
"""

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import NamedTuple

import pyarrow as pa
import structlog

from tidemark.cassandra.bulk import BulkWriter
from tidemark.delivery.records import records_of
from tidemark.delivery.writer import Written
from tidemark.journal.action import Mark
from tidemark.journal.effect import Effect, Message
from tidemark.journal.errors import JournalError, Undecodable
from tidemark.journal.fold import Fold
from tidemark.journal.record import read_action
from tidemark.writers.journal_heads import Heads
from tidemark.writers.journal_tables import JournalTables

events = structlog.get_logger()

MESSAGES_AT_ONCE = 16_384
"""How many messages are folded before their rows are written: the more there are, the more often an entity's
rows travel together, which Cassandra takes as one write."""
MOST_HEADS = 200_000
"""With more in memory they are written early, and read again where they are needed again."""
SHOWN_DUPLICATES = 10


class Unapplicable(NamedTuple):
    """A message that cannot be applied, and why."""

    id: int
    offset: int
    problem: str


class JournalPart:
    """The messages of one partition in one binding."""

    def __init__(
        self,
        tables: JournalTables,
        bulk: BulkWriter,
        heads: Heads,
        place: tuple[str, int],
        pointer: int,
        segment_size: int,
        zone: tzinfo,
    ) -> None:
        self._tables, self._bulk, self._heads = tables, bulk, heads
        self._topic, self._partition = place
        self._pointer, self._segment_size, self._zone = pointer, segment_size, zone
        self._shown = 0

    def take(self, chunk: pa.Table) -> tuple[Written, Unapplicable | None]:
        """Write the rows of a chunk, up to its first bad message; what was done, and that message."""
        messages, ignored, bad = self._read(chunk)
        self._heads.load({message.action.key for message in messages})
        effects, worse = self._fold(messages)
        if self._tables.add_tombstones(self._bulk, effects):
            self._bulk.flush()
        self._tables.add_rows(self._bulk, effects)
        for effect in effects:
            self._heads.apply(effect)
        self._show_duplicates(effects)
        bad = worse or bad
        written = sum(1 for message in messages if bad is None or message.id < bad.id)
        entities = self.finish() if len(self._heads) > MOST_HEADS else 0
        return Written(written, ignored=ignored, details=_details(effects, entities)), bad

    def finish(self) -> int:
        """Write the heads, now that all their rows are there; how many entities have changed."""
        changed = self._heads.changed
        self._bulk.flush()
        for key, (tombstone, _, _) in changed.items():
            if tombstone:
                self._tables.add_head_tombstone(self._bulk, self._topic, key, tombstone)
        # A new head in today's segment would tell a second attempt that the purge is done, while the old one
        # may still be in its old segment.
        self._bulk.flush()
        for key, (_, head, write_time) in changed.items():
            if head:
                self._tables.add_head(self._bulk, self._topic, key, head, write_time)
        self._bulk.flush()
        entities = len(changed)
        self._heads.forget()
        return entities

    def _read(self, chunk: pa.Table) -> tuple[list[Message], int, Unapplicable | None]:
        """The actions beyond the pointer in id order, up to what cannot be understood; how many were none."""
        messages: list[Message] = []
        ignored, pointer, partition = 0, self._pointer, self._partition
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
            else:
                messages.append(Message(id_, partition, offset, write_time, t, action))
        return messages, ignored, None

    def _fold(self, messages: Iterable[Message]) -> tuple[list[Effect], Unapplicable | None]:
        folds: dict[str, Fold] = {}
        bad = None
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
                bad = Unapplicable(message.id, message.offset, f"entity {key}: {error}")
                break
        return [fold.effect() for fold in folds.values()], bad

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


def _details(effects: Sequence[Effect], entities: int) -> dict[str, int]:
    return {
        "events": sum(effect.events for effect in effects),
        "entities": entities,
        "duplicates": sum(len(effect.duplicates) for effect in effects),
        "hidden": sum(effect.hidden for effect in effects),
        "metadata_dropped": sum(len(effect.metadata_dropped) for effect in effects),
    }
