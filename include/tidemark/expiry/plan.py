"""What a run over expired entities would purge, for a person to see before anything is sent."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from tidemark.expiry.errors import TooManyPurges
from tidemark.journal.head import Head

SHOWN = 100
"""Entities that a plan names."""


@dataclass(frozen=True, slots=True, order=True)
class Expired:
    """An entity whose head says that it expired."""

    day: date
    topic: str
    key: str
    partition: int
    offset: int
    """Of the last action its head knows."""
    rows: int
    """Events that are not deleted yet."""

    @classmethod
    def of(cls, topic: str, key: str, day: date, head: Head) -> "Expired":
        """The entity that has this head."""
        rows = max(0, head.seq_nr - (head.delete_to or 0))
        return cls(day, topic, key, head.partition, head.offset, rows)

    def to_dict(self) -> dict[str, Any]:
        """As a document has it."""
        return {**asdict(self), "day": self.day.isoformat()}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> "Expired":
        """What a document has."""
        return cls(**{**row, "day": date.fromisoformat(row["day"])})


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The entities that expired on some days."""

    pipeline: str
    writer: str
    days: tuple[tuple[date, int], ...]
    """Every day that was asked, with how many entities expired on it."""
    first: tuple[Expired, ...]
    """Some of them, in the order in which they would be purged."""

    @property
    def total(self) -> int:
        """How many entities there are."""
        return sum(count for _, count in self.days)

    def to_dict(self) -> dict[str, Any]:
        """The whole plan."""
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "total": self.total,
            "days": {day.isoformat(): count for day, count in self.days},
            "first": [one.to_dict() for one in self.first],
        }

    def to_lines(self) -> Iterator[str]:
        """The plan for people."""
        days = "1 day" if len(self.days) == 1 else f"{len(self.days)} days"
        yield f"{self.pipeline}/{self.writer}: {self.total:,} expired entities on {days}"
        for day, count in self.days:
            yield f"  {day}  {count:,}"
        for one in self.first:
            yield f"  {one.day}  {one.topic}/{one.key}  {one.rows:,} events"
        if self.total > len(self.first):
            yield f"  … and {self.total - len(self.first):,} more"


def make_plan(
    pipeline: str, writer: str, days: Iterable[date], found: Iterable[Expired], shown: int = SHOWN
) -> PurgePlan:
    """The plan for what was found on these days."""
    ordered = sorted(found)
    counts = Counter(one.day for one in ordered)
    asked = sorted({*days, *counts})
    return PurgePlan(pipeline, writer, tuple((day, counts[day]) for day in asked), tuple(ordered[:shown]))


def refuse_too_many(plan: PurgePlan, ceiling: int) -> None:
    """Refuse a plan that would purge suspiciously many."""
    if plan.total > ceiling:
        raise TooManyPurges(plan.pipeline, plan.total, ceiling)
