"""The pipelines of the same name that were forgotten, as far as the target of a new writer is concerned.

What a pipeline's writers wrote outlives it. Ids begin anew with the next one of its name, and so do offsets
where a topic was made again meanwhile: those that are in a target already must not be taken for the new ones.
Pure values; nothing is asked or changed here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.state.writer_state import FORGET_PIPELINE, is_forgetting
from tidemark.log.model.binding import TopicPartition
from tidemark.log.state.control import BindingsHead
from tidemark.log.state.forgotten import EndedRemoval


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What they have left in a target.

    Attributes:
        problem: Why nothing may be added to it, for people.
        way_out: What an operator can do about it.
    """

    problem: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a new writer has to know of them."""

    had_writer: bool
    """Whether one of them had a writer of this name, and none of the name was registered since."""
    forgettings: Sequence[EndedRemoval] = ()
    """How they ended, oldest first."""
    source: Mapping[TopicPartition, str | None] = field(default_factory=dict)
    """The partitions that the pipeline of today has bound, and the ids of their topics."""

    def had_another(self, place: TopicPartition, made: int) -> bool:
        """Whether an offset of a partition, kept by one of them at a time (µs), is another topic's."""
        ended = next((one for one in self.forgettings if one.at >= made), None)
        then, now = ended.topic_ids.get(place[0]) if ended else None, self.source.get(place)
        return then is not None and now is not None and then != now

    @classmethod
    def of(
        cls, forgettings: Sequence[EndedRemoval], deeds: Sequence[AuditEntry], head: BindingsHead
    ) -> "Earlier":
        """By the removals of earlier pipelines and the deeds of the writer, both oldest first, and by how far
        the source of today's is bound."""
        last = next((deed for deed in reversed(deeds) if is_forgetting(deed)), None)
        # The writer may have been forgotten alone, and its pipeline only later.
        is_older = last is not None and any(one.at >= last.at for one in forgettings)
        had_writer = last is not None and (last.what == FORGET_PIPELINE or is_older)
        return cls(had_writer, forgettings, {place: head.topic_ids.get(place[0]) for place in head.reached})
