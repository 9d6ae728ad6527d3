"""What a history makes of one entity: its visible state, from nothing but its messages.

The real fold does it, piece by piece, so that what has to be kept is a digest per row and never a payload.
Knows where the incarnation that is left may have begun; whether that can be proved is not decided here.
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
"""How many messages, and how much in them, is folded before rows become digests."""


class Expected:
    """One entity while its messages come, oldest first."""

    def __init__(
        self, topic: str, key: str, *, segment_size: int = DEFAULT_SEGMENT_SIZE, zone: tzinfo = UTC
    ) -> None:
        self._topic, self._key, self._segment_size, self._zone = topic, key, segment_size, zone
        self._head: Head | None = None
        self._rows: dict[int, dict[bytes, bytes]] = {}
        """Digests by place, by segment: what a tombstone goes by."""
        self._fold = self._begin()
        self._waiting = self._bytes = 0
        self.messages = 0
        self.partition: int | None = None
        self.purged_at: int | None = None
        """The offset of the last purge: whatever was before, it left nothing."""
        self.appended_at: int | None = None
        """The offset of the first message, where that appends event 1. An earlier message that is not here, a
        delete, may have made the head nevertheless."""

    def apply(self, message: Message) -> None:
        """Take the next message; one that cannot be applied raises, and is as if it had not come."""
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
        self._waiting += 1
        if self._waiting >= MESSAGES_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            self._settle()

    @property
    def segments(self) -> set[int]:
        """The segments of ``journal`` that should have rows."""
        self._settle()
        return set(self._rows)

    def conclude(self) -> Visible:
        """What a reader should see. Nothing of it is kept here."""
        self._settle()
        rows = self._rows.popitem()[1] if self._rows else {}
        while self._rows:
            rows.update(self._rows.popitem()[1])
        return Visible(self._head, rows)

    def _begin(self) -> Fold:
        return Fold(self._topic, self._key, self._head, segment_size=self._segment_size, zone=self._zone)

    def _settle(self) -> None:
        if not self._waiting:
            return
        effect = self._fold.effect()
        self._remove(effect)
        for row in effect.rows:
            rows = self._rows.setdefault(row.segment, {})
            place, digest = place_of(row.seq_nr, row.timestamp), digest_of(row)
            old = rows.get(place)
            rows[place] = digest if old is None else overwritten(old, digest)
        self._head = effect.head
        self._fold, self._waiting, self._bytes = self._begin(), 0, 0

    def _remove(self, effect: Effect) -> None:
        """Rows that were there before. What the effect itself has left is not among them yet."""
        if effect.head_tombstone is not None:
            self._rows.clear()
        for segment, up_to, _ in effect.tombstones:
            rows = self._rows.pop(segment, {})
            if up_to is not None and rows:
                last = place_of(up_to, 0)[:8]
                self._rows[segment] = {place: rows[place] for place in rows if place[:8] > last}
