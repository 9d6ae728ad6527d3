"""What an audit found: recorded before publish, shown to people, believed for exactly one capture.

Pure values: who judges, and how, is in ``audit.py``.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One expectation and what came of it."""

    title: str
    expectation: str
    severity: str
    success: bool
    detail: str
    """What was found instead; empty where nothing was."""
    ids: tuple[int, int] | None = None
    """The first and last id of the files or messages that offend, where all of them are known."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What the audit of one capture found."""

    t: int
    captured: str
    """The digest of the capture's record: an audit speaks of exactly one capture."""
    judgements: tuple[Judgement, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing critical was found."""
        return not any(True for _ in self.failures)

    @property
    def failures(self) -> Iterator[Judgement]:
        """What forbids publishing."""
        return (j for j in self.judgements if not j.success and j.severity == CRITICAL)

    @property
    def warnings(self) -> Iterator[Judgement]:
        """What a person should know and nothing stops for."""
        return (j for j in self.judgements if not j.success and j.severity != CRITICAL)

    def to_lines(self) -> Iterator[str]:
        """What was found, for people to read in a log."""
        for j in self.judgements:
            ids = f" (ids {j.ids[0]} to {j.ids[1]})" if j.ids else ""
            detail = f": {j.detail}" if j.detail else ""
            yield f"{'met' if j.success else j.severity:8} {j.title}{detail}{ids}"

    def to_bytes(self) -> bytes:
        """The record's content; the same findings give the same bytes."""
        body = {**asdict(self), "passed": self.passed}
        return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "AuditRecord":
        """The record a file holds."""
        body = json.loads(data)
        judgements = (
            Judgement(**{**row, "ids": tuple(row["ids"]) if row["ids"] else None})
            for row in body["judgements"]
        )
        return cls(body["t"], body["captured"], tuple(judgements))
