"""What can be proved: incarnations that begin in the log, in partitions of which nothing was lost since.

Nothing of them may lie before what the log has. A partition that the log has from offset 0 on settles that,
and so does a purge; ``judge.py`` knows what else does.

What the policy `journal` has left makes up the same state, so it proves as much as the whole; what any other
policy has left proves nothing.

Pure. Whatever else is found of an entity says nothing about the tables, because nobody knows any more what
they should hold: it is counted and named, and never called wrong.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tidemark.log.model.binding import TopicPartition
from tidemark.log.model.loss import AcceptedLoss, LossKind
from tidemark.log.model.recreated_topics import Recreations


def own_losses(
    losses: Sequence[AcceptedLoss], recreations: Recreations, taken: Callable[[str], int]
) -> list[AcceptedLoss]:
    """What the topics have lost that a writer takes: of several with the same name, the one it takes."""
    return [one for one in losses if recreations.number_of(one) == taken(one.loss.topic)]


class Unprovable(StrEnum):
    """Why an entity cannot be judged."""

    BEFORE_THE_LOG = "began before the log"
    COMPACTED = "messages of it were compacted away"
    OFFSETS_LOST = "offsets of its partition were lost"
    TAKEN_OVER = "another replicator may have written messages of it"
    BEGUN_ANEW = "the offsets of its topic began anew"
    NOT_APPLICABLE = "a message of it cannot be applied"
    UNFINISHED = "a delivery is under way or was interrupted"


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known of the partitions up to a position."""

    starts: Mapping[TopicPartition, int]
    """The first offset that was ever bound."""
    lost: Mapping[TopicPartition, int]
    """The end of the last offsets that were lost, not included."""
    begun_anew: frozenset[TopicPartition]
    compacted: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first offset from which on compaction has taken nothing; only where what it has left does not make
    up the same state."""
    taken_over: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first offset behind the pointers of another replicator whose tables were taken over: dates that it
    wrote come from its own clock."""

    @classmethod
    def of(
        cls, starts: Mapping[TopicPartition, int], losses: Iterable[AcceptedLoss], position: int
    ) -> "Ground":
        """What losses leave of the ground; those beyond the position are not there yet.

        Of a topic that was made again only what the one has lost that the starts are of: see ``own_losses``.
        """
        known = [one.loss for one in losses if one.after < position]
        lost: dict[TopicPartition, int] = {}
        for loss in known:
            if loss.kind is not LossKind.TRUNCATED and loss.upper > loss.lower:
                lost[loss.place] = max(loss.upper, lost.get(loss.place, 0))
        cut = {loss.place for loss in known if loss.kind is LossKind.TRUNCATED}
        return cls(starts, lost, frozenset(place for place in starts if place in cut))

    def without_beginning(self, places: Collection[TopicPartition]) -> "Ground":
        """The same for somebody who does not look at the first messages of these partitions."""
        later = {place: max(start, 1) if place in places else start for place, start in self.starts.items()}
        return replace(self, starts=later)

    def objection(self, place: TopicPartition, begins_at: int | None) -> Unprovable | None:
        """Why what began at an offset, with nothing of it before, cannot be proved; None where it can.

        Without an offset it may have begun anywhere: only where the log has everything that is no matter.
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
