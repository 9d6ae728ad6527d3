"""A summary of one entity's actions in the tail of a Kafka partition: those that its tables may not have yet.

It is folded from the actions' headers, never from their payloads, and its size does not depend on the tail's
length. A client completes it before it returns the first event, because a delete at the end of the tail hides
events before it. Which events a delete hides also depends on the entity's head, so the functions that return
sequence numbers take both. Reads neither Kafka nor the tables.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidemark.journal.action import Action, Append, Delete, Purge
from tidemark.journal.head import Head


@dataclass(frozen=True, slots=True)
class Empty:
    """The tail has no action of the entity: the tables are complete."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The tail has deletes of the entity and no append since the last purge."""

    to: int
    """The highest ``to`` of the deletes."""
    first: int
    """The ``to`` of the first delete. Where the entity has no head, that delete creates one with this
    ``seq_nr``."""
    is_new: bool = False
    """Whether a purge came before, so that the tables' rows belong to an earlier incarnation."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The tail has appends of the entity since the last purge."""

    offset: int
    """The offset of the first append."""
    first: int
    """The sequence number of its first event. Where the entity has no head, no lower number is ever
    readable."""
    seq_nr: int
    """The sequence number of the last event."""
    delete_to: int | None = None
    """The highest number of the tail's own events that is deleted; None where there was no delete since."""
    before: Deleted | None = None
    """The deletes before the first append."""
    is_new: bool = False
    """Whether a purge came before, so that the tables' rows belong to an earlier incarnation."""
    below: int | None = None
    """The lowest sequence number, where it is below ``first``."""
    is_ordered: bool = True
    """Whether every append begins above the last number of the append before it."""
    is_deleted_last: bool = False
    """Whether a delete came after the last append."""
    is_deleted_behind: bool = False
    """Whether a delete came after an append whose numbers went back."""

    @property
    def lowest(self) -> int:
        """The lowest sequence number of the tail's events."""
        return self.first if self.below is None else self.below


@dataclass(frozen=True, slots=True)
class Purged:
    """The last action of the entity in the tail, apart from marks, is a purge."""


HeadInfo = Empty | Deleted | Appended | Purged

EMPTY = Empty()
PURGED = Purged()


def take(info: HeadInfo, action: Action, offset: int) -> HeadInfo:
    """The summary with the entity's next action added. An action after a purge starts a new summary."""
    if isinstance(action, Append):
        match info:
            case Appended():
                return replace(
                    info,
                    seq_nr=action.last,
                    below=action.first if action.first < info.lowest else info.below,
                    is_ordered=info.is_ordered and action.first > info.seq_nr,
                    is_deleted_last=False,
                )
            case Deleted():
                return Appended(offset, action.first, action.last, before=info, is_new=info.is_new)
            case _:
                return Appended(offset, action.first, action.last, is_new=info is PURGED)
    if isinstance(action, Delete):
        match info:
            case Appended():
                # As in the fold: not beyond the last event, and never decreasing.
                deleted = max(info.delete_to or 0, min(action.to, info.seq_nr))
                behind = info.is_deleted_behind or not info.is_ordered
                return replace(info, delete_to=deleted, is_deleted_last=True, is_deleted_behind=behind)
            case Deleted():
                return replace(info, to=max(info.to, action.to))
            case _:
                return Deleted(action.to, action.to, is_new=info is PURGED)
    return PURGED if isinstance(action, Purge) else info


def has_deletes(info: HeadInfo) -> bool:
    """Whether the tail has deletes that are not followed by a purge."""
    if isinstance(info, Appended):
        return info.delete_to is not None or info.before is not None
    return isinstance(info, Deleted)


def deletes_by_head(info: HeadInfo, head: Head) -> bool:
    """Whether a delete of a tail in which numbers went back may remove more from this head than from the one
    before: it removes no number above the last one that its head has."""
    if not isinstance(info, Appended):
        return False
    if info.is_deleted_behind or (info.is_ordered and info.delete_to is not None):
        return True
    if info.before is None or info.is_new or head.offset < info.offset:
        return False  # the head has no append that the deletes did not meet
    return info.before.to > (head.delete_to or 0)


def head_info(actions: Iterable[tuple[int, Action]]) -> HeadInfo:
    """The summary of a tail, from the (offset, action) pairs of one entity in their order."""
    info: HeadInfo = EMPTY
    for offset, action in actions:
        info = take(info, action, offset)
    return info


def needs_tables(info: HeadInfo) -> bool:
    """Whether events in the tables are still readable: False where the tail has a purge."""
    return not (isinstance(info, Purged) or (isinstance(info, Deleted | Appended) and info.is_new))


def hidden_to(info: HeadInfo, head: Head | None) -> int:
    """The last sequence number hidden from readers once the tail is applied to the head; 0 for none.

    The head may contain some of the tail's actions already. Applying them again changes nothing.
    """
    if isinstance(info, Purged):
        return 0
    own = (info.delete_to or 0) if isinstance(info, Appended) else 0
    before = info.before if isinstance(info, Appended) else info if isinstance(info, Deleted) else None
    if head is None or not needs_tables(info):
        below_first = info.first - 1 if isinstance(info, Appended) else 0
        return max(own, before.first if before else below_first)
    hidden = max(own, head.delete_to or 0)
    if before is None or (isinstance(info, Appended) and head.offset >= info.offset):
        return hidden
    return max(hidden, min(before.to, head.seq_nr))


def misses_head(info: HeadInfo) -> bool:
    """Whether the tail suggests that the entity has a head: it does not begin with an append of event 1."""
    return isinstance(info, Deleted) or (
        isinstance(info, Appended) and (info.first > 1 or info.before is not None)
    )


def last_seq_nr(info: HeadInfo, head: Head | None) -> int | None:
    """The sequence number of the last event, deleted or not; None where the entity does not exist.

    After a delete it is at least the last deleted number, even where sequence numbers went back.
    """
    match info:
        case Appended():
            return max(info.seq_nr, hidden_to(info, head)) if info.is_deleted_last else info.seq_nr
        case Purged():
            return None
        case Deleted() if info.is_new or head is None:
            return info.first
        case Deleted() if head is not None:
            return max(head.seq_nr, head.delete_to or 0)
    return head.seq_nr if head else None
