"""Whether one expired entity is purged, or left alone and why.

A purge is unconditional for everybody who reads it, so it is only sent where nothing is known that came after
the head that says "expired": no append, no delete, no purge. Marks change nothing and don't count. Decides on
what it is given and reads nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class Newer:
    """A message about an entity that its head may not know of."""

    why: LeftAlone
    partition: int
    offset: int
    id: int | None = None
    """None while it is not in the commit log."""
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class ExpiryDecision:
    """What is to be done about one entity."""

    left_alone: LeftAlone | None = None
    newer: Newer | None = None

    @property
    def is_purge(self) -> bool:
        """Whether the entity is to be purged."""
        return self.left_alone is None


PURGE = ExpiryDecision()


def newer_of(action: Action | None, partition: int, offset: int, id_: int | None = None) -> Newer | None:
    """An action as a reason to leave its entity alone; None when it is no reason."""
    if action is None or isinstance(action, Mark):
        return None
    if isinstance(action, Append):
        why = LeftAlone.APPEND
    else:
        why = LeftAlone.DELETE if isinstance(action, Delete) else LeftAlone.PURGE
    return Newer(why, partition, offset, id_, action.origin)


def judge(day: date, head: Head | None, found: Iterable[Newer]) -> ExpiryDecision:
    """What is to be done about an entity that was found among those that expired on a day.

    ``found`` has what the log holds of it beyond the writer's position, and Kafka beyond the log. What the
    head has seen already is no news: writers apply messages before they commit their position.
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
