"""The state of a writer: position, gate, lease, and the records about it. Pure values.

A position is the last id that a writer has finished: written, filtered out or acknowledged by an operator.
Every id is a valid position, whether a message has it or not.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from tidemark.consensus.audit_trail import AuditEntry, AuditFormat
from tidemark.consensus.lease import Lease
from tidemark.log.model.binding import NOTHING_YET, TopicPartition

LEFT_OUT = "left/"
"""The prefix of the names of ``LeftOut`` rows."""
FORGET = "forget"
FORGET_PIPELINE = "forget pipeline"
"""The action in a writer's audit entries when it is forgotten, alone or with its pipeline."""


class Gate(StrEnum):
    """Whether a writer takes messages.

    Attributes:
        OPEN: Messages are delivered.
        STOPPED: Nothing is delivered until a resume or an operator opens it.
    """

    OPEN = "open"
    STOPPED = "stopped"


class Cause(StrEnum):
    """What closes a writer's gate.

    Attributes:
        MESSAGE: A message that cannot be decoded or transformed: its id is known.
        TARGET: The target refused or did not answer: only the range is known.
        HAND: An operator stopped the writer.
        VERIFICATION: The target differs from the log.
        REPLACED: The target was deleted and recreated: what was delivered is not in it.
        REPLICATOR: A kafka-journal replicator was found active on the writer's tables.
        TAINTED: Computing a binding again gave other rows than those that readers may have read.
        CODE: The functions of its transforms are not those that it was registered with.
    """

    MESSAGE = "message"
    TARGET = "target"
    HAND = "hand"
    VERIFICATION = "verification"
    REPLACED = "replaced"
    REPLICATOR = "replicator"
    TAINTED = "tainted"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class WriterGate:
    """A closed gate. An open gate is None.

    Attributes:
        cause: What closed it.
        first_id: The message that failed, or the first id of the range that did.
        last_id: The last id of the range.
        through: Up to this id messages are redelivered one at a time before the gate opens.
        reason: What is wrong, in one sentence.
        at: When it was closed, in µs.
        version: The writer's version when it was closed: distinguishes this closing from others.
        failures: How often the same message has failed.
    """

    cause: Cause
    first_id: int
    last_id: int
    through: int
    reason: str
    at: int
    version: int = 0
    failures: int = 1

    @property
    def where(self) -> str:
        """The id or the range of ids, for error texts."""
        return (
            f"id {self.first_id}"
            if self.first_id == self.last_id
            else f"ids {self.first_id} to {self.last_id}"
        )

    @property
    def is_about_messages(self) -> bool:
        """Whether it opens once the failed messages are delivered or acknowledged."""
        return self.cause in (Cause.MESSAGE, Cause.TARGET)

    def again(self, newer: "WriterGate") -> "WriterGate":
        """The gate after a further failure; repeated failures of the same message are counted."""
        same = (self.first_id, self.last_id, self.cause) == (newer.first_id, newer.last_id, newer.cause)
        return replace(
            newer, through=max(self.through, newer.through), failures=self.failures + 1 if same else 1
        )

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "WriterGate":
        """The gate that a row holds."""
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
class Ended:
    """That a consumer has ended for good: it delivers nothing, and compaction does not wait for it.

    Attributes:
        at: When, in µs.
        by: The process that ended it.
    """

    at: int
    by: str


@dataclass(frozen=True, slots=True)
class TopicStart:
    """A recreated topic that a writer began with.

    Attributes:
        number: How often the topic had been recreated; 0 would be the first topic of the name.
        first_id: The first id it has, or can have, in the log.
        topic_id: Kafka's topic id; None where nothing of it was bound yet.
    """

    number: int
    first_id: int
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A recreated topic that a writer leaves out.

    Attributes:
        topic: The topic's name.
        topic_id: Kafka's id of the topic that is left out.
        first_id: The first id that was left out.
        through: Messages are counted up to this id.
        messages: How many messages were left out.
        who: The operator who accepted the recreated topic.
        reason: Why, in their words.
        at: When, in µs.
    """

    topic: str
    topic_id: str | None
    first_id: int
    through: int
    messages: int
    who: str
    reason: str
    at: int

    @property
    def row(self) -> str:
        """The name of its row in the writer's object."""
        return f"{LEFT_OUT}{self.topic}"

    def __str__(self) -> str:
        return (
            f"leaves out topic {self.topic}, which was made again: {self.messages} messages from id "
            f"{self.first_id} on (accepted by {self.who}: {self.reason})"
        )


