"""What a verification refuses: errors with fields, each with the way out."""

from tidemark.errors import TidemarkError, with_fields


class VerificationError(TidemarkError):
    """A verification cannot be done, or found what it does not repair."""


@with_fields
class NothingDelivered(VerificationError):
    """A writer that never ran has no tables to verify."""

    pipeline: str
    writer: str

    text = (
        "{pipeline}/{writer}: it has delivered nothing yet, so there is nothing to verify. Run "
        "{pipeline}.replicate first."
    )


@with_fields
class TopicNotDelivered(VerificationError):
    """A topic is named that the writer has nothing of."""

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
    """Neither the log nor the tables know an entity."""

    pipeline: str
    writer: str
    key: str

    text = (
        "{pipeline}/{writer}: neither the log up to the writer's position nor its tables know an entity "
        "{key!r}. Look at the spelling; keys are case-sensitive."
    )
