"""Recreated topics: which of several topics with the same name a binding belongs to.

The offsets of a recreated topic begin at 0 again, so offsets of the two topics must never be compared.
Accepted losses alone decide which is which: a binding after such an acceptance belongs to the new topic, a
binding before it to the old one. Topics with the same name are numbered from 0. Nothing here does I/O.

Two modules build on it. ``delivery.writer_topics`` decides which topic a writer's target should have, and so
which bindings it skips, by the number that the writer was registered with. ``client.topic_record`` decides
which topic a journal's tables actually have, by the time at which their pointers were created: the writer may
have been removed, may not be registered, or may not have delivered anything yet.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tidemark.log.model.binding import Binding
from tidemark.log.model.loss import AcceptedLoss, LossKind

WHOLE_TOPIC = (LossKind.RECREATED, LossKind.DELETED)


def of_whole_topics(losses: Iterable[AcceptedLoss]) -> Iterator[AcceptedLoss]:
    """The losses after which a name may belong to another topic, without losses of single offsets."""
    return (one for one in losses if one.loss.kind in WHOLE_TOPIC)


@dataclass(frozen=True, slots=True)
class Recreation:
    """The accepted recreation of a topic.

    Attributes:
        topic: The topic's name.
        number: The number of the new topic; the first topic of a name has 0.
        accepted: One of the losses that were accepted together: there is one for each partition.
    """

    topic: str
    number: int
    accepted: AcceptedLoss

    def is_before(self, binding: Binding) -> bool:
        """Whether a binding belongs to the new topic or a later one."""
        # A binding that lost bound offsets belongs to the old topic as a whole.
        bound_by = self.accepted.t
        return binding.base > self.accepted.after if bound_by is None else binding.t > bound_by


@dataclass(frozen=True, slots=True)
class TopicInLog:
    """One of the topics with the same name, of which the log has bindings.

    Attributes:
        topic: The topic's name.
        number: Its number among the topics with this name.
        topic_id: Kafka's id; None where its bindings were made before ids were recorded.
        first_id: The first id that its bindings own.
        last_id: The last id that its bindings own.
    """

    topic: str
    number: int
    topic_id: str | None
    first_id: int
    last_id: int


@dataclass(frozen=True)
class Recreations:
    """All accepted recreations of a pipeline's topics, by name, in the order in which they were found."""

    of_topics: Mapping[str, tuple[Recreation, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, losses: Iterable[AcceptedLoss]) -> "Recreations":
        """The recreations among accepted losses."""
        found: dict[str, dict[tuple[int, int, int], AcceptedLoss]] = {}
        for one in of_whole_topics(losses):
            together = (one.found, one.t or 0, one.after if one.t is None else 0)
            found.setdefault(one.loss.topic, {}).setdefault(together, one)
        return cls(
            {
                topic: tuple(
                    Recreation(topic, number, of_topic[together])
                    for number, together in enumerate(sorted(of_topic), 1)
                )
                for topic, of_topic in found.items()
            }
        )

    def __bool__(self) -> bool:
        return bool(self.of_topics)

    def number_in(self, topic: str, binding: Binding) -> int:
        """The number of the topic that a binding belongs to."""
        return sum(1 for one in self.of_topics.get(topic, ()) if one.is_before(binding))

    def number_of(self, lost: AcceptedLoss) -> int:
        """The number of the topic that a loss belongs to; a recreation belongs to the old topic."""
        return sum(1 for one in self.of_topics.get(lost.loss.topic, ()) if _is_older(one.accepted, lost))

    def newest(self, topic: str) -> int:
        """The number of the topic that has the name now."""
        return len(self.of_topics.get(topic, ()))

    def since(self, topic: str, number: int) -> Recreation:
        """The recreation by which the topic with a number (at least 1) began."""
        return self.of_topics[topic][number - 1]


def _is_older(one: AcceptedLoss, other: AcceptedLoss) -> bool:
    """Whether a loss was found before another. Rows of old versions lack the time, so their ids decide."""
    if one.found or other.found:
        return one.found < other.found
    return one.after < other.after


def topics_in_log(bindings: Iterable[Binding], recreations: Recreations) -> Iterator[TopicInLog]:
    """Every topic that the log has bindings of, ordered by first id; ``bindings`` must be oldest first."""
    found: dict[tuple[str, int], TopicInLog] = {}
    for binding in bindings:
        for topic in dict.fromkeys(s.topic for s in binding.slices):
            owned = [ids for place, ids in binding.owned.items() if place[0] == topic]
            number = recreations.number_in(topic, binding)
            known = found.get((topic, number))
            found[topic, number] = TopicInLog(
                topic,
                number,
                binding.topic_ids.get(topic, known.topic_id if known else None),
                known.first_id if known else owned[0][0],
                owned[-1][1],
            )
    return iter(sorted(found.values(), key=lambda one: one.first_id))
