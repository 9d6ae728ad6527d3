"""The history of a log's compactions: what each one reclaimed and how long it took, or why it did nothing.

Kept in the log object, the newest ones. Says nothing about the log itself: what was compacted is in the
manifest.
"""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from tidemark.consensus.objects import Change
from tidemark.log.state.control import HEAD, LogControl

PREFIX = "compaction/"
MOST = 500


class CompactionOutcome(StrEnum):
    """What became of a compaction.

    Attributes:
        COMPACTED: Its manifest became the log.
        NOTHING_TO_DO: No message was obsolete.
        REFUSED: It was not carried out, and the record says why; the log is as it was.
    """

    COMPACTED = "compacted"
    NOTHING_TO_DO = "nothing to do"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class CompactionRecord:
    """One compaction."""

    at: int
    """When it ended, in µs."""
    by: str
    policy: str
    outcome: CompactionOutcome
    reason: str | None = None
    """Why it was refused."""
    watermark: int = 0
    """Only ids below it were looked at."""
    held_back_by: str | None = None
    """The writer, or what else, without which the watermark would be higher."""
    messages_before: int = 0
    messages_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0

    @property
    def bytes_reclaimed(self) -> int:
        """By how much the log is smaller."""
        return self.bytes_before - self.bytes_after

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "CompactionRecord":
        """The record a row holds."""
        row = json.loads(text)
        return cls(**{**row, "outcome": CompactionOutcome(row["outcome"])})


def record_compaction(control: LogControl, record: CompactionRecord) -> None:
    """Put a compaction on record that changed nothing else."""
    control.amend_log([HEAD], lambda snapshot: (one_more(control, record), None))


def one_more(control: LogControl, record: CompactionRecord) -> Change:
    """What puts a compaction on record; of very many the oldest are forgotten.

    To be asked while a change of the log object is decided: should somebody add one meanwhile, that change is
    refused, because the version is another.
    """
    newest = control.scan_log(PREFIX, 1).rows
    number = int(next(iter(newest)).removeprefix(PREFIX)) + 1 if newest else 1
    gone = [_row(number - MOST)] if number > MOST else []
    return Change({_row(number): record.to_json()}, gone)


def compactions(control: LogControl, limit: int = MOST) -> list[CompactionRecord]:
    """The newest compactions, oldest first."""
    rows = control.scan_log(PREFIX, limit).rows
    return [CompactionRecord.from_json(body) for body in rows.values()]


def _row(number: int) -> str:
    return f"{PREFIX}{number:020d}"
