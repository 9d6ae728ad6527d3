"""The log's gate: while it is closed, nothing new is bound or published.

A closed gate is durable and names its cause: lost offsets, another number of partitions where that is fixed,
or a capture that failed its audit. It opens when the cause is gone or an operator accepts it. Published
messages stay readable.
"""

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.model.fixed_partitions import PartitionChange
from tidemark.log.model.loss import Loss, loss_from


class LogGateCause(StrEnum):
    """Why a log's gate is closed.

    Attributes:
        LOST: Kafka no longer has offsets that the log needs.
        AUDIT: A capture failed its audit.
        PARTITIONS: A topic has another number of partitions than the one by which partitions are computed.
    """

    LOST = "lost"
    AUDIT = "audit"
    PARTITIONS = "partitions"


@dataclass(frozen=True, slots=True)
class LogGate:
    """A closed gate. An open gate has no row.

    Attributes:
        cause: Why it is closed.
        reason: The problem in one sentence.
        t: The affected binding; None where the offsets were never bound.
        ids: The first and last affected id; None where the offsets were never bound.
        losses: The lost offsets; empty after a failed audit.
        captured: The digest of the capture that failed its audit; None where offsets are lost.
        at: When it was closed, in µs.
        partitions: The topics with another number of partitions.
    """

    cause: LogGateCause
    reason: str
    t: int | None
    ids: tuple[int, int] | None
    losses: tuple[Loss, ...]
    captured: str | None
    at: int
    partitions: tuple[PartitionChange, ...] = ()

    @property
    def problem(self) -> str:
        """The reason with the affected ids, for messages."""
        return f"{self.reason} (ids {self.ids[0]} to {self.ids[1]})" if self.ids else self.reason

    def to_json(self) -> str:
        """The row in the control plane."""
        row = asdict(self)
        if not self.partitions:  # processes of earlier versions do not know the field
            del row["partitions"]
        return json.dumps(row)

    @classmethod
    def from_json(cls, text: str) -> "LogGate":
        """The gate in a row."""
        row = json.loads(text)
        ids = tuple(row["ids"]) if row["ids"] else None
        losses = tuple(loss_from(loss) for loss in row["losses"])
        changes = tuple(PartitionChange(*one) for one in row.get("partitions", ()))
        own = {"ids": ids, "losses": losses, "partitions": changes}
        return cls(**{**row, "cause": LogGateCause(row["cause"]), **own})

    def is_about(self, other: "LogGate") -> bool:
        """Whether both gates are the same, apart from when they were closed."""
        return replace(self, at=other.at) == other


@with_fields
class LogStopped(LogError):
    """The log's gate is closed: nothing new is bound or published."""

    needs_person = True

    pipeline: str
    gate: LogGate

    text = (
        "{pipeline}: the log's gate is closed: {gate.problem}. Nothing was published. Put the cause right "
        'and clear the failed task, or accept it: tidemark log accept {pipeline} --reason "…"'
    )
