"""Stored plans: ``plans/<digest>.json`` in the log's folder, and next to it the list of the files written."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from msgspec import structs

from tidemark.compaction.errors import NoPlan, PlanOutdated
from tidemark.compaction.plan import CompactionPlan
from tidemark.log.files.folder import Folder
from tidemark.log.model.manifest import LogFile

SETTLED = "plans/settled.json"
"""Holds the digest of inputs that are known to need no compaction. It only saves work."""


@dataclass(frozen=True)
class Plans:
    """The plans of one log."""

    pipeline: str
    root: str

    def keep(self, plan: CompactionPlan, area: str) -> None:
        """Store a plan, over an earlier one with the same digest.

        The key of the oldest purged entity is left out, because nothing of a purged entity may be kept.
        """
        unnamed = replace(plan, census=structs.replace(plan.census, oldest_purged=None))
        self._folder.replace(_path(plan.digest), unnamed.to_bytes(), area)

    def has(self, digest: str) -> bool:
        """Whether a plan is stored."""
        return self._folder.exists(_path(digest))

    def read(self, digest: str) -> CompactionPlan:
        """A stored plan; raises ``NoPlan`` where there is none."""
        if not self.has(digest):
            raise NoPlan(self.pipeline, digest)
        return CompactionPlan.from_bytes(self._folder.read(_path(digest)))

    def keep_files(self, digest: str, files: Sequence[LogFile], area: str) -> None:
        """Store the list of the files that were written for a plan."""
        data = (json.dumps([asdict(file) for file in files], indent=1) + "\n").encode()
        self._folder.write_once(_files_path(digest), data, area)

    def has_files(self, digest: str) -> bool:
        """Whether a plan's files are written."""
        return self._folder.exists(_files_path(digest))

    def read_files(self, digest: str) -> list[LogFile]:
        """The files that were written for a plan; raises ``PlanOutdated`` where they were not."""
        if not self.has_files(digest):
            raise PlanOutdated(self.pipeline, digest, "its files were never written")
        return [LogFile(**row) for row in json.loads(self._folder.read(_files_path(digest)))]

    def settle(self, digest: str, area: str) -> None:
        """Record that the inputs with this digest need no compaction."""
        self._folder.replace(SETTLED, json.dumps({"digest": digest}).encode(), area)

    def is_settled(self, digest: str) -> bool:
        """Whether the inputs with this digest are known to need no compaction."""
        return self._folder.exists(SETTLED) and json.loads(self._folder.read(SETTLED))["digest"] == digest

    @cached_property
    def _folder(self) -> Folder:
        return Folder(self.pipeline, self.root)


def _path(digest: str) -> str:
    return f"plans/{digest}.json"


def _files_path(digest: str) -> str:
    return f"plans/{digest}.files.json"
