"""The plan of an expiry run: the entities it would purge, for an operator to see before anything is sent."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from tidemark.expiry.errors import TooManyPurges
from tidemark.journal.head import Head

SHOWN = 100
"""The most entities that a plan lists."""


@dataclass(frozen=True, slots=True, order=True)
class Expired:
    """An entity that expired on ``day``, according to its head."""

    day: date
    topic: str
    key: str
    partition: int
    offset: int
    """The offset of the last action in its head."""
    rows: int
    """The number of events that are not deleted."""

    @classmethod
    def of(cls, topic: str, key: str, day: date, head: Head) -> "Expired":
        """The expired entity with this head."""
        rows = max(0, head.seq_nr - (head.delete_to or 0))
        return cls(day, topic, key, head.partition, head.offset, rows)

    def to_dict(self) -> dict[str, Any]:
        """The form in JSON."""
        return {**asdict(self), "day": self.day.isoformat()}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> "Expired":
        """The entity in a JSON object of ``to_dict``."""
        return cls(**{**row, "day": date.fromisoformat(row["day"])})


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The entities that expired on some days."""

    pipeline: str
    writer: str
    days: tuple[tuple[date, int], ...]
    """Every day of the run, with the number of entities that expired on it."""
    first: tuple[Expired, ...]
    """The first of the entities, in the order in which they would be purged."""

    @property
    def total(self) -> int:
        """The number of expired entities."""
        return sum(count for _, count in self.days)

    def to_dict(self) -> dict[str, Any]:
        """The plan in JSON."""
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "total": self.total,
            "days": {day.isoformat(): count for day, count in self.days},
            "first": [one.to_dict() for one in self.first],
        }

    def to_lines(self) -> Iterator[str]:
        """The plan as lines of text for operators."""
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
    """The plan for these days and the entities found; lists at most ``shown`` of them."""
    ordered = sorted(found)
    counts = Counter(one.day for one in ordered)
    asked = sorted({*days, *counts})
    return PurgePlan(pipeline, writer, tuple((day, counts[day]) for day in asked), tuple(ordered[:shown]))


def refuse_too_many(plan: PurgePlan, ceiling: int) -> None:
    """Raises TooManyPurges where the plan has more than ``ceiling`` entities."""
    if plan.total > ceiling:
        raise TooManyPurges(plan.pipeline, plan.total, ceiling)
