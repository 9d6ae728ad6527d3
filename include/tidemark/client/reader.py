"""Reads an entity from two sources: Cassandra up to the pointer, Kafka from the pointer to a mark.

The mark is the end of the result: the result has everything that was sent before it. Of the offsets beyond
the pointer Cassandra may have any subset of rows, so these rows are ignored and read from Kafka. The headers
of the tail are folded before the first event is returned, because a delete or purge in the tail applies to
earlier events.

Replication continues during a read. Rows are removed only by a delete or a purge, which is in Kafka first. So
where an event is missing, the partition is read up to a second mark. A delete or purge in that range makes
the result inconsistent: the read is retried, or raises where events were returned already. All I/O is done
by the tables, the tail and the sender that are passed in.
"""

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, Protocol

from tidemark.client.errors import (
    BadRecord,
    ChangedWhileReading,
    ClientError,
    PointerBeyondEnd,
    TailLost,
)
from tidemark.client.events import JournalEvent, events_of_append
from tidemark.client.table_events import ReadableTables, ReadView, TableEvents
from tidemark.client.tail.head_cache import TailPlace
from tidemark.client.tail_overlay import Overlay
from tidemark.client.topic_identity import Guard
from tidemark.journal.action import Action, Append, Delete, Purge
from tidemark.journal.effect import Message
from tidemark.journal.errors import JournalError, Undecodable
from tidemark.journal.fold import Fold
from tidemark.journal.head import Head
from tidemark.journal.head_info import (
    EMPTY,
    Appended,
    HeadInfo,
    deletes_by_head,
    has_deletes,
    hidden_to,
    last_seq_nr,
    misses_head,
    needs_tables,
    take,
)
from tidemark.journal.segments import DEFAULT_SEGMENT_SIZE
from tidemark.kafka.errors import OffsetGone
from tidemark.kafka.producer import Placed

ATTEMPTS = 5
"""The most attempts of a read that is made inconsistent by a concurrent change."""
KEPT_BYTES = 1_000_000
"""Bytes of the tail's appends that are kept in memory. A longer tail is read from Kafka a second time."""

BYTES_EACH = 500
"""Bytes of memory that an append takes besides its payload."""


class EntityStanding(NamedTuple):
    """The state of an entity."""

    seq_nr: int
    """The sequence number of the last event, deleted or not."""
    delete_to: int
    """The highest deleted sequence number; 0 where nothing was deleted."""
    segment_size: int
    partition: int
    """The partition that the key leads to now."""
    kept: int | None
    """The partition that the tables' rows came from; None where the tables do not have the entity."""


class Tail(Protocol):
    """The partitions of a journal's topic."""

    def actions(self, key: str, place: TailPlace, first: int, mark: int) -> Iterator[tuple[int, Action]]:
        """The entity's actions from offset ``first`` to ``mark``, exclusive. Raises ``OffsetGone``.

        Marks may be left out.
        """

    def end(self, key: str, partition: int) -> int:
        """The end offset of the partition: that of its next record."""


class _Overtaken(Exception):
    """A change after the mark made the result inconsistent; the text describes the change."""


_REMOVED = "it was deleted from or purged"
_UNDER_WAY = "it was replicated"
_REPLICATED = "it was replicated, and left Kafka,"


def _went_back(info: HeadInfo, head: Head | None) -> bool:
    """Whether the tail has an append whose numbers are not above all earlier ones."""
    if not isinstance(info, Appended):
        return False
    is_older = head is not None and head.offset < info.offset  # else the head includes part of the tail
    return not info.is_ordered or (is_older and head is not None and info.lowest <= head.seq_nr)


def _is_tangled(info: HeadInfo, head: Head, seq_nr: int) -> bool:
    """Whether the tail has, or may delete, this number of the tables: then numbers went back."""
    if isinstance(info, Appended) and seq_nr >= info.lowest:
        return True
    return seq_nr > head.seq_nr and has_deletes(info)


