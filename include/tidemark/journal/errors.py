"""Errors of messages and histories, with fields that callers can act on.

They are ``ValueError`` too, because each is caused by an invalid value.
"""

from tidemark.errors import TidemarkError, with_fields


class JournalError(TidemarkError, ValueError):
    """The root of the errors of this package."""


@with_fields
class Undecodable(JournalError):
    """A message is marked as an action but cannot be decoded. It is never skipped.

    The codecs know only the reason; a caller that knows the message's place adds it with ``at``.
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
    """An action that no reader could decode again, so it was not encoded as a Kafka record."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@with_fields
class Repartitioned(JournalError):
    """A message of an entity is in another Kafka partition than its head, so offsets cannot be compared."""

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
    """The messages of one entity were not given in ascending order of their write times."""

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
    """A delete or purge covers more journal segments than are deleted at once."""

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
