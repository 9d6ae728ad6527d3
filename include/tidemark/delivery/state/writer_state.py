"""What is known of a writer: its position, its gate and who holds it. Pure values.

A position is the last id a writer has finished with: written, filtered out or acknowledged by a person. Every
id is a valid one, whether a message has it or not.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from tidemark.consensus.audit_trail import AuditEntry, AuditFormat
from tidemark.consensus.lease import Lease
from tidemark.log.model.binding import NOTHING_YET, TopicPartition

LEFT_OUT = "left/"
"""What the rows of ``LeftOut`` begin with."""
FORGET = "forget"
FORGET_PIPELINE = "forget pipeline"
"""What is kept among a writer's deeds, which outlive it, when it is forgotten, alone or with its pipeline."""


class Gate(StrEnum):
    """Whether a writer takes messages."""

    OPEN = "open"
    STOPPED = "stopped"


class Cause(StrEnum):
    """What closes a writer's gate."""

    MESSAGE = "message"
    """A message that cannot be understood or transformed: its id is known."""
    TARGET = "target"
    """The target refused or did not answer: only the range is known."""
    HAND = "hand"
    """A person stopped it."""
    VERIFICATION = "verification"
    """The target does not hold what the log says."""
    REPLACED = "replaced"
    """The target was deleted and made again: what was delivered is not in it."""
    REPLICATOR = "replicator"
    """A kafka-journal replicator was found at work on the writer's tables."""


@dataclass(frozen=True, slots=True)
class WriterGate:
    """A closed gate; an open one is none at all."""

    cause: Cause
    first_id: int
    last_id: int
    """The message that failed, or the range it is in."""
    through: int
    """Up to here messages are redelivered one at a time before the gate opens."""
    reason: str
    """One sentence: what is wrong."""
    at: int
    """When it was closed."""
    version: int = 0
    """The writer's version when it was closed: another one is another closing."""
    failures: int = 1
    """How often the same message has failed."""

    @property
    def where(self) -> str:
        """The id or the range, for people."""
        return (
            f"id {self.first_id}"
            if self.first_id == self.last_id
            else f"ids {self.first_id} to {self.last_id}"
        )

    @property
    def is_about_messages(self) -> bool:
        """Whether it opens when what failed is delivered or acknowledged."""
        return self.cause in (Cause.MESSAGE, Cause.TARGET)

    def again(self, newer: "WriterGate") -> "WriterGate":
        """The gate after another failure: the same message is counted."""
        same = (self.first_id, self.last_id, self.cause) == (newer.first_id, newer.last_id, newer.cause)
        return replace(
            newer, through=max(self.through, newer.through), failures=self.failures + 1 if same else 1
        )

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "WriterGate":
        """The gate a row holds."""
        return cls(**{**row, "cause": Cause(row["cause"])})


@dataclass(frozen=True, slots=True)
class HandedBack:
    """Since when a kafka-journal replicator may have written the writer's tables.

    Attributes:
        at: When they were handed back, in µs.
        by: The operator that handed them back, or the run that found the replicator at work.
        reason: Why.
    """

    at: int
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class TopicStart:
    """Where a writer began with a topic that was made again."""

    number: int
    """Of the topic, counted by the acceptances: 0 would be the first of the name."""
    first_id: int
    """The first id it has, or can have, in the log."""
    topic_id: str | None = None
    """Kafka's; None where nothing of it was bound yet."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A topic that a writer goes on without, because another one has its name now: on record with counts."""

    topic: str
    topic_id: str | None
    """Kafka's id of the topic that is left out."""
    first_id: int
    """The first id of it that was left out."""
    through: int
    """Up to this id its messages are counted."""
    messages: int
    who: str
    reason: str
    """Who accepted that the topic was made again, and why."""
    at: int

    @property
    def row(self) -> str:
        """The name of its row."""
        return f"{LEFT_OUT}{self.topic}"

    def __str__(self) -> str:
        return (
            f"leaves out topic {self.topic}, which was made again: {self.messages} messages from id "
            f"{self.first_id} on (accepted by {self.who}: {self.reason})"
        )


