"""What a journal's client refuses or cannot do: errors with fields, each with the way out.

An answer is whole or an error. A read that has begun hands out events in their order; when it raises, what
it handed out before is right, but not all there is.
"""

from typing import Any

from tidemark.errors import TidemarkError

_PREFIX = "Events handed out before are right, but not all there are"


class ClientError(TidemarkError):
    """The root of what goes wrong with one entity of a journal."""

    def __init__(self, topic: str, key: str, problem: str) -> None:
        super().__init__(f"{topic}/{key or '(empty key)'}: {problem}")
        self.topic, self.key, self.problem = topic, key, problem


class BadInput(ClientError, ValueError):
    """What was to be sent, or asked for, cannot be."""

    def __init__(self, topic: str, key: Any, problem: str) -> None:
        shown = key if isinstance(key, str) else repr(key)
        super().__init__(topic, shown.encode("utf-8", "replace").decode(), f"{problem} Nothing was sent.")
        if key is None:  # it is about the journal as a whole
            self.key, self.args = "", (f"{topic}: {self.problem}",)


class Conflict(ClientError):
    """The entity is not as the caller of an append takes it to be."""

    def __init__(self, topic: str, key: str, expected: int, last: int | None) -> None:
        is_there = "there is no such entity" if last is None else f"its last event is {last}"
        super().__init__(
            topic,
            key,
            f"the last event was expected to be {expected}, but {is_there}: another process was faster, or "
            "an earlier append did arrive. Nothing was sent. Read the entity again and decide anew.",
        )
        self.expected, self.last = expected, last


class Misplaced(ClientError):
    """The entity's key leads to another partition than the one that its tables were filled from."""

    needs_person = True

    def __init__(self, topic: str, key: str, kept: int, partition: int) -> None:
        super().__init__(
            topic,
            key,
            f"it is kept for partition {kept}, and its key leads to partition {partition} now: the topic got "
            "more partitions, or another partitioner was used. Replication would stop there. Nothing was "
            "sent. Move the entities to a new topic with the new number of partitions.",
        )
        self.kept, self.partition = kept, partition


class BadEvent(TidemarkError, ValueError):
    """An event that no reader could take back."""

    def __init__(self, seq_nr: Any, problem: str) -> None:
        super().__init__(f"Event {seq_nr}: {problem}. Nothing was sent.")
        self.seq_nr, self.problem = seq_nr, problem


class NoJournalTopic(TidemarkError):
    """The topic of a journal does not exist."""

    def __init__(self, topic: str, servers: str) -> None:
        super().__init__(
            f"Kafka has no topic {topic} at {servers}. Nothing was sent. Create it with the partitions it "
            "shall keep (tidemark topics create PIPELINE), or correct the name."
        )
        self.topic, self.servers = topic, servers


class NotSent(ClientError):
    """Kafka did not take an action."""

    def __init__(self, topic: str, key: str, action: str, reason: str, *, is_certain: bool) -> None:
        outcome = (
            "It is not in the journal"
            if is_certain
            else "Whether it is in the journal is not known: read it, or ask for its pointer, before it is "
            "sent again"
        )
        super().__init__(topic, key, f"the {action} was not acknowledged ({reason.rstrip('.')}). {outcome}.")
        self.action, self.reason, self.is_certain = action, reason, is_certain


class TablesUnreadable(ClientError):
    """Cassandra did not answer."""

    def __init__(self, topic: str, key: str, what: str, reason: str) -> None:
        super().__init__(
            topic, key, f"Cassandra did not give {what} ({reason.rstrip('.')}). {_PREFIX}. Read again."
        )
        self.what, self.reason = what, reason


class TailUnreadable(ClientError):
    """Kafka did not hand over the tail."""

    def __init__(self, topic: str, key: str, partition: int, offset: int, mark: int, reason: str) -> None:
        super().__init__(
            topic,
            key,
            f"partition {partition} could not be read from offset {offset} up to {mark} "
            f"({reason.rstrip('.')}). {_PREFIX}. Read again.",
        )
        self.partition, self.offset, self.mark, self.reason = partition, offset, mark, reason


class TailLost(ClientError):
    """Records that Cassandra does not have yet are not in Kafka any more."""

    needs_person = True

    def __init__(self, topic: str, key: str, partition: int, pointer: int | None, first: int) -> None:
        has = "has no pointer for it" if pointer is None else f"has it up to offset {pointer}"
        super().__init__(
            topic,
            key,
            f"offset {first} of partition {partition} is not in Kafka any more, and Cassandra {has}: what "
            f"lies between cannot be read. {_PREFIX}. If the pipeline has captured the records, let it "
            "deliver them (tidemark status) and read again; if not, they are lost (tidemark log accept).",
        )
        self.partition, self.pointer, self.first = partition, pointer, first