@dataclass(frozen=True, slots=True)
class WriterState:
    """The state of a registered writer.

    Attributes:
        pipeline: The pipeline's name.
        name: The writer's name.
        version: The version of its object in the control plane.
        position: The last id it has finished; −1 for none.
        shape: The settings that determine its output, as they were at registration.
        gate: The closed gate; None where it is open.
        lease: The lease of the process that may move the position.
        token: The fencing token of the newest lease, held or not. Never reused, even where the writer is
            forgotten and registered again.
        reached: The highest position it ever had. Beyond it, only this writer can have written to its target.
        target: The id of the target it writes to; None for kinds of targets without one, and before it was
            stored.
        since: Its target should have every message from this id on; None where an older version registered
            it.
        starts: The recreated topics it began with (`start: recreated`); of all others it takes the first.
        handed_back: Set while the tables belong to a kafka-journal replicator: only a take-over opens the
            gate.
        theirs: The pointers that a kafka-journal replicator had written when its tables were last taken over
            by command: offsets up to there count as written by it.
        ended: Set once the consumer has ended: its object is a tombstone then, and never changes again.
    """

    pipeline: str
    name: str
    version: int
    position: int
    shape: Mapping[str, Any]
    gate: WriterGate | None = None
    lease: Lease | None = None
    token: int = 0
    reached: int = NOTHING_YET
    target: str | None = None
    since: int | None = None
    starts: Mapping[str, TopicStart] = field(default_factory=dict)
    handed_back: HandedBack | None = None
    theirs: Mapping[TopicPartition, int] = field(default_factory=dict)
    ended: Ended | None = None

    @property
    def expects_anything(self) -> bool:
        """Whether its target should have messages."""
        return self.position >= (self.since or 0)

    def on_target(self, target: str | None, shape: Mapping[str, Any]) -> "WriterState":
        """The state with another target."""
        return replace(self, target=target, shape=shape)

    @property
    def first_position(self) -> int:
        """The lowest position that a rewind may set: the one it began with."""
        return min((one.first_id for one in self.starts.values()), default=0) - 1

    @property
    def status(self) -> Gate:
        """Whether the gate is open."""
        return Gate.OPEN if self.gate is None else Gate.STOPPED

    def held_at(self, now: int) -> Lease | None:
        """The lease, where it has not expired at ``now``; None otherwise."""
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
            **({"ended": asdict(self.ended)} if self.ended else {}),
        }

    @classmethod
    def from_row(cls, pipeline: str, name: str, version: int, row: Mapping[str, Any]) -> "WriterState":
        """The state that a row holds, also one of an older version."""
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
            Ended(**row["ended"]) if row.get("ended") else None,
        )


class OffsetEntryKind(StrEnum):
    """What moved a position.

    Attributes:
        COMMIT: Messages were delivered.
        REWIND: An operator moved the position back: the only kind that makes it smaller.
        ACKNOWLEDGE: An operator acknowledged messages without writing them.
    """

    COMMIT = "commit"
    REWIND = "rewind"
    ACKNOWLEDGE = "acknowledge"


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """One entry of a writer's offset log.

    Attributes:
        kind: What moved the position.
        position: Where it was afterwards.
        at: When, in µs.
        by: The run, or the operator.
        reason: Why, for an operator's action; None for a run.
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
        """The entry that a row holds."""
        return cls(**{**row, "kind": OffsetEntryKind(row["kind"])})


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest entry of a writer's offset log, and the writer's state at the same version.

    Attributes:
        state: The writer's state.
        row: The name of the entry's row.
        entry: The entry.
    """

    state: WriterState
    row: str
    entry: OffsetEntry


WRITER_AUDIT = AuditFormat(about="keyspace")
"""The subject of forgetting a journal is its keyspace; rows of older versions lack it."""


def is_forgetting(deed: AuditEntry) -> bool:
    """Whether the action removed the writer's registration."""
    return deed.what in (FORGET, FORGET_PIPELINE)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Ids that an operator acknowledged in one action. Stored as long as the writer is registered.

    Attributes:
        ids: The ids, ascending.
        by: The operator.
        reason: Why; None where an older version wrote the row.
        at: When, in µs; None where an older version wrote the row.
    """

    ids: tuple[int, ...]
    by: str
    reason: str | None = None
    at: int | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Acknowledgement":
        """The acknowledgement that a row holds, also one of an older version."""
        return cls(tuple(row["ids"]), row.get("by", ""), row.get("reason"), row.get("at"))


@dataclass(frozen=True, slots=True)
class Redelivered:
    """An acknowledged message that was redelivered.

    Attributes:
        id: The message's id.
        by: The operator.
        reason: Why.
        at: When, in µs.
        in_place: Whether it is part of the writer's regular output now, as if it had never been acknowledged.
    """

    id: int
    by: str
    reason: str
    at: int
    in_place: bool


@dataclass(frozen=True, slots=True)
class WriterStanding:
    """Everything about a writer but its offset log, at one version.

    Attributes:
        state: The writer's state.
        namespaces: The last finished id of each namespace.
        acknowledged: The acknowledged ids.
        deeds: The audit entries, oldest first.
    """

    state: WriterState
    namespaces: Mapping[str, int]
    acknowledged: frozenset[int]
    deeds: tuple[AuditEntry, ...]

    def differences(self, later: "WriterStanding") -> list[str]:
        """The names of what has changed; versions and further audit entries are not compared."""
        then, now = self.state.to_row(), later.state.to_row()
        changed = [name for name in then if then[name] != now[name]]
        changed += ["namespaces"] * (self.namespaces != later.namespaces)
        changed += ["acknowledgements"] * (self.acknowledged != later.acknowledged)
        changed += ["deeds"] * (self.deeds != later.deeds[: len(self.deeds)])
        return changed
