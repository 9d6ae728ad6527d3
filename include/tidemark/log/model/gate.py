"""The log's gate: why nothing new may become part of the log, until the cause is gone or a person says so.

A closed gate is durable and says what it is about: lost offsets, or a capture that failed its audit. What is
published already stays readable.
"""

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.model.loss import Loss, loss_from


class LogGateCause(StrEnum):
    """What closes the gate of a log."""

    LOST = "lost"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class LogGate:
    """A closed gate; an open one is no row at all."""

    cause: LogGateCause
    reason: str
    """One sentence: what is wrong."""
    t: int | None
    """The binding it is about; None when the offsets were never bound."""
    ids: tuple[int, int] | None
    """The first and last id it is about."""
    losses: tuple[Loss, ...]
    captured: str | None
    """The digest of the capture that failed its audit."""
    at: int
    """When it was closed, in µs."""

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "LogGate":
        """The gate a row holds."""
        row = json.loads(text)
        ids = tuple(row["ids"]) if row["ids"] else None
        losses = tuple(loss_from(loss) for loss in row["losses"])
        return cls(**{**row, "cause": LogGateCause(row["cause"]), "ids": ids, "losses": losses})

    def is_about(self, other: "LogGate") -> bool:
        """Whether both say the same, whenever they were closed."""
        return replace(self, at=other.at) == other


@with_fields
class LogStopped(LogError):
    """The log's gate is closed: nothing new is bound or published."""

    needs_person = True

    pipeline: str
    gate: LogGate

    def __str__(self) -> str:
        ids = f" (ids {self.gate.ids[0]} to {self.gate.ids[1]})" if self.gate.ids else ""
        return (
            f"{self.pipeline}: the log's gate is closed: {self.gate.reason}{ids}. Nothing was published. "
            "Put the cause right and clear the failed task, or accept it: tidemark log accept "
            f'{self.pipeline} --reason "…"'
        )
