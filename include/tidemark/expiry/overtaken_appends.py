"""Overtaken appends: those that reached Kafka after the last check of their entity and before its purge.

No check can close this window, because a purge is unconditional and Kafka has no conditional writes. The log
is searched afterwards, and the appends found are pinned until an operator has appended them again. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

from tidemark.journal.action import Action, Append, Purge
from tidemark.log.state.pins import Pin


@dataclass(frozen=True, slots=True)
class SentPurge:
    """A purge that was sent to Kafka."""

    topic: str
    key: str
    day: date
    partition: int
    checked: int
    """The first offset of the partition that was not checked before the purge was sent."""
    offset: int
    """The purge's own offset."""
    rows: int
    """The number of events that the entity had."""

    def to_dict(self) -> dict[str, Any]:
        """The form in JSON."""
        return {**asdict(self), "day": self.day.isoformat()}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> "SentPurge":
        """The purge in a JSON object of ``to_dict``."""
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
    """An append whose events were purged with its entity."""

    id: int
    topic: str
    key: str
    partition: int
    offset: int
    purge_offset: int


def find_purges(wanted: Iterable[SentPurge], run: str, messages: Iterable[Logged]) -> list[SentPurge]:
    """The purges of a run that are in the log, whether the run recorded them as sent or not.

    The record of a run that was killed can lack a purge that its producer still delivered. The offsets in
    ``wanted`` are ignored; those of the result come from ``messages``.
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
    """The appends between the last check of an entity and its purge, in order of their ids."""
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
    """The pins that keep these appends in the log until an operator releases them."""
    return [
        Pin(one.id, run, f"an append to {one.topic}/{one.key} that the purge at {_place(one)} overtook", at)
        for one in found
    ]


def _place(one: Overtaken) -> str:
    return f"{one.partition}@{one.purge_offset}"
