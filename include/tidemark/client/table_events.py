"""An entity's events from the tables, segment by segment, for one read.

Rows beyond the pointer are left out, because the tail has them; so are rows of another incarnation. A gap in
the numbers is crossed only after the reader has checked that it existed at the mark. Reads from
``ReadableTables`` and decides nothing about the tail.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from tidemark.client.errors import DuplicateSeqNr, GapTooWide
from tidemark.client.events import JournalEvent, event_of_row
from tidemark.client.tail.head_cache import TailPlace
from tidemark.client.tail_overlay import Overlay, TailRow
from tidemark.journal.action import Append
from tidemark.journal.head import Head
from tidemark.journal.head_info import HeadInfo, needs_tables
from tidemark.journal.segments import row_segment

MOST_EMPTY_SEGMENTS = 1_000
"""The most empty segments that are searched across a gap in the numbers."""

events = structlog.get_logger()


class ReadableTables(Protocol):
    """A journal's tables."""

    def pointer(self, key: str, partition: int) -> int | None:
        """The offset up to which everything of the partition is there."""

    def ask_head(self, key: str) -> Callable[[], Head | None]:
        """Requests an entity's head, wherever it is. The result waits for it."""

    def rows(self, key: str, segment: int, first: int) -> Iterator[Sequence[Any]]:
        """The rows of one segment from a number on, in order, page by page."""


@dataclass(slots=True)
class ReadView:
    """The state of one read."""

    key: str
    partition: int
    mark: int
    pointer: int | None
    topic_id: str | None
    """The topic's id after the mark; None where this Kafka has no ids."""
    head: Callable[[], Head | None]
    """Waits for the entity's head, which was requested after the pointer."""
    info: HeadInfo
    kept: list[tuple[int, Append]] | None
    """The tail's appends; None where they are too large to keep in memory."""
    checked: int
    """The offset up to which ``info`` has every delete and purge."""
    has_warned: bool = False

    @property
    def reached(self) -> int:
        """The offset up to which the tables have everything; −1 where they have nothing."""
        return -1 if self.pointer is None else self.pointer

    @property
    def place(self) -> TailPlace:
        """The partition as this read knows it."""
        return TailPlace(self.partition, self.topic_id, self.reached)

    def is_beyond(self, row: Any) -> bool:
        """Whether a row comes from beyond the pointer."""
        return bool(row.partition == self.partition and row.offset > self.reached)


class TableEvents:
    """The events that one topic's tables have."""

    def __init__(
        self, topic: str, tables: ReadableTables, check: Callable[[ReadView], None], *, correlate: bool
    ) -> None:
        """``check`` raises when what was read may have been removed since the mark.

        ``correlate=False`` hands out rows of other incarnations too.
        """
        self._topic, self._tables = topic, tables
        self._check, self._correlate = check, correlate

    def events(
        self, view: ReadView, head: Head, first: int, reach: int, overlay: Overlay | None = None
    ) -> Iterator[JournalEvent]:
        """Segment by segment up to a number, and beyond it for as long as rows follow one another."""
        size, following, expected = head.segment_size, first, first
        segment, last, passed = row_segment(first, size), row_segment(max(reach, 1), size), 0
        while True:
            is_empty = True
            for page in self._pages(view, segment, following, overlay):
                is_checked = False
                for row in page:
                    is_empty, following = False, row.seq_nr + 1
                    if not self._is_visible(view, head, row):
                        continue
                    if row.seq_nr < expected:
                        raise DuplicateSeqNr(
                            self._topic, view.key, row.seq_nr, expected, row.partition, row.offset
                        )
                    if row.seq_nr > expected and not is_checked:
                        self._check(view)
                        is_checked = True
                    expected = row.seq_nr + 1
                    yield event_of_row(row)
            passed = passed + 1 if is_empty else 0
            if passed > MOST_EMPTY_SEGMENTS:
                if segment > row_segment(max(head.seq_nr, 1), size):
                    return  # the rest is the tail's
                raise GapTooWide(self._topic, view.key, expected, head.seq_nr, size)
            if segment >= last and row_segment(following, size) <= segment:
                return
            segment = max(segment + 1, row_segment(following, size))

    def _pages(
        self, view: ReadView, segment: int, first: int, overlay: Overlay | None
    ) -> Iterator[Sequence[Any]]:
        pages = self._tables.rows(view.key, segment, first)
        if overlay is None:
            return pages
        replicated = (
            [row for row in page if not view.is_beyond(row)]
            for page in (pages if needs_tables(view.info) else ())
        )
        return overlay.over(segment, first, replicated)

    def _is_visible(self, view: ReadView, head: Head, row: Any) -> bool:
        if view.is_beyond(row) and not isinstance(row, TailRow):
            return False  # Kafka has it, or it came after the mark
        if head.record_id is None or row.meta_record_id == head.record_id:
            return True
        if not view.has_warned:
            view.has_warned = True
            done = "left out" if self._correlate else "handed out all the same"
            events.warning(
                f"rows of another incarnation are {done}",
                topic=self._topic,
                entity=view.key,
                seq_nr=row.seq_nr,
                found=str(row.meta_record_id),
                expected=str(head.record_id),
            )
        return not self._correlate
