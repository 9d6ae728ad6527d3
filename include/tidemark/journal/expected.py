"""The visible state that one entity should have, computed from its messages alone.

The messages go through the writer's fold in batches, so that memory holds a digest per row and never a
payload. Records at which offsets the remaining incarnation may have begun; whether that can be proved is
decided by the caller.
"""

from datetime import UTC, tzinfo

from tidemark.journal.action import Append, Mark, Purge
from tidemark.journal.digest import digest_of, overwritten
from tidemark.journal.effect import Effect, Message
from tidemark.journal.fold import Fold
from tidemark.journal.head import Head
from tidemark.journal.segments import DEFAULT_SEGMENT_SIZE
from tidemark.journal.visible import Visible, place_of

MESSAGES_AT_ONCE = 500
BYTES_AT_ONCE = 4_000_000
"""Limits of one batch: the messages, and the bytes of their payloads, folded before rows become digests."""


class Expected:
    """Accumulates the expected state of one entity from its messages, given oldest first."""

    def __init__(
        self, topic: str, key: str, *, segment_size: int = DEFAULT_SEGMENT_SIZE, zone: tzinfo = UTC
    ) -> None:
        self._topic, self._key, self._segment_size, self._zone = topic, key, segment_size, zone
        self._head: Head | None = None
        self._rows: dict[int, dict[bytes, bytes]] = {}
        """Segment → place → digest of the row. By segment, because a tombstone applies to one."""
        self._fold = self._new_fold()
        self._pending = self._bytes = 0
        self.messages = 0
        self.partition: int | None = None
        self.purged_at: int | None = None
        """The offset of the last purge. Nothing from before it remains."""
        self.appended_at: int | None = None
        """The offset of the first message, where it appends event 1. Even then an earlier message that was
        not given, a delete, may have created the head."""

    def apply(self, message: Message) -> None:
        """Applies the next message. Raises JournalError, and changes nothing, where it cannot be applied."""
        action = message.action
        if isinstance(action, Mark):
            return
        self._fold.apply(message)
        if isinstance(action, Append):
            self._bytes += len(action.payload)
        if isinstance(action, Purge):
            self.purged_at = message.offset
        elif isinstance(action, Append) and self.messages == 0 and action.first == 1:
            self.appended_at = message.offset
        self.partition = message.partition
        self.messages += 1
        self._pending += 1
        if self._pending >= MESSAGES_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            self._finish_batch()

    @property
    def segments(self) -> set[int]:
        """The segments of ``journal`` that should have rows."""
        self._finish_batch()
        return set(self._rows)

    def conclude(self) -> Visible:
        """Returns the state that a reader should see, and releases it: call this once."""
        self._finish_batch()
        rows = self._rows.popitem()[1] if self._rows else {}
        while self._rows:
            rows.update(self._rows.popitem()[1])
        return Visible(self._head, rows)

    def _new_fold(self) -> Fold:
        return Fold(self._topic, self._key, self._head, segment_size=self._segment_size, zone=self._zone)

    def _finish_batch(self) -> None:
        if not self._pending:
            return
        effect = self._fold.effect()
        self._remove(effect)
        for row in effect.rows:
            rows = self._rows.setdefault(row.segment, {})
            place, digest = place_of(row.seq_nr, row.timestamp), digest_of(row)
            old = rows.get(place)
            rows[place] = digest if old is None else overwritten(old, digest)
        self._head = effect.head
        self._fold, self._pending, self._bytes = self._new_fold(), 0, 0

    def _remove(self, effect: Effect) -> None:
        """Applies the tombstones to the rows of earlier batches.

        The effect's own rows are added afterwards.
        """
        if effect.head_tombstone is not None:
            self._rows.clear()
        for segment, up_to, _ in effect.tombstones:
            rows = self._rows.pop(segment, {})
            if up_to is not None and rows:
                last = place_of(up_to, 0)[:8]
                self._rows[segment] = {place: rows[place] for place in rows if place[:8] > last}
