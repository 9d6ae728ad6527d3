"""The history of a log's compactions: the space each one reclaimed and its duration, or why it did nothing.

The log object keeps the newest records. The state of the log itself is in the manifest, not here.
"""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from tidemark.consensus.objects import Change
from tidemark.log.state.control import HEAD, LogControl

PREFIX = "compaction/"
MOST = 500


class CompactionOutcome(StrEnum):
    """How a compaction ended.

    Attributes:
        COMPACTED: Its manifest became the log.
        NOTHING_TO_DO: No message was obsolete.
        REFUSED: It was not carried out, and the record says why; the log is as it was.
    """

    COMPACTED = "compacted"
    NOTHING_TO_DO = "nothing to do"
    REFUSED = "refused"


@dataclass(frozen=True)
class CompactionRecord:
    """One compaction.

    Attributes:
        at: When it ended, in µs.
        by: The run or the operator.
        policy: The compaction policy.
        outcome: How it ended.
        reason: Why it was refused; else None.
        watermark: Only messages with ids below it were considered.
        held_back_by: The writer, hold or reader that limits the watermark; None where nothing does.
        messages_before: The number of messages of the log before it.
        messages_after: The number of messages of the log after it.
        bytes_before: The size of the log before it.
        bytes_after: The size of the log after it.
        seconds: Its duration.
        plan: The digest of its plan, where it was carried out; None in rows of earlier versions.
    """

    at: int
    by: str
    policy: str
    outcome: CompactionOutcome
    reason: str | None = None
    watermark: int = 0
    held_back_by: str | None = None
    messages_before: int = 0
    messages_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0
    plan: str | None = None

    @property
    def bytes_reclaimed(self) -> int:
        """The difference in size."""
        return self.bytes_before - self.bytes_after

    def to_json(self) -> str:
        """The row in the control plane."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "CompactionRecord":
        """The record in a row."""
        row = json.loads(text)
        return cls(**{**row, "outcome": CompactionOutcome(row["outcome"])})


def record_compaction(control: LogControl, record: CompactionRecord) -> None:
    """Record a compaction that changed nothing else."""
    control.amend_log([HEAD], lambda snapshot: (one_more(control, record), None))


def one_more(control: LogControl, record: CompactionRecord) -> Change:
    """The change that records a compaction, and removes the oldest record where there are more than ``MOST``.

    Call it while a change of the log object is being decided: where another process adds a record meanwhile,
    the commit fails because the version differs.
    """
    newest = control.scan_log(PREFIX, 1).rows
    number = int(next(iter(newest)).removeprefix(PREFIX)) + 1 if newest else 1
    oldest = [_row(number - MOST)] if number > MOST else []
    return Change({_row(number): record.to_json()}, oldest)


def compactions(control: LogControl, limit: int = MOST) -> list[CompactionRecord]:
    """The newest compactions, oldest first."""
    rows = control.scan_log(PREFIX, limit).rows
    return [CompactionRecord.from_json(body) for body in rows.values()]


def _row(number: int) -> str:
    return f"{PREFIX}{number:020d}"
