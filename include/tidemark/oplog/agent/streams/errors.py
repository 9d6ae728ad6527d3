"""Why a stream is refused or ends. The server's answer is in ``status``; the text is for the client."""

from typing import ClassVar

from tidemark.errors import TidemarkError, with_fields


class StreamError(TidemarkError):
    """A stream that cannot be given now.

    Attributes:
        status: The status of the response.
        retry_after: Seconds after which the client may ask again; None where that does not help.
    """

    status: ClassVar[int] = 503
    retry_after: ClassVar[int | None] = 5


class HubNotReady(StreamError):
    """The agent does not follow the topic at the moment."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"This agent does not follow the topic at the moment ({reason}). Nothing was sent. It connects "
            "again by itself; try again, or another agent."
        )
        self.reason = reason


@with_fields
class PartitionsMissing(StreamError):
    """The topic has fewer partitions than were recorded."""

    topic: str
    recorded: int
    found: int

    text = (
        "Topic {topic} has {found} partitions, and {recorded} were recorded. Nothing was sent. It is not the "
        "topic that the pipeline has read; see: tidemark status."
    )


@with_fields
class NoCollection(StreamError):
    """A replication was asked of an agent that has no collection."""

    reason: str

    text = (
        "Objects cannot be read at the moment ({reason}). Nothing was sent; streams that begin now, or go on "
        "from Kafka, are served. Try again later."
    )


@with_fields
class OperationsLost(StreamError):
    """The collection ends at an offset that neither Kafka nor the log can continue."""

    topic: str
    partition: int
    offset: int
    first: int
    end: int

    text = (
        "{topic}/{partition}: the collection ends at offset {offset}, Kafka has {first} to {end}, and the "
        "commit log does not have what lies between. Nothing was sent. The pipeline's gate is closed or will "
        "be; an operator has to look at it: tidemark status."
    )


class StreamEnd(Exception):  # it is no error
    """The stream ends now; raised within the task of its client only."""


class ClientGone(StreamEnd):
    """The client has disconnected."""


class ClientBehind(StreamEnd):
    """What the client needs next is gone here: it is told to come back with its last id."""


class StreamOver(StreamEnd):
    """The stream has reached its age, its token has expired, or the agent stops."""


class Unjudged(Exception):  # it is turned into another source of the partition
    """A correction cannot be judged: what it depends on is gone from Kafka and from the log."""

    def __init__(self, partition: int, offset: int) -> None:
        super().__init__(f"partition {partition}, offset {offset}")
        self.partition, self.offset = partition, offset
