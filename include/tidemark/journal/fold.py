"""The fold: applies the actions of one entity to its head, one after the other, and collects the writes.

It is kafka-journal's replication without its batching, so the result does not depend on how a history is cut
into runs. It reads no clock and no table: the head is a parameter and the writes are the result. Two rules
differ from kafka-journal: ``delete_to`` never decreases, and a row at or below it is never written.
"""

from collections.abc import Iterable
from datetime import UTC, tzinfo

from tidemark.journal.action import Append, Delete, Mark
from tidemark.journal.codec.expire_after import expire_on
from tidemark.journal.codec.payload import decode
from tidemark.journal.effect import Duplicate, Effect, HeadTombstone, Message, Row, Tombstone
from tidemark.journal.errors import JournalError, OutOfOrder, Repartitioned, Unbounded, Undecodable
from tidemark.journal.events import record_metadata
from tidemark.journal.head import Head, record_id
from tidemark.journal.segments import DEFAULT_SEGMENT_SIZE, head_segment, head_segments, row_segment

MOST_SEGMENTS = 100_000
"""The most segments that one delete or purge may cover: a thousand million events at the default size."""

_NEVER = -(2**63)


class Fold:
    """The fold of one entity's messages.

    An action that cannot be applied raises and changes nothing: ``effect`` then still returns the writes of
    the messages before it.
    """

    __slots__ = (
        "_applied",
        "_drained",
        "_dropped",
        "_duplicates",
        "_events",
        "_head",
        "_head_tombstone",
        "_hidden",
        "_key",
        "_partial",
        "_rows",
        "_segment_size",
        "_skipped",
        "_topic",
        "_whole",
        "_write_time",
        "_zone",
    )

    def __init__(
        self,
        topic: str,
        key: str,
        head: Head | None,
        *,
        segment_size: int = DEFAULT_SEGMENT_SIZE,
        zone: tzinfo = UTC,
    ) -> None:
        self._topic = topic
        self._key = key
        self._head = head
        self._segment_size = segment_size
        self._zone = zone
        self._rows: list[Row] = []
        self._drained: set[int] = set()
        # Tombstones by segment. A segment can need one for all its rows and a later one for some of them. Of
        # two partial tombstones the later one always covers the earlier.
        self._whole: dict[int, int] = {}
        self._partial: dict[int, tuple[int, int]] = {}
        self._head_tombstone: HeadTombstone | None = None
        self._write_time = _NEVER
        self._applied = 0
        self._skipped = 0
        self._events = 0
        self._hidden = 0
        self._duplicates: list[Duplicate] = []
        self._dropped: list[int] = []

    def apply(self, message: Message) -> None:
        """Applies the next message of the entity.

        A mark, or an action that the head contains, changes nothing. Raises Undecodable, Repartitioned,
        OutOfOrder or Unbounded, and JournalError for another entity's message.
        """
        action = message.action
        kind = type(action)
        if kind is Mark:
            return
        if action.key != self._key:
            raise JournalError(
                f"a message of entity {action.key!r} in the fold of {self._key!r}: nothing was applied"
            )
        if message.write_time <= self._write_time:
            raise OutOfOrder(self._topic, self._key, self._write_time, message.write_time)
        head = self._head
        if head is not None:
            if message.partition != head.partition:
                raise Repartitioned(self._topic, self._key, head.partition, message.partition, message.offset)
            # kafka-journal keeps the head's offset while it purges, so a head at the offset of a purge means
            # that the purge did not finish.
            if message.offset < head.offset or (message.offset == head.offset and kind in (Append, Delete)):
                self._skipped += 1
                return
        if isinstance(action, Append):
            self._append(message, action, head)
        elif isinstance(action, Delete):
            self._delete(message, action, head)
        else:
            self._purge(message, head)
        self._applied += 1
        self._write_time = message.write_time

    def _append(self, message: Message, action: Append, head: Head | None) -> None:
        _, partition, offset, write_time, bound_at, _ = message
        try:
            decoded = decode(action.form, action.payload)
        except Undecodable as error:
            raise error.at(partition, offset, message.id) from None
        events, metadata = decoded.events, decoded.metadata
        last = events[-1].seq_nr
        expire_after = None if metadata.expire_after is None else metadata.expire_after.nanos
        expires = None if expire_after is None else expire_on(bound_at, expire_after, self._zone)
        now = bound_at // 1000
        if head is None:
            previous = 0
            head = Head(
                head_segment(self._key),
                partition,
                offset,
                self._segment_size,
                last,
                events[0].seq_nr - 1 or None,
                now,
                now,
                expire_after,
                expires,
                record_id(self._topic, partition, self._key, offset),
                action.origin,
            )
        else:
            previous = head.seq_nr
            head = Head(
                head.segment,
                partition,
                offset,
                head.segment_size,
                last,
                head.delete_to,
                head.created,
                now,
                expire_after,
                expires,
                head.record_id,
                head.origin,
            )
        self._head = head
        self._events += len(events)
        if decoded.metadata_dropped:
            self._dropped.append(offset)

        topic, key, rows, size, incarnation = (
            self._topic,
            self._key,
            self._rows,
            head.segment_size,
            head.record_id,
        )
        deleted = head.delete_to or 0
        column = record_metadata(action.metadata, metadata)
        for seq_nr, tags, payload_type, payload in events:
            if seq_nr <= previous:
                self._duplicates.append(Duplicate(seq_nr, offset))
            else:
                previous = seq_nr
            if seq_nr <= deleted:
                self._hidden += 1
                continue
            rows.append(
                Row(
                    key,
                    topic,
                    (seq_nr - 1) // size,
                    seq_nr,
                    partition,
                    offset,
                    action.timestamp,
                    action.origin,
                    action.version,
                    incarnation,
                    tags,
                    column,
                    payload_type,
                    payload if type(payload) is str else None,
                    payload if type(payload) is bytes else None,
                    action.headers,
                    write_time,
                )
            )

    def _delete(self, message: Message, action: Delete, head: Head | None) -> None:
        now = message.bound_at // 1000
        if head is None:
            self._head = Head(
                head_segment(self._key),
                message.partition,
                message.offset,
                self._segment_size,
                action.to,
                action.to,
                now,
                now,
                origin=action.origin,
            )
            return
        seq_nr, deleted = head.seq_nr, head.delete_to or 0
        first, last = deleted + 1, min(action.to, seq_nr)
        if first <= last:
            segments = self._checked_range(
                row_segment(first, head.segment_size), row_segment(last, head.segment_size)
            )
            for segment in segments if last == seq_nr else segments[:-1]:
                self._whole[segment] = message.write_time
                self._partial.pop(segment, None)
            if last < seq_nr:
                self._partial[segments[-1]] = (last, message.write_time)
        reached = max(deleted, seq_nr)
        self._head = head._replace(
            offset=message.offset,
            seq_nr=reached,
            delete_to=max(deleted, min(action.to, reached)),
            updated=now,
        )

    def _purge(self, message: Message, head: Head | None) -> None:
        """Deletes the segments in which the entity can have rows, one more at either end, and the head.

        Without a head too, because an earlier attempt may have deleted the head and left rows behind. The
        segments of this run's appends are known; of the others, the first two are the likeliest.
        """
        places = head_segments(self._key)
        segments: Iterable[int]
        if head is None:
            segments = range(2)
        else:
            segments = self._segments_around(head)
            places = tuple(dict.fromkeys((*places, head.segment)))
        rows = (row.segment for row in self._rows)
        touched = (*segments, *self._drained, *rows, *self._whole, *self._partial)
        self._whole = dict.fromkeys(touched, message.write_time)
        self._partial.clear()
        self._rows.clear()
        self._head = None
        self._head_tombstone = HeadTombstone(places, message.write_time)

    def _segments_around(self, head: Head) -> Iterable[int]:
        """The segments in which a head's entity can have rows, and one more at either end."""
        deleted, size = head.delete_to or 1, head.segment_size
        first, last = row_segment(deleted, size), row_segment(head.seq_nr, size)
        if deleted <= head.seq_nr:
            return self._checked_range(max(first - 1, 0), last + 1)
        # There are no rows between the two, because rows at or below ``delete_to`` are never written. The gap
        # is unbounded after a delete that was applied twice, so the span between them is left out.
        return sorted({s + d for s in (first, last) for d in (-1, 0, 1) if s + d >= 0})

    def _checked_range(self, first: int, last: int) -> range:
        if last - first >= MOST_SEGMENTS:
            raise Unbounded(self._topic, self._key, first, last, MOST_SEGMENTS)
        return range(first, last + 1)

    def drain(self) -> list[Row] | None:
        """Removes the collected rows from the effect and returns them; None where there are tombstones.

        The caller may write them at any time before the effect: the tombstone of a later message hides them.
        Once there are tombstones, rows stay in the effect, because tombstones have to be written first.
        """
        if self._whole or self._partial or self._head_tombstone:
            return None
        rows, self._rows = self._rows, []
        self._drained.update([row.segment for row in rows])
        return rows

    def effect(self) -> Effect:
        """The writes of the messages so far.

        To continue in batches, write them and start a new fold at ``head``.
        """
        whole, partial, rows = self._whole, self._partial, self._rows
        tombstones: tuple[Tombstone, ...] = ()
        if whole or partial:
            tombstones = (
                *(Tombstone(segment, None, time) for segment, time in whole.items()),
                *(Tombstone(segment, up_to, time) for segment, (up_to, time) in partial.items()),
            )
            # Rows that a later delete of this run covers need no write.
            rows = [row for row in rows if not self._covers(row)]
        return Effect(
            self._topic,
            self._key,
            tombstones,
            tuple(rows),
            self._head_tombstone,
            self._head,
            None if self._write_time == _NEVER else self._write_time,
            self._applied,
            self._skipped,
            self._events,
            tuple(self._duplicates),
            self._hidden,
            tuple(self._dropped),
        )

    def _covers(self, row: Row) -> bool:
        if self._whole.get(row.segment, _NEVER) > row.write_time:
            return True
        # No need to compare write times: rows appended after that delete are above ``up_to``.
        up_to, _ = self._partial.get(row.segment, (0, 0))
        return row.seq_nr <= up_to


def fold(
    topic: str,
    key: str,
    head: Head | None,
    messages: Iterable[Message],
    *,
    segment_size: int = DEFAULT_SEGMENT_SIZE,
    zone: tzinfo = UTC,
) -> Effect:
    """Applies a run of one entity's messages, oldest first, to its head and returns the writes.

    ``head`` is None for an entity without one. ``segment_size`` applies to new heads; an existing head keeps
    its own. ``zone`` is the time zone of the dates in ``expire_on``. Raises as ``Fold.apply`` does.
    """
    entity = Fold(topic, key, head, segment_size=segment_size, zone=zone)
    for message in messages:
        entity.apply(message)
    return entity.effect()
