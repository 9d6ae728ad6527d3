"""Which entities are provable: those with a complete history in the log, since their latest beginning.

A history is complete where the log has the partition from offset 0 on, or where it begins with a purge in the
log (``judge.py`` knows one more case), and where no offsets were lost since. Compaction by the policy
`journal` preserves the state of every entity, so it leaves entities provable; other policies do not.

Of any other entity the expected state is unknown. It is counted with the reason, and never called different.
Pure.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tidemark.log.model.binding import TopicPartition
from tidemark.log.model.loss import AcceptedLoss, LossKind
from tidemark.log.model.recreated_topics import Recreations


class Unprovable(StrEnum):
    """Why an entity cannot be judged."""

    BEFORE_THE_LOG = "began before the log"
    COMPACTED = "messages of it were compacted away"
    OFFSETS_LOST = "offsets of its partition were lost"
    TAKEN_OVER = "another replicator may have written messages of it"
    BEGUN_ANEW = "the offsets of its topic began anew"
    NOT_APPLICABLE = "a message of it cannot be applied"
    UNFINISHED = "a delivery is under way or was interrupted"


def own_losses(
    losses: Sequence[AcceptedLoss], recreations: Recreations, taken: Callable[[str], int]
) -> list[AcceptedLoss]:
    """The losses of a writer's topics; for a topic created again, those of the writer's incarnation."""
    return [one for one in losses if recreations.number_of(one) == taken(one.loss.topic)]


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known of the writer's partitions up to its position.

    Attributes:
        starts: The first offset that was ever bound.
        lost: The end of the last range of offsets that was lost, not included.
        begun_anew: The partitions that were truncated, so that offsets were used again.
        compacted: The first offset that compaction has not touched. Only where the policy does not preserve
            the state of entities.
        taken_over: The first offset after the pointers of another replicator, where this writer took over its
            tables. Before it, expiry dates come from the other replicator's clock.
    """

    starts: Mapping[TopicPartition, int]
    lost: Mapping[TopicPartition, int]
    begun_anew: frozenset[TopicPartition]
    compacted: Mapping[TopicPartition, int] = field(default_factory=dict)
    taken_over: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, starts: Mapping[TopicPartition, int], losses: Iterable[AcceptedLoss], position: int
    ) -> "Ground":
        """The ground with these losses; losses beyond the position do not count yet.

        Of a topic that was created again, ``losses`` must be those of the writer's incarnation: see
        ``own_losses``.
        """
        known = [one.loss for one in losses if one.after < position]
        lost: dict[TopicPartition, int] = {}
        for loss in known:
            if loss.kind is not LossKind.TRUNCATED and loss.upper > loss.lower:
                lost[loss.place] = max(loss.upper, lost.get(loss.place, 0))
        cut = {loss.place for loss in known if loss.kind is LossKind.TRUNCATED}
        return cls(starts, lost, frozenset(place for place in starts if place in cut))

    def without_beginning(self, places: Collection[TopicPartition]) -> "Ground":
        """The ground for a caller that does not read the first messages of these partitions."""
        later = {place: max(start, 1) if place in places else start for place, start in self.starts.items()}
        return replace(self, starts=later)

    def objection(self, place: TopicPartition, begins_at: int | None) -> Unprovable | None:
        """Why an entity with a history that begins at an offset is not provable; None where it is.

        ``begins_at`` is None where the beginning is unknown. Then the entity is provable only where the log
        has the whole partition.
        """
        if place in self.begun_anew:
            return Unprovable.BEGUN_ANEW
        if begins_at is None and place in self.compacted:
            return Unprovable.COMPACTED
        if begins_at is not None and begins_at < self.compacted.get(place, 0):
            return Unprovable.COMPACTED
        if begins_at is None and self.starts.get(place) != 0:
            return Unprovable.BEFORE_THE_LOG
        if (begins_at or 0) < self.lost.get(place, 0):
            return Unprovable.OFFSETS_LOST
        if (begins_at or 0) < self.taken_over.get(place, 0):
            return Unprovable.TAKEN_OVER
        return None
