"""Errors of verifications."""

from tidemark.errors import TidemarkError, with_fields


class VerificationError(TidemarkError):
    """A verification cannot be done, or found differences that it does not repair."""


@with_fields
class NothingDelivered(VerificationError):
    """The writer never ran, so it has no tables to verify."""

    pipeline: str
    writer: str

    text = (
        "{pipeline}/{writer}: it has delivered nothing yet, so there is nothing to verify. Run "
        "{pipeline}.replicate first."
    )


@with_fields
class TopicNotDelivered(VerificationError):
    """The writer has delivered nothing of a topic that the caller named."""

    pipeline: str
    writer: str
    topic: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.pipeline}/{self.writer}: it has nothing of topic {self.topic}; there is: "
            f"{', '.join(self.known) or 'none'}. Nothing was verified."
        )


@with_fields
class NoSuchEntity(VerificationError):
    """An entity is neither in the log nor in the tables."""

    pipeline: str
    writer: str
    key: str

    text = (
        "{pipeline}/{writer}: neither the log up to the writer's position nor its tables know an entity "
        "{key!r}. Look at the spelling; keys are case-sensitive."
    )