class PointerBeyondEnd(ClientError):
    """The tables claim to have more than there is: the topic was made again, or truncated."""

    needs_person = True

    def __init__(self, topic: str, key: str, partition: int, pointer: int, end: int) -> None:
        super().__init__(
            topic,
            key,
            f"Cassandra has partition {partition} up to offset {pointer}, but Kafka's next offset there is "
            f"{end}: the topic was made again or truncated, or these are the tables of another one. Nothing "
            "was read. Give the new topic a keyspace of its own, or correct the keyspace.",
        )
        self.partition, self.pointer, self.end = partition, pointer, end


class TopicRecreated(ClientError):
    """The topic is not the one that the tables were filled from: it was deleted and made again."""

    needs_person = True

    def __init__(
        self,
        topic: str,
        key: str,
        keyspace: str,
        pipeline: str | None,
        known: str,
        found: str,
        *,
        is_accepted: bool,
    ) -> None:
        if pipeline is None:
            last, way = "this client began with", "Find out what became of the old one before you go on"
        elif is_accepted:
            last = f"keyspace {keyspace} was filled by pipeline {pipeline} from"
            way = "Read and append through a journal writer with a keyspace of its own (`start: recreated`)"
        else:
            last = f"pipeline {pipeline} bound last"
            way = (
                "Restore the old topic; or stop its producers, accept the loss (tidemark log accept "
                f"{pipeline}) and give the new topic a journal writer with a keyspace of its own (`start: "
                "recreated`)"
            )
        super().__init__(
            topic,
            key,
            f"the topic was deleted and made again: its id is {found}, but {last} {known}. Its offsets begin "
            f"anew, so what the tables have would hide what it has. Nothing was sent or handed out. {way}.",
        )
        self.keyspace, self.pipeline, self.known, self.found = keyspace, pipeline, known, found
        self.is_accepted = is_accepted


class TopicUnconfirmed(ClientError):
    """Kafka did not say which topic has the name."""

    def __init__(self, topic: str, key: str, reason: str) -> None:
        super().__init__(
            topic,
            key,
            f"Kafka did not say whether the topic is still the same ({reason.rstrip('.')}). Nothing was sent "
            "or handed out. Try again.",
        )
        self.reason = reason


class BadRecord(ClientError):
    """A record of the entity cannot be understood."""

    needs_person = True

    def __init__(self, topic: str, key: str, partition: int, offset: int, reason: str) -> None:
        super().__init__(
            topic,
            key,
            f"the record at offset {offset} of partition {partition} cannot be understood "
            f"({reason.rstrip('.')}). {_PREFIX}. Replication stops there too: see `tidemark gate show`.",
        )
        self.partition, self.offset, self.reason = partition, offset, reason


class DuplicateSeqNr(ClientError):
    """Two events have one number: two writers were at work."""

    needs_person = True

    def __init__(self, topic: str, key: str, seq_nr: int, expected: int, partition: int, offset: int) -> None:
        super().__init__(
            topic,
            key,
            f"event {seq_nr} of offset {offset} in partition {partition} came although event {expected} was "
            f"next: two writers used the same number. {_PREFIX}. Decide which one is right and append what "
            "is missing; the other can only be removed with a delete or a purge.",
        )
        self.seq_nr, self.expected, self.partition, self.offset = seq_nr, expected, partition, offset


class GapTooWide(ClientError):
    """The numbers jump so far that looking for the next event would take too long."""

    needs_person = True

    def __init__(self, topic: str, key: str, expected: int, seq_nr: int, segment_size: int) -> None:
        super().__init__(
            topic,
            key,
            f"the head says {seq_nr}, but from event {expected} on there is nothing in so many segments of "
            f"{segment_size} that the next event was not looked for any further. {_PREFIX}. Read from its "
            "number, if you know it.",
        )
        self.expected, self.seq_nr, self.segment_size = expected, seq_nr, segment_size


class ChangedWhileReading(ClientError):
    """Events were deleted or purged while they were read, or left Kafka before they were read there."""

    def __init__(self, topic: str, key: str, what: str, expected: int) -> None:
        super().__init__(
            topic,
            key,
            f"{what} while it was read, and event {expected} cannot be told any more. Events handed out "
            "before were there, but are not all there were. Read again.",
        )
        self.what, self.expected = what, expected


class NotAJournal(TidemarkError):
    """A pipeline does not say which journal is meant."""

    def __init__(self, pipeline: str, problem: str) -> None:
        super().__init__(f"{pipeline}: {problem} Nothing was sent.")
        self.pipeline, self.problem = pipeline, problem
