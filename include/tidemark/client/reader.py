"""Reads an entity from two sources: Cassandra up to the pointer, Kafka from there to a mark.

The mark says where the answer ends: everything sent before it is in the answer. The pointer says which place
has what: rows of offsets beyond it may be there or not, in any order, so they are left to Kafka. The tail's
headers are folded before the first event is handed out, so deletes and purges count for all of them.

Cassandra goes on meanwhile. Rows can only vanish by a delete or a purge, and those are in Kafka first: when
an event is missing, the partition is read on up to a second mark. If there is one, the answer would not be
consistent: the read starts again, or raises where events were returned already. Decides everything
and reads nothing by itself.
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
    deletes_behind,
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
"""How often a read that was overtaken begins anew."""
KEPT_BYTES = 1_000_000
"""Of the tail's appends, so that a short tail is read once; a longer one is read a second time."""

BYTES_EACH = 500
"""What keeping an append takes besides its payload."""


class EntityStanding(NamedTuple):
    """The state of an entity."""

    seq_nr: int
    """The number of its last event, deleted or not."""
    delete_to: int
    """The last number that a reader does not get; 0 for none."""
    segment_size: int
    partition: int
    """The partition of its key."""
    kept: int | None
    """The partition that the tables have it from; None when they do not have it."""


class Tail(Protocol):
    """A journal's partitions."""

    def actions(self, key: str, partition: int, first: int, mark: int) -> Iterator[tuple[int, Action]]:
        """An entity's actions from an offset on up to, but without, the mark; or ``OffsetGone``."""

    def end(self, key: str, partition: int) -> int:
        """The next offset of a partition."""


class _Overtaken(Exception):
    """What is read was changed after the mark; says how."""


_REMOVED = "it was deleted from or purged"
_UNDER_WAY = "it was replicated"
_REPLICATED = "it was replicated, and left Kafka,"


def _went_back(info: HeadInfo, head: Head | None) -> bool:
    """Whether numbers of the tail are known not to lie above all that were there before them."""
    if not isinstance(info, Appended):
        return False
    is_older = head is not None and head.offset < info.offset  # else it has some of the tail already
    return not info.is_ordered or (is_older and head is not None and info.lowest <= head.seq_nr)


def _is_tangled(info: HeadInfo, head: Head, seq_nr: int) -> bool:
    """Whether an event of the tables lies where the tail has or may remove some: then numbers went back."""
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
        """``segment_size`` is that of entities which the tables do not have yet."""
        self._topic, self._tables, self._tail, self._mark = topic, tables, tail, mark
        self._guard, self._segment_size = guard, segment_size
        self._rows = TableEvents(topic, tables, self._check, correlate=correlate)

    def read(self, key: str, first: int) -> Generator[JournalEvent]:
        """The entity's events from a number on, as they are at a moment after the call."""
        expected, attempts = first, 0
        while True:
            try:
                for event in self._read_once(key, first):
                    expected, attempts = event.seq_nr + 1, ATTEMPTS
                    yield event
                return
            except _Overtaken as overtaken:
                attempts += 1
                if attempts >= ATTEMPTS:  # or events were handed out
                    raise ChangedWhileReading(self._topic, key, str(overtaken), expected) from None

    def standing(self, key: str) -> EntityStanding | None:
        """The entity's state; None where there is no such entity."""
        attempts = 0
        while True:
            try:
                return self._standing_once(key)
            except _Overtaken as overtaken:
                attempts += 1
                if attempts == ATTEMPTS:
                    raise ChangedWhileReading(self._topic, key, str(overtaken), 1) from None

    def _standing_once(self, key: str) -> EntityStanding | None:
        view = self._look(key)
        head = self._head(view) if needs_tables(view.info) else None
        last = last_seq_nr(view.info, head)
        if last is None:
            return None
        size = head.segment_size if head else self._segment_size
        kept = head.partition if head else None
        return EntityStanding(last, hidden_to(view.info, head), size, view.partition, kept)

    def _look(self, key: str) -> ReadView:
        """Set the mark, and fold what is before it and not yet in the tables."""
        partition, mark = self._mark(key)
        confirm = self._guard.ask(key)
        try:
            view = self._look_before(key, partition, mark)
        except ClientError:
            confirm()  # what was found may be explained by a topic that is another one
            raise
        confirm()
        return view

    def _look_before(self, key: str, partition: int, mark: int) -> ReadView:
        pointer = self._tables.pointer(key, partition)
        view = ReadView(key, partition, mark, pointer, EMPTY, [], mark + 1)
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
            yield from self._tail.actions(view.key, view.partition, first, mark)
        except OffsetGone:
            # Replication may have passed it, and Kafka dropped it, since the pointer was read.
            pointer = self._tables.pointer(view.key, view.partition)
            if pointer is not None and pointer > view.reached:
                raise _Overtaken(_REPLICATED) from None
            raise TailLost(self._topic, view.key, view.partition, view.pointer, first) from None

    def _read_once(self, key: str, first: int) -> Iterator[JournalEvent]:
        view = self._look(key)
        head = self._head(view) if needs_tables(view.info) else None
        expected = max(first, hidden_to(view.info, head) + 1)
        if _went_back(view.info, head):
            yield from self._read_folded(view, head, expected)
            return
        if head is not None:
            # One further: where the tail's events end with a segment, rows of the next one may follow them.
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
                    continue  # deleted, or not asked for
                if event.seq_nr > expected and not is_joined:
                    self._check(view)
                is_joined, expected = True, event.seq_nr + 1
                yield event
        self._check_end(view, head, expected)

    def _head_before(self, view: ReadView, head: Head | None) -> Head | None:
        """The head as it was at the pointer, as far as the fold can tell the difference.

        A run under way may have brought it further. Appends may be folded onto it again; what a delete
        removes, where numbers went back, depends on how far the entity had come.
        """
        if head is None:
            return None
        if head.offset > view.reached:
            if view.pointer is None:
                return None
            if deletes_behind(view.info):
                raise _Overtaken(_UNDER_WAY)
        return head._replace(partition=view.partition, offset=view.reached)

    def _check_end(self, view: ReadView, head: Head | None, expected: int) -> None:
        if needs_tables(view.info):
            reached = (last_seq_nr(view.info, head) or 0, head.seq_nr if head else 0)
            if expected <= max(reached):
                self._check(view)

    def _read_folded(self, view: ReadView, head: Head | None, first: int) -> Iterator[JournalEvent]:
        """As the tables will have it: numbers were used twice, or went back. The tail is held in memory."""
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
        head = self._tables.head(view.key)
        if head is None:
            if misses_head(view.info):
                self._check(view)
            return None
        # Of another partition, because the topic got more of them, its offset says nothing.
        return head if head.partition == view.partition else head._replace(offset=-1)

    def _appends(self, view: ReadView) -> Iterator[tuple[int, Append]]:
        """The tail's appends, those kept or those read a second time."""
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
        """Make sure that nothing of what was read so far can have been removed since the mark."""
        partition, mark = self._mark(view.key)
        self._guard.ask(view.key)()
        if partition != view.partition:
            raise _Overtaken("its topic got more partitions")
        if view.checked < mark:
            for _, action in self._actions(view, view.checked, mark):
                if isinstance(action, Delete | Purge):
                    raise _Overtaken(_REMOVED)
        view.checked = mark + 1
