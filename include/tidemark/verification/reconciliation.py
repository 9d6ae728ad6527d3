"""The record of a reconciliation: kept in the log's folder, shown to operators, and read before a gate opens.

Judges nothing, and changes no gate.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from tidemark.log.files.folder import Folder
from tidemark.log.model.audit_result import CRITICAL, Judgement
from tidemark.log.model.binding import NOTHING_YET
from tidemark.verification.selection import Entity

MOST_NAMED = 3
"""How many differences the reason of a closed gate names."""
SUFFIX = ".json"
OUTPUTS = {"files": "the files are", "kafka": "the topic is"}


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """One comparison of a writer's output with the log, after a delivery.

    Attributes:
        position: The last id that was compared. It names the record's file.
        summary: The result in one sentence.
        found: The verification, as ``--json`` prints it.
    """

    pipeline: str
    writer: str
    position: int
    summary: str
    found: Mapping[str, Any] = field(default_factory=dict)
    judgements: tuple[Judgement, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every critical expectation was met."""
        return not any(not one.success and one.severity == CRITICAL for one in self.judgements)

    @property
    def entities(self) -> tuple[Entity, ...]:
        """The entities of the differences that the record names."""
        named = [one for one in self.found.get("differences", ()) if one.get("key") is not None]
        return tuple(dict.fromkeys(Entity(one["topic"], one["key"]) for one in named))

    @property
    def names_all_differences(self) -> bool:
        """Whether the record names every difference; beyond a limit they are only counted."""
        return bool(len(self.found.get("differences", ())) == self.found.get("total", 0))

    @property
    def reason(self) -> str:
        """The reason that a gate is closed with."""
        differences = [one["said"] for one in self.found.get("differences", ())]
        failed = [f"{one.title}: {one.detail}" for one in self.judgements if not one.success]
        more = max(self.found.get("total", 0), len(differences)) - MOST_NAMED
        named = "; ".join((differences or failed)[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
        output = OUTPUTS.get(self.found.get("kind", ""), "the tables are")
        gap = (self.found.get("rebuild") or {}).get("because")
        rebuild = f"The log is not whole ({gap}), so it cannot rebuild them whole." if gap else ""
        way = " ".join(sentence for sentence in (self.found.get("way"), rebuild) if sentence)
        return f"{output} not what the log says ({self.summary}): {named.rstrip('.')}. {way}".rstrip()

    def to_lines(self) -> Iterator[str]:
        """The record as lines for a task's log."""
        yield f"{self.pipeline}/{self.writer}: {self.summary}"
        for one in self.judgements:
            detail = f": {one.detail}" if one.detail else ""
            yield f"{'met' if one.success else one.severity:8} {one.title}{detail}"
        for one in self.found.get("differences", ()):
            yield f"  {one['said']}"

    def to_bytes(self) -> bytes:
        """The content of the record's file."""
        return (json.dumps({**asdict(self), "passed": self.passed}, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Reconciliation":
        """The record that a file holds."""
        body = json.loads(data)
        del body["passed"]
        judgements = (
            Judgement(**{**row, "ids": tuple(row["ids"]) if row["ids"] else None})
            for row in body.pop("judgements")
        )
        return cls(**body, judgements=tuple(judgements))


def keep(root: str, record: Reconciliation) -> str:
    """Write a record into the log's folder, over an earlier one of the same position. Returns its path."""
    path = _path(record.writer, record.position)
    Folder(record.pipeline, root).replace(path, record.to_bytes())
    return path


def read(pipeline: str, root: str, writer: str, position: int) -> Reconciliation | None:
    """The record of a position; None where there is none."""
    folder, path = Folder(pipeline, root), _path(writer, position)
    return Reconciliation.from_bytes(folder.read(path)) if folder.exists(path) else None


def is_kept(pipeline: str, root: str, writer: str, position: int) -> bool:
    """Whether there is a record of a position."""
    return Folder(pipeline, root).exists(_path(writer, position))


def reconciled_before(pipeline: str, root: str, writer: str, position: int) -> int | None:
    """The last position before this one that was reconciled (−1: none); None where this one was.

    A run that crashed between a delivery and its reconciliation leaves a position without a record.
    """
    names = Folder(pipeline, root).list_files(_folder(writer), SUFFIX)
    kept = [int(PurePosixPath(name).name.removesuffix(SUFFIX)) for name in names]
    if position in kept:
        return None
    return max((one for one in kept if one < position), default=NOTHING_YET)


def _path(writer: str, position: int) -> str:
    return f"{_folder(writer)}/{position:020d}{SUFFIX}"


def _folder(writer: str) -> str:
    return f"reconciliations/{writer}"
