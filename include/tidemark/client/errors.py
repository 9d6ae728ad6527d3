"""Errors of the journal client. Each has its facts as fields, and says what to do next.

A call returns a complete answer or raises. When an iterator raises, the events that it returned before are
correct, but not all there are.
"""

from dataclasses import field
from typing import Any

from tidemark.errors import TidemarkError, with_fields

_PREFIX = "Events handed out before are right, but not all there are"


@with_fields
class ClientError(TidemarkError):
    """The root of errors about one entity of a journal."""

    topic: str
    key: str

    def __str__(self) -> str:
        return f"{self.topic}/{self.key or '(empty key)'}: {self._problem()}"

    def _problem(self) -> str:
        return super().__str__()


@with_fields
class BadInput(ClientError, ValueError):
    """An argument is not valid. A ``key`` of None: the error is about the whole journal."""

    key: Any
    problem: str

    def __post_init__(self) -> None:
        given = self.key if isinstance(self.key, str) else repr(self.key)
        shown = given.encode("utf-8", "replace").decode()
        self._about = self.topic if self.key is None else f"{self.topic}/{shown or '(empty key)'}"
        self.key = "" if self.key is None else shown
        super().__post_init__()

    def __str__(self) -> str:
        return f"{self._about}: {self.problem} Nothing was sent."


@with_fields
class Conflict(ClientError):
    """The entity's last event is not the one that the caller of an append expected."""

    expected: int
    last: int | None

    def _problem(self) -> str:
        is_there = "there is no such entity" if self.last is None else f"its last event is {self.last}"
        return (
            f"the last event was expected to be {self.expected}, but {is_there}: another process was "
            "faster, or an earlier append did arrive. Nothing was sent. Read the entity again and decide "
            "anew."
        )


@with_fields
class Misplaced(ClientError):
    """The entity's key maps to another partition than the one that its tables were filled from."""

    needs_person = True

    kept: int
    partition: int

    text = (
        "it is kept for partition {kept}, and its key leads to partition {partition} now: the topic got more "
        "partitions, or another partitioner was used. Replication would stop there. Nothing was sent. Move "
        "the entities to a new topic with the new number of partitions."
    )


@with_fields
class BadEvent(TidemarkError, ValueError):
    """An event that readers could not decode."""

    seq_nr: Any
    problem: str

    text = "Event {seq_nr}: {problem}. Nothing was sent."


@with_fields
class NoJournalTopic(TidemarkError):
    """The topic of a journal does not exist."""

    topic: str
    servers: str

    text = (
        "Kafka has no topic {topic} at {servers}. Nothing was sent. Create it with the partitions it shall "
        "keep (tidemark topics create PIPELINE), or correct the name."
    )


@with_fields
class NotSent(ClientError):
    """Kafka did not acknowledge an action."""

    action: str
    reason: str
    is_certain: bool = field(kw_only=True)

    def _problem(self) -> str:
        outcome = (
            "It is not in the journal"
            if self.is_certain
            else (
                "Whether it is in the journal is not known: read it, or ask for its pointer, before it is "
                "sent again"
            )
        )
        return f"the {self.action} was not acknowledged ({self.reason.rstrip('.')}). {outcome}."


@with_fields
class TablesUnreadable(ClientError):
    """Cassandra did not answer.

    Attributes:
        what: What was read.
        reason: The driver's error.
    """

    what: str
    reason: str

    def _problem(self) -> str:
        return f"Cassandra did not give {self.what} ({self.reason.rstrip('.')}). {_PREFIX}. Read again."


@with_fields
class TailUnreadable(ClientError):
    """Kafka did not return the tail.

    Attributes:
        partition: The partition that was read.
        offset: The next offset to read.
        mark: The offset at which the read would have ended.
        reason: Kafka's error.
    """

    partition: int
    offset: int
    mark: int
    reason: str

    def _problem(self) -> str:
        return (
            f"partition {self.partition} could not be read from offset {self.offset} up to {self.mark} "
            f"({self.reason.rstrip('.')}). {_PREFIX}. Read again."
        )


@with_fields
class TailLost(ClientError):
    """Records that Cassandra does not have yet are not in Kafka any more."""

    needs_person = True

    partition: int
    pointer: int | None
    first: int

    def _problem(self) -> str:
        has = "has no pointer for it" if self.pointer is None else f"has it up to offset {self.pointer}"
        return (
            f"offset {self.first} of partition {self.partition} is not in Kafka any more, and Cassandra "
            f"{has}: what lies between cannot be read. {_PREFIX}. If the pipeline has captured the "
            "records, let it deliver them (tidemark status) and read again; if not, they are lost "
            "(tidemark log accept)."
        )


