"""What a verification refuses: errors with fields, each with the way out."""

from collections.abc import Iterable

from tidemark.errors import TidemarkError


class NothingDelivered(TidemarkError):
    """A writer that never ran has no tables to verify."""

    def __init__(self, pipeline: str, writer: str) -> None:
        super().__init__(
            f"{pipeline}/{writer}: it has delivered nothing yet, so there is nothing to verify. Run "
            f"{pipeline}.replicate first."
        )
        self.pipeline, self.writer = pipeline, writer


class TopicNotWritten(TidemarkError):
    """A topic is named that the writer has nothing of."""

    def __init__(self, pipeline: str, writer: str, topic: str, known: Iterable[str]) -> None:
        self.pipeline, self.writer, self.topic, self.known = pipeline, writer, topic, tuple(sorted(known))
        super().__init__(
            f"{pipeline}/{writer}: it has nothing of topic {topic}; there is: "
            f"{', '.join(self.known) or 'none'}. Nothing was verified."
        )


class NoSuchEntity(TidemarkError):
    """Neither the log nor the tables know an entity."""

    def __init__(self, pipeline: str, writer: str, key: str) -> None:
        super().__init__(
            f"{pipeline}/{writer}: neither the log up to the writer's position nor its tables know an entity "
            f"{key!r}. Look at the spelling; keys are case-sensitive."
        )
        self.pipeline, self.writer, self.key = pipeline, writer, key
