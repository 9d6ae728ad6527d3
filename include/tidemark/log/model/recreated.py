"""Topics that were made again: of several topics that had the same name, which one a binding is of.

Offsets of a topic that was deleted and made again begin anew, so nothing that compares offsets may mix the
two. Which is which follows from the losses that people accepted, and from nothing else: a binding after such
an acceptance is of the new topic, one before it of the old. Topics of a name are numbered from 0. Pure.

Two questions are answered with it. Which topic *shall* a writer's target hold, and which bindings does it
therefore leave out? ``delivery.writer_topics`` answers from the number that the writer was registered with.
Which topic *do* tables hold? ``client.topic_record`` answers from the time at which their
pointers were made: the writer may be gone, not registered, or not have delivered anything yet.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tidemark.log.model.binding import Binding
from tidemark.log.model.loss import AcceptedLoss, LossKind

WHOLE_TOPIC = (LossKind.RECREATED, LossKind.DELETED)


def of_whole_topics(losses: Iterable[AcceptedLoss]) -> Iterator[AcceptedLoss]:
    """The losses after which a name may be another topic's; losses of single offsets are left out."""
    return (one for one in losses if one.loss.kind in WHOLE_TOPIC)


@dataclass(frozen=True, slots=True)
class Recreation:
    """From here on a name is another topic's, and a named person has accepted it."""

    topic: str
    number: int
    """Of the topic that begins here; the first one of a name is 0."""
    accepted: AcceptedLoss
    """One of those of this topic that were accepted together: there is one a partition."""

    def is_before(self, binding: Binding) -> bool:
        """Whether a binding is of this topic or a later one."""
        # A loss of bound offsets lies inside its binding, of which nothing is the new topic's.
        bound_by = self.accepted.t
        return binding.base > self.accepted.after if bound_by is None else binding.t > bound_by


@dataclass(frozen=True, slots=True)
class TopicInLog:
    """One topic of a name, where the log has something of it."""

    topic: str
    number: int
    topic_id: str | None
    """Kafka's; None in bindings that are older than such ids."""
    first_id: int
    last_id: int
    """The ids that its bindings own."""


@dataclass(frozen=True)
class Recreations:
    """All topics of a pipeline that were ever made again."""

    of_topics: Mapping[str, tuple[Recreation, ...]] = field(default_factory=dict)
    """In the order in which they were found."""

    @classmethod
    def of(cls, losses: Iterable[AcceptedLoss]) -> "Recreations":
        """What was accepted; losses of single offsets make no new topic."""
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
        """Which topic of the name a binding is of."""
        return sum(1 for one in self.of_topics.get(topic, ()) if one.is_before(binding))

    def number_of(self, lost: AcceptedLoss) -> int:
        """Which topic of the name has lost something: of one that was made again, the one before."""
        return sum(1 for one in self.of_topics.get(lost.loss.topic, ()) if _is_older(one.accepted, lost))

    def newest(self, topic: str) -> int:
        """The number of the topic that has the name now."""
        return len(self.of_topics.get(topic, ()))

    def since(self, topic: str, number: int) -> Recreation:
        """How the topic with a number came to its name."""
        return self.of_topics[topic][number - 1]


def _is_older(one: AcceptedLoss, other: AcceptedLoss) -> bool:
    """Whether a loss was found before another; very old rows do not say when, and are told by their place."""
    if one.found or other.found:
        return one.found < other.found
    return one.after < other.after


def topics_in_log(bindings: Sequence[Binding], recreations: Recreations) -> Iterator[TopicInLog]:
    """Every topic that the log has something of, in the order of first ids; bindings oldest first."""
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