@with_fields
class PointerBeyondEnd(ClientError):
    """The tables' pointer is beyond the end of the partition: the topic was recreated or truncated."""

    needs_person = True

    partition: int
    pointer: int
    end: int

    text = (
        "Cassandra has partition {partition} up to offset {pointer}, but Kafka's next offset there is {end}: "
        "the topic was made again or truncated, or these are the tables of another one. Nothing was read. "
        "Give the new topic a keyspace of its own, or correct the keyspace."
    )


@with_fields
class TopicRecreated(ClientError):
    """The topic was deleted and recreated since the tables were filled from it."""

    needs_person = True

    keyspace: str
    pipeline: str | None
    known: str
    found: str
    is_accepted: bool = field(kw_only=True)

    def _problem(self) -> str:
        if self.pipeline is None:
            last, way = ("this client began with", "Find out what became of the old one before you go on")
        elif self.is_accepted:
            last = f"keyspace {self.keyspace} was filled by pipeline {self.pipeline} from"
            way = "Read and append through a journal writer with a keyspace of its own (`start: recreated`)"
        else:
            last = f"pipeline {self.pipeline} bound last"
            way = (
                "Restore the old topic; or stop its producers, accept the loss (tidemark log accept "
                f"{self.pipeline}) and give the new topic a journal writer with a keyspace of its own "
                "(`start: recreated`)"
            )
        return (
            f"the topic was deleted and made again: its id is {self.found}, but {last} {self.known}. Its "
            "offsets begin anew, so what the tables have would hide what it has. Nothing was sent or "
            f"handed out. {way}."
        )


@with_fields
class TopicUnconfirmed(ClientError):
    """Kafka did not return the topic's id."""

    reason: str

    def _problem(self) -> str:
        return (
            f"Kafka did not say whether the topic is still the same ({self.reason.rstrip('.')}). Nothing "
            "was sent or handed out. Try again."
        )


@with_fields
class BadRecord(ClientError):
    """A record of the entity cannot be decoded.

    Attributes:
        partition: The record's partition.
        offset: The record's offset.
        reason: The decoder's error.
    """

    needs_person = True

    partition: int
    offset: int
    reason: str

    def _problem(self) -> str:
        return (
            f"the record at offset {self.offset} of partition {self.partition} cannot be understood "
            f"({self.reason.rstrip('.')}). {_PREFIX}. Replication stops there too: see `tidemark gate "
            "show`."
        )


@with_fields
class DuplicateSeqNr(ClientError):
    """Two events have the same sequence number: two processes appended to the entity.

    Attributes:
        seq_nr: The number that came.
        expected: The number that should have come.
        partition: The partition of the event's record.
        offset: The offset of the event's record.
    """

    needs_person = True

    seq_nr: int
    expected: int
    partition: int
    offset: int

    def _problem(self) -> str:
        return (
            f"event {self.seq_nr} of offset {self.offset} in partition {self.partition} came although "
            f"event {self.expected} was next: two writers used the same number. {_PREFIX}. Decide which "
            "one is right and append what is missing; the other can only be removed with a delete or a "
            "purge."
        )


@with_fields
class GapTooWide(ClientError):
    """The gap in the sequence numbers is too wide to search for the next event.

    Attributes:
        expected: The first number of the gap.
        seq_nr: The last number of the entity.
        segment_size: How many numbers a segment of the tables has.
    """

    needs_person = True

    expected: int
    seq_nr: int
    segment_size: int

    def _problem(self) -> str:
        return (
            f"the head says {self.seq_nr}, but from event {self.expected} on there is nothing in so many "
            f"segments of {self.segment_size} that the next event was not looked for any further. "
            f"{_PREFIX}. Read from its number, if you know it."
        )


@with_fields
class ChangedWhileReading(ClientError):
    """Events were deleted or purged during the read, or Kafka removed them before they were read."""

    what: str
    expected: int

    text = (
        "{what} while it was read, and event {expected} cannot be told any more. Events handed out before "
        "were there, but are not all there were. Read again."
    )


@with_fields
class NotAJournal(TidemarkError):
    """The journal cannot be determined from the pipeline and the arguments."""

    pipeline: str
    problem: str

    text = "{pipeline}: {problem} Nothing was sent."
