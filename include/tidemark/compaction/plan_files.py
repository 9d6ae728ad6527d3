"""Plans as the log's folder keeps them: ``plans/<digest>.json``, and beside it the files that came of it."""

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
"""The digest of the question to which the answer is known to be: nothing. Only saves work."""


@dataclass(frozen=True)
class Plans:
    """The plans of one log."""

    pipeline: str
    root: str

    def keep(self, plan: CompactionPlan, area: str) -> None:
        """Keep a plan; the same one may have been made before, when other writers were further or nearer.

        Without the name of the purged entity it tells people about: nothing of those is to stay anywhere.
        """
        unnamed = replace(plan, census=structs.replace(plan.census, oldest_purged=None))
        self._folder.replace(_path(plan.digest), unnamed.to_bytes(), area)

    def read(self, digest: str) -> CompactionPlan:
        """A plan that was made."""
        if not self._folder.exists(_path(digest)):
            raise NoPlan(self.pipeline, digest)
        return CompactionPlan.from_bytes(self._folder.read(_path(digest)))

    def keep_files(self, digest: str, files: Sequence[LogFile], area: str) -> None:
        """Keep which files a plan's groups have become."""
        data = (json.dumps([asdict(file) for file in files], indent=1) + "\n").encode()
        self._folder.write_once(_files_path(digest), data, area)

    def has_files(self, digest: str) -> bool:
        """Whether a plan's files are written."""
        return self._folder.exists(_files_path(digest))

    def read_files(self, digest: str) -> list[LogFile]:
        """The files that a plan's groups have become."""
        if not self.has_files(digest):
            raise PlanOutdated(self.pipeline, digest, "its files were never written")
        return [LogFile(**row) for row in json.loads(self._folder.read(_files_path(digest)))]

    def settle(self, digest: str, area: str) -> None:
        """Remember that the answer to a question is: nothing."""
        self._folder.replace(SETTLED, json.dumps({"digest": digest}).encode(), area)

    def is_settled(self, digest: str) -> bool:
        """Whether the answer to a question is known to be: nothing."""
        return self._folder.exists(SETTLED) and json.loads(self._folder.read(SETTLED))["digest"] == digest

    @cached_property
    def _folder(self) -> Folder:
        return Folder(self.pipeline, self.root)


def _path(digest: str) -> str:
    return f"plans/{digest}.json"


def _files_path(digest: str) -> str:
    return f"plans/{digest}.files.json"
