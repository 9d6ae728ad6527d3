"""The decision whether one expired entity is purged, or left alone and why. Pure.

Every reader applies a purge unconditionally. A purge is therefore sent only where no append, delete or purge
is known that is newer than the expired head. Marks change nothing and do not count.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from tidemark.journal.action import Action, Append, Delete, Mark
from tidemark.journal.head import Head


class LeftAlone(StrEnum):
    """Why an entity is not purged."""

    GONE = "its head is gone"
    TOPIC_GONE = "its topic is gone from Kafka"
    NO_EXPIRY = "it does not expire any more"
    OTHER_DAY = "it expires on another day"
    APPEND = "a newer append"
    DELETE = "a newer delete"
    PURGE = "a newer purge"
    UNREADABLE = "a newer message that cannot be read"


class Newer(NamedTuple):
    """A message of an entity that its head may not contain."""

    why: LeftAlone
    """The kind of the message, as the reason to leave its entity alone."""
    partition: int
    offset: int
    id: int | None = None
    """The message's id; None while it is not in the commit log."""
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class ExpiryDecision:
    """The decision about one entity."""

    left_alone: LeftAlone | None = None
    """Why the entity is left alone; None where it is purged."""
    newer: Newer | None = None
    """The message because of which it is left alone, where there is one."""

    @property
    def is_purge(self) -> bool:
        """Whether the entity is to be purged."""
        return self.left_alone is None


PURGE = ExpiryDecision()


def newer_of(action: Action | None, partition: int, offset: int, id_: int | None = None) -> Newer | None:
    """An action as a reason to leave its entity alone; None where it is a mark or no action."""
    if action is None or isinstance(action, Mark):
        return None
    if isinstance(action, Append):
        why = LeftAlone.APPEND
    else:
        why = LeftAlone.DELETE if isinstance(action, Delete) else LeftAlone.PURGE
    return Newer(why, partition, offset, id_, action.origin)


def judge(day: date, head: Head | None, found: Iterable[Newer]) -> ExpiryDecision:
    """The decision about an entity that was found among those that expired on ``day``.

    ``head`` is its current head. ``found`` are its messages in the log beyond the writer's position and in
    Kafka beyond the log. Some may be in the head already, because a writer applies messages before it commits
    its position; those are ignored.
    """
    if head is None:
        return ExpiryDecision(LeftAlone.GONE)
    if head.expire_on is None:
        return ExpiryDecision(LeftAlone.NO_EXPIRY)
    if head.expire_on != day:
        return ExpiryDecision(LeftAlone.OTHER_DAY)
    for newer in found:
        if newer.partition != head.partition or newer.offset > head.offset:
            return ExpiryDecision(newer.why, newer)
    return PURGE
