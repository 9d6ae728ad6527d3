"""The report of an expiry run: by day, how many entities were purged, how many were left alone, and why."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from tidemark.expiry.days import WaitsFor
from tidemark.expiry.decision import LeftAlone
from tidemark.expiry.overtaken_appends import Overtaken, SentPurge
from tidemark.expiry.plan import SHOWN


@dataclass(frozen=True, slots=True)
class Spared:
    """An expired entity that was left alone."""

    day: date
    topic: str
    key: str
    why: LeftAlone
    id: int | None = None
    """The id of the newer message, where there is one and it is in the commit log."""
    partition: int | None = None
    offset: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The form in JSON."""
        return {**asdict(self), "day": self.day.isoformat(), "why": self.why.value}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> "Spared":
        """The entity in a JSON object of ``to_dict``."""
        return cls(**{**row, "day": date.fromisoformat(row["day"]), "why": LeftAlone(row["why"])})


@dataclass(frozen=True, slots=True)
class DayReport:
    """The result for one day."""

    day: date
    purged: int
    left_alone: int
    waits_for: WaitsFor | None
    """Why a later run queries it again; None where it is finished."""

    @property
    def found(self) -> int:
        """The number of entities that were found to expire on it."""
        return self.purged + self.left_alone


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """The result of a run."""

    pipeline: str
    writer: str
    """The journal writer whose tables have the entities."""
    run: str
    """The run's name, which is the origin of its purges."""
    days: tuple[DayReport, ...]
    rows: int
    """The number of events of the purged entities."""
    reasons: Mapping[LeftAlone, int]
    """How many entities were left alone, by reason."""
    spared: tuple[Spared, ...]
    """The first of the entities that were left alone."""
    overtaken: tuple[Overtaken, ...] = ()
    """The appends that were purged although they were newer than the last check."""

    @property
    def purged(self) -> int:
        """The number of purged entities."""
        return sum(day.purged for day in self.days)

    @property
    def left_alone(self) -> int:
        """The number of entities that were left alone."""
        return sum(day.left_alone for day in self.days)

    @property
    def unfinished(self) -> tuple[date, ...]:
        """The days that a later run has to query again."""
        return tuple(day.day for day in self.days if day.waits_for)

    def to_dict(self) -> dict[str, Any]:
        """The report in JSON."""
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "run": self.run,
            "found": self.purged + self.left_alone,
            "purged": self.purged,
            "rows": self.rows,
            "left_alone": {why.value: count for why, count in self.reasons.items()},
            "days": [
                {
                    "day": day.day.isoformat(),
                    "found": day.found,
                    "purged": day.purged,
                    "left_alone": day.left_alone,
                    "asked_again": day.waits_for.value if day.waits_for else None,
                }
                for day in self.days
            ],
            "spared": [one.to_dict() for one in self.spared],
            "overtaken": [asdict(one) for one in self.overtaken],
        }


def report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """A report in JSON, returned by a run or read from its record, as lines of text for operators."""
    alone = sum(report["left_alone"].values())
    yield (
        f"{report['pipeline']}/{report['writer']}: {report['purged']:,} entities purged with "
        f"{report['rows']:,} events, {alone:,} left alone"
    )
    for day in report["days"]:
        again = f"; asked again: {day['asked_again']}" if day["asked_again"] else ""
        yield f"  {day['day']}  {day['purged']:,} purged, {day['left_alone']:,} left alone{again}"
    for why, count in report["left_alone"].items():
        yield f"  left alone {count:,}: {why}"


def make_report(
    pipeline: str,
    writer: str,
    run: str,
    days: Mapping[date, WaitsFor | None],
    sent: Collection[SentPurge],
    spared: Collection[Spared],
    overtaken: Sequence[Overtaken] = (),
    shown: int = SHOWN,
) -> PurgeReport:
    """The report of a run. ``days`` has the reason why each day is queried again, None where it is finished.

    The report lists at most ``shown`` of the entities in ``spared``.
    """
    purged, alone = _by_day(sent), _by_day(spared)
    reported = sorted({*days, *purged, *alone})
    reasons = Counter(one.why for one in spared)
    return PurgeReport(
        pipeline,
        writer,
        run,
        tuple(DayReport(day, purged[day], alone[day], days.get(day)) for day in reported),
        sum(one.rows for one in sent),
        {why: reasons[why] for why in LeftAlone if reasons[why]},
        tuple(sorted(spared, key=lambda one: (one.day, one.topic, one.key)))[:shown],
        tuple(overtaken),
    )


def _by_day(entities: Iterable[SentPurge | Spared]) -> Counter[date]:
    return Counter(one.day for one in entities)
