"""Fixed partition counts: topics for which every producer computes the partition of a key by itself.

The order of a key's messages is that of one partition, so the number by which partitions are computed is
recorded once and never changes. A topic that gets further partitions closes the log's gate: a producer that
counts them would send the messages of a key to two partitions. An operator may accept the further partitions;
the recorded number stays. Another number takes another topic. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidemark.log.model.binding import Available


class FixedPartitions(NamedTuple):
    """The partitions of a topic.

    Attributes:
        computed_by: The number by which the partitions of keys are computed.
        accepted: The number that the topic has, or had when an operator accepted it.
    """

    computed_by: int
    accepted: int


class PartitionChange(NamedTuple):
    """A topic has another number of partitions.

    Attributes:
        topic: The topic.
        computed_by: The number by which the partitions of keys are computed.
        found: The number that it has.
    """

    topic: str
    computed_by: int
    found: int

    def __str__(self) -> str:
        return (
            f"topic {self.topic} has {self.found} partitions, and the partitions of its keys are computed by "
            f"{self.computed_by}"
        )


@dataclass(frozen=True, slots=True)
class FixedTopic:
    """A topic as it was recorded.

    Attributes:
        topic: Its name.
        topic_id: Kafka's id, as bindings have it.
        partitions: The number by which the partitions of keys are computed.
    """

    topic: str
    topic_id: str
    partitions: int


def partition_counts(available: Available) -> dict[str, int]:
    """The number of partitions of every topic."""
    counts: dict[str, int] = {}
    for topic, _ in available.offsets:
        counts[topic] = counts.get(topic, 0) + 1
    return counts


def find_changes(fixed: Mapping[str, FixedPartitions], available: Available) -> Iterator[PartitionChange]:
    """The topics with another number of partitions than was recorded or accepted."""
    for topic, found in sorted(partition_counts(available).items()):
        if topic in fixed and found not in fixed[topic]:
            yield PartitionChange(topic, fixed[topic].computed_by, found)


def with_counts(fixed: Mapping[str, FixedPartitions], available: Available) -> dict[str, FixedPartitions]:
    """``fixed`` with the topics that were not recorded yet."""
    new = {topic: FixedPartitions(found, found) for topic, found in partition_counts(available).items()}
    return {**new, **fixed}
