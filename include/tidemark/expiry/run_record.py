"""The record of a run: small files in the log's folder with what it planned, intended and sent.

Only planned entities are purged. Every purge is recorded as intended before it is sent, with the offsets that
were checked, so that a restarted run can tell which purges were sent. The files are removed after the report,
because nothing of a purged entity must remain. The plan is removed first: without it the others do not count.
"""

import json
import posixpath
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from hashlib import sha256
from typing import Any

from tidemark.expiry.overtaken_appends import SentPurge
from tidemark.expiry.plan import Expired
from tidemark.expiry.report import Spared
from tidemark.faults import FaultPoint, reach
from tidemark.log.files.folder import Folder

AREA = "expiry"
_INTENDED, _DONE, _PLANNED = ".intended.json", ".done.json", "planned.json"


@dataclass(frozen=True, slots=True)
class Intended:
    """A purge that is about to be sent."""

    topic: str
    key: str
    day: date
    partition: int
    checked: int
    """The first offset of the partition that was not checked."""
    rows: int
    """The number of events that the entity has."""

    def sent_at(self, offset: int) -> SentPurge:
        """The purge after it was sent, at its offset."""
        return SentPurge(self.topic, self.key, self.day, self.partition, self.checked, offset, self.rows)


@dataclass(frozen=True, slots=True)
class Batch:
    """Purges of one topic that were decided after one check."""

    number: int
    attempt: str
    """The id of the attempt, so that two attempts running at once never write the same file."""
    topic: str
    log_end: int
    """The last id of the log that was checked."""
    intended: tuple[Intended, ...]
    spared: tuple[Spared, ...]

    def to_bytes(self) -> bytes:
        """The content of the batch's file."""
        intended = [{**asdict(one), "day": one.day.isoformat()} for one in self.intended]
        return _json(
            {
                "number": self.number,
                "attempt": self.attempt,
                "topic": self.topic,
                "log_end": self.log_end,
                "intended": intended,
                "spared": [one.to_dict() for one in self.spared],
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Batch":
        """The batch in a file of ``to_bytes``."""
        row = json.loads(data)
        intended = [Intended(**{**one, "day": date.fromisoformat(one["day"])}) for one in row["intended"]]
        spared = [Spared.from_dict(one) for one in row["spared"]]
        place = row["number"], row["attempt"], row["topic"], row["log_end"]
        return cls(*place, tuple(intended), tuple(spared))


@dataclass(frozen=True)
class RunRecord:
    """The files of one run."""

    pipeline: str
    root: str
    run: str

    def keep_planned(self, found: Sequence[Expired]) -> None:
        """Records the entities to purge, replacing the plan of an earlier attempt."""
        if self.planned() is None:
            self._folder.remove_area(self._area)
        self._folder.replace(self._plan, json.dumps([one.to_dict() for one in found]).encode(), AREA)

    def planned(self) -> list[Expired] | None:
        """The entities to purge; None where there is no plan."""
        if not self._folder.exists(self._plan):
            return None
        return [Expired.from_dict(row) for row in json.loads(self._folder.read(self._plan))]

    def batches(self) -> list[Batch]:
        """The intended batches in order; empty where there is no plan."""
        if not self._folder.exists(self._plan):
            return []
        paths = self._folder.list_files(self._area, _INTENDED)
        return [Batch.from_bytes(self._folder.read(path)) for path in paths]

    def sent(self, batch: Batch) -> list[SentPurge] | None:
        """The purges of a batch that were sent; None where that is not recorded yet."""
        path = self._path(batch, _DONE)
        if not self._folder.exists(path):
            return None
        return [SentPurge.from_dict(row) for row in json.loads(self._folder.read(path))]

    def intend(self, batch: Batch) -> None:
        """Records a batch before its purges are sent."""
        self._folder.replace(self._path(batch, _INTENDED), batch.to_bytes(), AREA)

    def settle(self, batch: Batch, sent: list[SentPurge]) -> None:
        """Records which purges of a batch were sent."""
        data = _json([one.to_dict() for one in sent])
        self._folder.replace(self._path(batch, _DONE), data, AREA)

    def remove(self) -> None:
        """Removes all files of this run."""
        self._folder.remove(self._plan)
        reach(FaultPoint.EXPIRY_FORGOTTEN)
        self._folder.remove_area(self._area)

    @property
    def _area(self) -> str:
        return posixpath.join(AREA, sha256(self.run.encode()).hexdigest()[:32])

    @property
    def _plan(self) -> str:
        return posixpath.join(self._area, _PLANNED)

    def _path(self, batch: Batch, suffix: str) -> str:
        return posixpath.join(self._area, f"{batch.number:08d}-{batch.attempt}{suffix}")

    @cached_property
    def _folder(self) -> Folder:
        return Folder(self.pipeline, self.root)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
