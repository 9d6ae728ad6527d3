"""Errors of Kafka in Tidemark's own types: the clients' errors do not leave this package.

A failure has the client's reason. Callers add what was being done, for which pipeline, and what to do next.
"""

from tidemark.errors import TidemarkError


class KafkaFailure(TidemarkError):
    """A request to Kafka failed."""

    is_fatal = False
    """Whether the client that raised it has to be closed."""
    is_refused = False
    """Whether the record that was sent is certainly not in the topic."""

    def __init__(self, reason: str, said: str | None = None) -> None:
        """``said`` is the error's own text; ``reason`` may add what led to it."""
        super().__init__(
            f"Kafka did not do what was asked of it ({reason.rstrip('.')}). Whether it was done is not "
            "known. See that Kafka answers, and try again."
        )
        self.reason, self.said = reason, said or reason


class UnknownTopic(KafkaFailure):
    """There is no topic of that name."""


class OffsetGone(KafkaFailure):
    """The partition does not have the offset that was asked for."""


class NotAuthorized(KafkaFailure):
    """The user may not use the transactional id, or may not write to this cluster."""


class ProducerFenced(KafkaFailure):
    """A newer producer with the same transactional id has taken over."""


class NotAllAcknowledged(KafkaFailure):
    """Some of the records that were sent together were not acknowledged."""

    acknowledged = 0
    """How many were."""
