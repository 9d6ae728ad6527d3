"""The topics that a pipeline reads. Imports no Kafka client, so that it can be sent to Spark tasks."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceTopics:
    """The topics that a pipeline reads, and the isolation level."""

    pipeline: str
    topics: Sequence[str]
    prefixes: Sequence[str]
    isolation: str

    def declares(self, topic: str) -> bool:
        """Whether the pipeline declares this topic."""
        return topic in self.topics or topic.startswith(tuple(self.prefixes))
