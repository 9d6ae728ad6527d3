"""What can be wrong with a message or with a history: errors with fields, so that a caller can act on them.

They are ``ValueError`` too, because each is about a value that was given.
"""

from tidemark.errors import TidemarkError, with_fields


class JournalError(TidemarkError, ValueError):
    """The root of everything this package raises on purpose."""


@with_fields
class Undecodable(JournalError):
    """A message says that it is an action, but cannot be understood. It is never skipped.

    The codecs know only the reason; whoever knows where the message came from says so with ``at``.
    """

    reason: str
    partition: int | None = None
    offset: int | None = None
    message_id: int | None = None

    def at(self, partition: int, offset: int, message_id: int) -> "Undecodable":
        """The same error, with the place of the message."""
        return Undecodable(self.reason, partition, offset, message_id)

    def __str__(self) -> str:
        if self.offset is None:
            return self.reason
        return (
            f"message {self.message_id} (partition {self.partition}, offset {self.offset}): {self.reason}. "
            "Nothing of it, and nothing after it, was applied to its entity."
        )


@with_fields
class Unwritable(JournalError):
    """An action that no reader could take back: it was not turned into a Kafka record."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@with_fields
class Repartitioned(JournalError):
    """An entity turned up in another Kafka partition than its head's: their offsets cannot be compared."""

    topic: str
    key: str
    head_partition: int
    partition: int
    offset: int

    text = (
        "{topic}: entity {key!r} is kept for partition {head_partition}, but offset {offset} of partition "
        "{partition} is about it too. Nothing of that message was applied: the number of partitions or the "
        "partitioner of the producers has changed. Give the producers the old partitioner, or move them to a "
        "new topic with the new number of partitions; a message that is here already can only be "
        "acknowledged, which leaves it to the dead letters."
    )


@with_fields
class OutOfOrder(JournalError):
    """The messages of one entity were not given in the order of their write times."""

    topic: str
    key: str
    previous: int
    write_time: int

    text = (
        "{topic}: a message of entity {key!r} written at {write_time} came after the one written at "
        "{previous}. Nothing of it was applied: sort the messages by id first."
    )


@with_fields
class Unbounded(JournalError):
    """A delete or purge reaches over more journal segments than any real entity has."""

    topic: str
    key: str
    first: int
    last: int
    limit: int

    text = (
        "{topic}: entity {key!r} would need segments {first} to {last} deleted, and {limit} is the most that "
        "is done at once. Nothing of that message was applied: look for an append whose sequence numbers "
        "jump. Acknowledge that message, which leaves it to the dead letters and the entity as it is; where "
        "such jumps are meant, rebuild with a new writer whose `segment_size` is larger."
    )