@dataclass(frozen=True, slots=True)
class WriterState:
    """A registered writer."""

    pipeline: str
    name: str
    version: int
    position: int
    shape: Mapping[str, Any]
    """The settings that shape its output, as they were at registration."""
    gate: WriterGate | None = None
    lease: Lease | None = None
    """Who alone may move the position, and until when."""
    token: int = 0
    """The newest lease's token, whether it is still held or not; never comes back, also where the writer was
    forgotten and registered again."""
    reached: int = NOTHING_YET
    """The highest position it ever had: beyond it, nobody but this writer can have been at its target."""
    target: str | None = None
    """The id of the target it writes to, where that kind of target has one; None before one was kept."""
    since: int | None = None
    """From this id on its target is to have what it took; None where an older version registered it."""
    starts: Mapping[str, TopicStart] = field(default_factory=dict)
    """The topics made again with which it began (`start: recreated`); of all others it takes the first."""
    handed_back: HandedBack | None = None
    """Set while the tables are a kafka-journal replicator's: only a take-over opens the gate."""
    theirs: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The pointers that a kafka-journal replicator had left when its tables were last taken over by command:
    offsets up to there count as written by it."""

    @property
    def expects_anything(self) -> bool:
        """Whether something is to be in its target."""
        return self.position >= (self.since or 0)

    def on_target(self, target: str | None, shape: Mapping[str, Any]) -> "WriterState":
        """The same writer with another target."""
        return replace(self, target=target, shape=shape)

    @property
    def first_position(self) -> int:
        """The position it began with: there is nothing for it at or below."""
        return min((one.first_id for one in self.starts.values()), default=0) - 1

    @property
    def status(self) -> Gate:
        """Whether it takes messages."""
        return Gate.OPEN if self.gate is None else Gate.STOPPED

    def held_at(self, now: int) -> Lease | None:
        """The lease, where somebody holds it."""
        return self.lease if self.lease and self.lease.is_held_at(now) else None

    def to_row(self) -> dict[str, Any]:
        """The row as the control plane keeps it."""
        return {
            "position": self.position,
            "shape": dict(self.shape),
            "gate": asdict(self.gate) if self.gate else None,
            "lease": asdict(self.lease) if self.lease else None,
            "token": self.token,
            "reached": self.reached,
            "target": self.target,
            "since": self.since,
            "starts": {topic: asdict(start) for topic, start in self.starts.items()},
            "handed_back": asdict(self.handed_back) if self.handed_back else None,
            "theirs": [[*place, offset] for place, offset in sorted(self.theirs.items())],
        }

    @classmethod
    def from_row(cls, pipeline: str, name: str, version: int, row: Mapping[str, Any]) -> "WriterState":
        """The state a row holds."""
        return cls(
            pipeline,
            name,
            version,
            row["position"],
            row["shape"],
            WriterGate.from_row(row["gate"]) if row["gate"] else None,
            Lease(**row["lease"]) if row["lease"] else None,
            row["token"],
            row.get("reached", row["position"]),
            row.get("target"),
            row.get("since"),
            {topic: TopicStart(**start) for topic, start in row.get("starts", {}).items()},
            HandedBack(**row["handed_back"]) if row.get("handed_back") else None,
            {(topic, partition): offset for topic, partition, offset in row.get("theirs", ())},
        )


class OffsetEntryKind(StrEnum):
    """What moved a position.

    Attributes:
        COMMIT: Messages were delivered.
        REWIND: An operator went back: the only kind that makes a position smaller.
        ACKNOWLEDGE: An operator let messages pass unwritten.
    """

    COMMIT = "commit"
    REWIND = "rewind"
    ACKNOWLEDGE = "acknowledge"


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """One line of a writer's offset log.

    Attributes:
        kind: What moved the position.
        position: Where it was afterwards.
        at: When, in µs.
        by: The run, or the operator.
        reason: Why, where an operator did it.
        namespaces: The last finished id of every namespace that this moved.
    """

    kind: OffsetEntryKind
    position: int
    at: int
    by: str
    reason: str | None = None
    namespaces: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "OffsetEntry":
        """The entry a row holds."""
        return cls(**{**row, "kind": OffsetEntryKind(row["kind"])})


@dataclass(frozen=True, slots=True)
class Newest:
    """Where a writer's offset log ends, and the writer itself, at the same version."""

    state: WriterState
    row: str
    entry: OffsetEntry


WRITER_AUDIT = AuditFormat(about="keyspace")
"""Of a journal that is forgotten, the subject is where it wrote; rows of older versions do not say it."""


def is_forgetting(deed: AuditEntry) -> bool:
    """Whether the writer was not registered any more after it."""
    return deed.what in (FORGET, FORGET_PIPELINE)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Ids that an operator let pass unwritten at once; kept as long as the writer is."""

    ids: tuple[int, ...]
    by: str
    reason: str | None = None
    """None where an older version wrote the row."""
    at: int | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Acknowledgement":
        """The acknowledgement a row holds."""
        return cls(tuple(row["ids"]), row.get("by", ""), row.get("reason"), row.get("at"))


@dataclass(frozen=True, slots=True)
class Redelivered:
    """A message that was acknowledged and written after all."""

    id: int
    by: str
    reason: str
    at: int
    in_place: bool
    """Whether it is part of the writer's regular output now, as if it had never been let pass."""


@dataclass(frozen=True, slots=True)
class WriterStanding:
    """All that is known of a writer but its offset log, at one version."""

    state: WriterState
    namespaces: Mapping[str, int]
    acknowledged: frozenset[int]
    deeds: tuple[AuditEntry, ...]

    def differences(self, later: "WriterStanding") -> list[str]:
        """What is not as it was, in words; versions and further deeds are not compared."""
        then, now = self.state.to_row(), later.state.to_row()
        changed = [name for name in then if then[name] != now[name]]
        changed += ["namespaces"] * (self.namespaces != later.namespaces)
        changed += ["acknowledgements"] * (self.acknowledged != later.acknowledged)
        changed += ["deeds"] * (self.deeds != later.deeds[: len(self.deeds)])
        return changed
