"""What the tail of a partition says about one entity: the actions that its tables may not have yet.

A fold over headers alone, small however long the tail is, and complete before an event is handed out: a
delete at the end of the tail counts for everything before it. What a delete covers depends on how far the
entity had come, which only its head knows; so the numbers are asked for with the head. Reads nothing, and
never looks into a payload.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidemark.journal.action import Action, Append, Delete, Purge
from tidemark.journal.head import Head


@dataclass(frozen=True, slots=True)
class Empty:
    """The tail has nothing of the entity: the tables have everything."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The entity was deleted from, and nothing was appended since."""

    to: int
    """As far as any of the deletes asked for."""
    first: int
    """What the first of them asked for: of an entity that is not there, it makes one that got so far."""
    is_new: bool = False
    """Whether a purge came before, so that what the tables have is another incarnation's."""


@dataclass(frozen=True, slots=True)
class Appended:
    """Events were appended."""

    offset: int
    """Of the first append."""
    first: int
    """The number of its first event: of an entity that is not there, nothing below it ever will be."""
    seq_nr: int
    """Of the last event."""
    delete_to: int | None = None
    """As far as the tail's own events were deleted."""
    before: Deleted | None = None
    """What was deleted before the first append."""
    is_new: bool = False
    """Whether a purge came before, so that what the tables have is another incarnation's."""
    below: int | None = None
    """The lowest number of all events, where that is below the first one's."""
    is_ordered: bool = True
    """Whether the numbers of every append lie above those of the append before it."""
    is_deleted_last: bool = False
    """Whether a delete came after the last append."""
    is_deleted_behind: bool = False
    """Whether a delete came after numbers went back."""

    @property
    def lowest(self) -> int:
        """The lowest number of all events."""
        return self.first if self.below is None else self.below


@dataclass(frozen=True, slots=True)
class Purged:
    """The entity was purged, and that was the end of it."""


HeadInfo = Empty | Deleted | Appended | Purged

EMPTY = Empty()
PURGED = Purged()


def take(info: HeadInfo, action: Action, offset: int) -> HeadInfo:
    """The next action of the entity. What comes after a purge begins anew."""
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
                # Never past the last event, and never back.
                deleted = max(info.delete_to or 0, min(action.to, info.seq_nr))
                behind = info.is_deleted_behind or not info.is_ordered
                return replace(info, delete_to=deleted, is_deleted_last=True, is_deleted_behind=behind)
            case Deleted():
                return replace(info, to=max(info.to, action.to))
            case _:
                return Deleted(action.to, action.to, is_new=info is PURGED)
    return PURGED if isinstance(action, Purge) else info


def has_deletes(info: HeadInfo) -> bool:
    """Whether the tail deletes anything of an entity that goes on."""
    if isinstance(info, Appended):
        return info.delete_to is not None or info.before is not None
    return isinstance(info, Deleted)


def deletes_behind(info: HeadInfo) -> bool:
    """Whether the tail deletes where numbers went back, or may have: what that removes only a head tells."""
    if not isinstance(info, Appended):
        return False
    return info.is_deleted_behind or (info.is_ordered and info.delete_to is not None)


def head_info(actions: Iterable[tuple[int, Action]]) -> HeadInfo:
    """What a tail amounts to, from the offsets and actions of one entity in their order."""
    info: HeadInfo = EMPTY
    for offset, action in actions:
        info = take(info, action, offset)
    return info


def needs_tables(info: HeadInfo) -> bool:
    """Whether events of the tables can still be read: not behind a purge."""
    return not (isinstance(info, Purged) or (isinstance(info, Deleted | Appended) and info.is_new))


def hidden_to(info: HeadInfo, head: Head | None) -> int:
    """The last number that a reader does not get, when the tail is taken onto the head; 0 for none.

    The head may have some of the tail's actions already; those change nothing when they are taken again.
    """
    if isinstance(info, Purged):
        return 0
    own = (info.delete_to or 0) if isinstance(info, Appended) else 0
    before = info.before if isinstance(info, Appended) else info if isinstance(info, Deleted) else None
    if head is None or not needs_tables(info):
        begun = info.first - 1 if isinstance(info, Appended) else 0
        return max(own, before.first if before else begun)
    hidden = max(own, head.delete_to or 0)
    if before is None or (isinstance(info, Appended) and head.offset >= info.offset):
        return hidden
    return max(hidden, min(before.to, head.seq_nr))


def misses_head(info: HeadInfo) -> bool:
    """Whether the tail looks as if the entity was there before: its first event is not the first of all."""
    return isinstance(info, Deleted) or (
        isinstance(info, Appended) and (info.first > 1 or info.before is not None)
    )


def last_seq_nr(info: HeadInfo, head: Head | None) -> int | None:
    """The number of the last event there was, deleted or not; None when there is no such entity.

    A delete never leaves it below what is deleted, should numbers have gone back.
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
