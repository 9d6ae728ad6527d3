"""The declared shape of a topic, the shape it has, and the report of differences. Pure, without a client.

An existing topic is judged and never changed: more partitions would move keys, and a shorter retention would
remove records. A topic with ``cleanup.policy=compact`` is refused: its records vanish one by one, so that a
second read of the same offsets would differ.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

FOREVER = -1
"""The value of ``retention.ms`` for records that are never removed by age."""


class TopicTimestamps(StrEnum):
    """The timestamps of a topic's records, as Kafka's ``message.timestamp.type`` names them.

    Attributes:
        CREATED: Given by the producers.
        APPENDED: Given by the broker when it appends a record.
    """

    CREATED = "CreateTime"
    APPENDED = "LogAppendTime"


@dataclass(frozen=True, slots=True)
class TopicShape:
    """The declared shape of a topic; None stands for the broker's default."""

    partitions: int | None = None
    replication: int | None = None
    retention_ms: int | None = None
    """``FOREVER``: no record is removed by its age."""
    timestamps: TopicTimestamps | None = None

    def over(self, other: "TopicShape") -> "TopicShape":
        """This shape, completed from the other where it has None."""
        pairs = zip(asdict(self).items(), asdict(other).values(), strict=True)
        return TopicShape(**{key: theirs if ours is None else ours for (key, ours), theirs in pairs})


@dataclass(frozen=True, slots=True)
class TopicFound:
    """The shape of an existing topic."""

    name: str
    partitions: int
    replication: int
    retention_ms: int
    cleanup_policy: str
    timestamps: str = TopicTimestamps.CREATED

    @property
    def said(self) -> str:
        """The shape as text."""
        copies = "copy" if self.replication == 1 else "copies"
        parts = "partition" if self.partitions == 1 else "partitions"
        return f"{self.partitions} {parts}, {self.replication} {copies}, records {_kept(self.retention_ms)}"

    def differences(self, wanted: TopicShape) -> list[str]:
        """The differences from the declared shape, one phrase each."""
        found = []
        if wanted.partitions not in (None, self.partitions):
            found.append(f"has {self.partitions} partitions instead of {wanted.partitions}")
        if wanted.replication not in (None, self.replication):
            found.append(f"has {self.replication} copies instead of {wanted.replication}")
        if wanted.retention_ms is not None and wanted.retention_ms != self.retention_ms:
            found.append(f"keeps records {_kept(self.retention_ms)} instead of {_kept(wanted.retention_ms)}")
        if wanted.timestamps not in (None, self.timestamps):
            found.append(f"has message.timestamp.type={self.timestamps} instead of {wanted.timestamps}")
        return found


class CreationOutcome(StrEnum):
    """The outcome of creating one topic.

    Attributes:
        CREATED: It was created.
        EXISTS: It existed before and was not changed, whether it is as requested or not.
        REFUSED: It cannot be used, or Kafka did not create it.
    """

    CREATED = "created"
    EXISTS = "exists"
    REFUSED = "refused"


@dataclass(frozen=True)
class TopicOutcome:
    """One topic after the attempt to create it.

    Attributes:
        topic: The topic's name.
        outcome: What was done.
        found: The topic as it is now; None where it does not exist.
        problem: Why it is not as requested, with what to do, in one sentence; None where it is.
    """

    topic: str
    outcome: CreationOutcome
    found: TopicFound | None
    problem: str | None = None

    @property
    def line(self) -> str:
        """The outcome as one line of text."""
        shown = f"{self.topic}: {self.outcome}" + (f": {self.found.said}" if self.found else "")
        return f"{shown}. {self.problem}" if self.problem else shown

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        found = asdict(self.found) if self.found else {}
        return {"topic": self.topic, "outcome": self.outcome.value, "problem": self.problem} | {
            key: value for key, value in found.items() if key != "name"
        }


def judge(found: TopicFound, wanted: TopicShape) -> TopicOutcome:
    """The outcome for an existing topic."""
    if "compact" in found.cleanup_policy:
        problem = (
            f"It has cleanup.policy={found.cleanup_policy}, so its records vanish one by one. It was not "
            "changed. Set cleanup.policy=delete, or use another topic."
        )
        return TopicOutcome(found.name, CreationOutcome.REFUSED, found, problem)
    differences = found.differences(wanted)
    if not differences:
        return TopicOutcome(found.name, CreationOutcome.EXISTS, found)
    problem = (
        f"It {' and '.join(differences)}; it was not changed, because records could move or vanish. "
        "Correct what is asked for, or change the topic with Kafka's own tools."
    )
    return TopicOutcome(found.name, CreationOutcome.EXISTS, found, problem)


def _kept(retention_ms: int) -> str:
    if retention_ms == FOREVER:
        return "for ever"
    seconds, left = divmod(retention_ms, 1000)
    if left:
        return f"for {retention_ms} ms"
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"for {seconds // size}{unit}"
    return f"for {seconds}s"