class EntityReader:
    """Reads the entities of one topic."""

    def __init__(
        self,
        topic: str,
        tables: ReadableTables,
        tail: Tail,
        mark: Callable[[str], Placed],
        guard: Guard,
        *,
        correlate: bool = True,
        segment_size: int = DEFAULT_SEGMENT_SIZE,
    ) -> None:
        """Connects to nothing.

        Args:
            topic: The Kafka topic.
            tables: The journal's tables.
            tail: The partitions of the topic.
            mark: Sends a mark for a key.
            guard: Checks that the topic was not recreated.
            correlate: False returns rows of other incarnations too.
            segment_size: The segment size of entities that the tables do not have yet.
        """
        self._topic, self._tables, self._tail, self._mark = topic, tables, tail, mark
        self._guard, self._segment_size = guard, segment_size
        self._rows = TableEvents(topic, tables, self._check, correlate=correlate)

    def read(self, key: str, first: int) -> Generator[JournalEvent]:
        """The entity's events from number ``first`` on, as they were at one moment after the call.

        Raises ``ChangedWhileReading`` where the result became inconsistent and could not be read again.
        """
        expected, attempts = first, 0
        while True:
            try:
                for event in self._read_once(key, first):
                    expected, attempts = event.seq_nr + 1, ATTEMPTS
                    yield event
                return
            except _Overtaken as overtaken:
                attempts += 1
                if attempts >= ATTEMPTS:  # also where events were returned: that sets ``attempts``
                    raise ChangedWhileReading(self._topic, key, str(overtaken), expected) from None

    def standing(self, key: str) -> EntityStanding | None:
        """The entity's state; None where the entity does not exist."""
        attempts = 0
        while True:
            try:
                return self._standing_once(key)
            except _Overtaken as overtaken:
                attempts += 1
                if attempts == ATTEMPTS:
                    raise ChangedWhileReading(self._topic, key, str(overtaken), 1) from None

    def _standing_once(self, key: str) -> EntityStanding | None:
        view = self._open_view(key)
        head = self._head(view) if needs_tables(view.info) else None
        last = last_seq_nr(view.info, head)
        if last is None:
            return None
        size = head.segment_size if head else self._segment_size
        kept = head.partition if head else None
        return EntityStanding(last, hidden_to(view.info, head), size, view.partition, kept)

    def _open_view(self, key: str) -> ReadView:
        """Sends the mark, and folds the tail before it."""
        partition, mark = self._mark(key)
        confirm = self._guard.ask(key)
        try:
            pointer = self._tables.pointer(key, partition)
        except ClientError:
            confirm()  # a recreated topic is the better explanation of the error
            raise
        # The head may be read at any time after the pointer; here it arrives while the tail is read.
        head = self._tables.ask_head(key)
        # What was read of the topic before is valid only for the same topic.
        view = ReadView(key, partition, mark, pointer, confirm(), head, EMPTY, [], mark + 1)
        if view.reached >= mark:
            end = self._tail.end(key, partition)
            if view.reached >= end:
                raise PointerBeyondEnd(self._topic, key, partition, view.reached, end)
            view.checked = view.reached + 1
        elif view.reached < mark - 1:
            self._fold_tail(view)
        return view

    def _fold_tail(self, view: ReadView) -> None:
        size = 0
        for offset, action in self._actions(view, view.reached + 1, view.mark):
            view.info = take(view.info, action, offset)
            if isinstance(action, Purge):
                view.kept, size = [], 0
            elif isinstance(action, Append) and view.kept is not None:
                size += BYTES_EACH + len(action.payload)
                view.kept.append((offset, action))
                if size > KEPT_BYTES:
                    view.kept = None

    def _actions(self, view: ReadView, first: int, mark: int) -> Iterator[tuple[int, Action]]:
        try:
            yield from self._tail.actions(view.key, view.place, first, mark)
        except OffsetGone:
            # Since the pointer was read, the record may have been replicated and then removed by Kafka.
            pointer = self._tables.pointer(view.key, view.partition)
            if pointer is not None and pointer > view.reached:
                raise _Overtaken(_REPLICATED) from None
            raise TailLost(self._topic, view.key, view.partition, view.pointer, first) from None

    def _read_once(self, key: str, first: int) -> Iterator[JournalEvent]:
        view = self._open_view(key)
        head = self._head(view) if needs_tables(view.info) else None
        expected = max(first, hidden_to(view.info, head) + 1)
        if _went_back(view.info, head):
            yield from self._read_folded(view, head, expected)
            return
        if head is not None:
            # One more: where the tail's last event ends a segment, rows of the next segment may follow.
            reach = (last_seq_nr(view.info, head) or 0) + isinstance(view.info, Appended)
            for event in self._rows.events(view, head, expected, reach):
                if _is_tangled(view.info, head, event.seq_nr):
                    yield from self._read_folded(view, head, expected)
                    return
                expected = event.seq_nr + 1
                yield event
        is_joined = not needs_tables(view.info)
        for offset, append in self._appends(view):
            if append.last < expected:
                continue
            for event in self._events(view, offset, append):
                if event.seq_nr < expected:
                    continue  # deleted, or below ``first``
                if event.seq_nr > expected and not is_joined:
                    self._check(view)
                is_joined, expected = True, event.seq_nr + 1
                yield event
        self._check_end(view, head, expected)

    def _head_before(self, view: ReadView, head: Head | None) -> Head | None:
        """The head as it was at the pointer, as far as the fold depends on it.

        A running delivery may have moved the head beyond the pointer. Folding appends a second time is
        idempotent. Where numbers went back, the effect of a delete depends on the head's last number, so the
        read raises ``_Overtaken``.
        """
        if head is None:
            return None
        if head.offset > view.reached:
            if view.pointer is None:
                return None
            if deletes_by_head(view.info, head):
                raise _Overtaken(_UNDER_WAY)
        return head._replace(partition=view.partition, offset=view.reached)

    def _check_end(self, view: ReadView, head: Head | None, expected: int) -> None:
        if needs_tables(view.info):
            reached = (last_seq_nr(view.info, head) or 0, head.seq_nr if head else 0)
            if expected <= max(reached):
                self._check(view)

    def _read_folded(self, view: ReadView, head: Head | None, first: int) -> Iterator[JournalEvent]:
        """Reads an entity whose numbers were used twice or went back, as the tables will have it.

        The tail is folded by the writer's rules, and is held in memory.
        """
        known = self._head_before(view, head)
        fold = Fold(self._topic, view.key, known, segment_size=self._segment_size)
        for offset, action in self._actions(view, view.reached + 1, view.mark):
            try:
                fold.apply(Message(offset, view.partition, offset, offset, 0, action))
            except JournalError as error:
                reason = error.reason if isinstance(error, Undecodable) else str(error)
                raise BadRecord(self._topic, view.key, view.partition, offset, reason) from None
        effect, expected = fold.effect(), first
        if effect.head is not None:
            overlay = Overlay(effect)
            for event in self._rows.events(view, effect.head, first, effect.head.seq_nr, overlay):
                expected = event.seq_nr + 1
                yield event
        self._check_end(view, head, expected)

    def _head(self, view: ReadView) -> Head | None:
        head = view.head()
        if head is None:
            if misses_head(view.info):
                self._check(view)
            return None
        # The offset of another partition (the topic got more partitions) cannot be compared.
        return head if head.partition == view.partition else head._replace(offset=-1)

    def _appends(self, view: ReadView) -> Iterator[tuple[int, Append]]:
        """The tail's appends, from memory or read from Kafka a second time."""
        if not isinstance(view.info, Appended):
            return
        if view.kept is not None:
            yield from view.kept
            return
        for offset, action in self._actions(view, view.info.offset, view.mark):
            if isinstance(action, Append):
                yield offset, action

    def _events(self, view: ReadView, offset: int, append: Append) -> Iterator[JournalEvent]:
        try:
            yield from events_of_append(append, view.partition, offset)
        except Undecodable as error:
            raise BadRecord(self._topic, view.key, view.partition, offset, error.reason) from None

    def _check(self, view: ReadView) -> None:
        """Raises ``_Overtaken`` where a delete or purge since the mark may have removed rows."""
        partition, mark = self._mark(view.key)
        topic_id = self._guard.ask(view.key)()
        if partition != view.partition:
            raise _Overtaken("its topic got more partitions")
        if topic_id != view.topic_id:
            raise _Overtaken("its topic was recreated")
        if view.checked < mark:
            for _, action in self._actions(view, view.checked, mark):
                if isinstance(action, Delete | Purge):
                    raise _Overtaken(_REMOVED)
        view.checked = mark + 1
