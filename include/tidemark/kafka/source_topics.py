"""Which topics a pipeline reads. Knows no client of Kafka, so that it may travel to Spark's tasks."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceTopics:
    """Which topics a pipeline reads, and how."""

    pipeline: str
    topics: Sequence[str]
    prefixes: Sequence[str]
    isolation: str

    def declares(self, topic: str) -> bool:
        """Whether the pipeline asks for this topic."""
        return topic in self.topics or topic.startswith(tuple(self.prefixes))
