"""Appends that a purge overtook: sent after the last look at their entity, and in Kafka before its purge.

No check can close this window, because a purge is unconditional and Kafka knows no conditions. So the log is
searched afterwards, and what is found is pinned until a person has brought it back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

from tidemark.journal.action import Action, Append, Purge
from tidemark.log.state.pins import Pin


@dataclass(frozen=True, slots=True)
class SentPurge:
    """A purge that is in Kafka."""

    topic: str
    key: str
    day: date
    partition: int
    checked: int
    """The first offset of the partition that nobody had looked at when the purge was sent."""
    offset: int
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """As a document has it."""
        return {**asdict(self), "day": self.day.isoformat()}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> "SentPurge":
        """What a document has."""
        return cls(**{**row, "day": date.fromisoformat(row["day"])})


@dataclass(frozen=True, slots=True)
class Logged:
    """One message of the commit log."""

    id: int
    topic: str
    partition: int
    offset: int
    action: Action


@dataclass(frozen=True, slots=True)
class Overtaken:
    """An append that is gone with its entity."""

    id: int
    topic: str
    key: str
    partition: int
    offset: int
    purge_offset: int


def find_purges(wanted: Iterable[SentPurge], run: str, messages: Iterable[Logged]) -> list[SentPurge]:
    """The purges of a run that are in the log, whether anybody has noted that they were sent or not.

    Of what was wanted, everything but the offset counts. A producer that was killed may have had one under
    way that arrived when nobody looked any more.
    """
    by_entity: dict[tuple[str, int, str], list[SentPurge]] = {}
    for one in wanted:
        by_entity.setdefault((one.topic, one.partition, one.key), []).append(one)
    found = []
    for message in messages:
        if isinstance(message.action, Purge) and message.action.origin == run:
            place = (message.topic, message.partition, message.action.key)
            for one in by_entity.get(place, ()):
                if message.offset >= one.checked:
                    found.append(replace(one, offset=message.offset))
    return found


def find_overtaken(sent: Iterable[SentPurge], messages: Iterable[Logged]) -> list[Overtaken]:
    """The appends between the last look at an entity and its purge, by id."""
    purges: dict[tuple[str, int, str], list[SentPurge]] = {}
    for one in sent:
        purges.setdefault((one.topic, one.partition, one.key), []).append(one)
    found = {}
    for message in messages:
        if not isinstance(message.action, Append):
            continue
        key = message.action.key
        for purge in purges.get((message.topic, message.partition, key), ()):
            if purge.checked <= message.offset < purge.offset:
                found[message.id] = Overtaken(
                    message.id, message.topic, key, message.partition, message.offset, purge.offset
                )
    return [found[id_] for id_ in sorted(found)]


def pins_of(found: Sequence[Overtaken], run: str, at: int) -> list[Pin]:
    """What keeps these appends in the log until a person releases them."""
    return [
        Pin(one.id, run, f"an append to {one.topic}/{one.key} that the purge at {_place(one)} overtook", at)
        for one in found
    ]


def _place(one: Overtaken) -> str:
    return f"{one.partition}@{one.purge_offset}"
