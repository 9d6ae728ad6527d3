"""The result of an audit: recorded before publication, shown to operators, valid for exactly one capture.

Values only: ``audit.py`` evaluates the expectations.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of one expectation.

    Attributes:
        title: The expectation's description, for operators.
        expectation: Its type, as Great Expectations names it.
        severity: ``critical``, ``warning`` or ``info``.
        success: Whether it is met.
        detail: What was found instead; empty where it is met.
        ids: The first and last id of the violating files or messages, where all of them are known.
    """

    title: str
    expectation: str
    severity: str
    success: bool
    detail: str
    ids: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """The audit of one capture.

    Attributes:
        t: The binding that was captured.
        captured: The digest of the capture's record: the audit is valid for this capture only.
        judgements: The result of every expectation.
    """

    t: int
    captured: str
    judgements: tuple[Judgement, ...]

    @property
    def passed(self) -> bool:
        """Whether no critical expectation failed."""
        return not any(True for _ in self.failures)

    @property
    def failures(self) -> Iterator[Judgement]:
        """The failures that prevent publication."""
        return (j for j in self.judgements if not j.success and j.severity == CRITICAL)

    @property
    def warnings(self) -> Iterator[Judgement]:
        """The failures that are only reported."""
        return (j for j in self.judgements if not j.success and j.severity != CRITICAL)

    def to_lines(self) -> Iterator[str]:
        """One line of text per expectation, for log output."""
        for j in self.judgements:
            ids = f" (ids {j.ids[0]} to {j.ids[1]})" if j.ids else ""
            detail = f": {j.detail}" if j.detail else ""
            yield f"{'met' if j.success else j.severity:8} {j.title}{detail}{ids}"

    def to_bytes(self) -> bytes:
        """The content of the record's file; equal records give equal bytes."""
        body = {**asdict(self), "passed": self.passed}
        return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "AuditRecord":
        """The record in a file."""
        body = json.loads(data)
        judgements = (
            Judgement(**{**row, "ids": tuple(row["ids"]) if row["ids"] else None})
            for row in body["judgements"]
        )
        return cls(body["t"], body["captured"], tuple(judgements))
