"""Forgotten pipelines of the same name, as far as they matter for the target of a new writer.

The output of a pipeline's writers outlives the pipeline. Ids begin at 0 again with the next pipeline of that
name, and so do offsets where a topic was recreated meanwhile. Ids and offsets that a target already has must
not be taken for the new ones. Pure values; nothing is read or changed here.
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
    """Output of a forgotten pipeline in a target.

    Attributes:
        problem: Why the new writer may not add to it, as a sentence without its full stop.
        way_out: What an operator can do about it, likewise.
    """

    problem: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a new writer has to know about forgotten pipelines of the same name.

    Attributes:
        had_writer: Whether one of them had a writer of this name, and none of the name was registered since.
        forgettings: Their removals, oldest first.
        source: The partitions that the present pipeline has bound, with the ids of their topics.
    """

    had_writer: bool
    forgettings: Sequence[EndedRemoval] = ()
    source: Mapping[TopicPartition, str | None] = field(default_factory=dict)

    def had_another(self, place: TopicPartition, made: int) -> bool:
        """Whether an offset that a forgotten pipeline wrote at time ``made`` (µs) belongs to another
        topic."""
        ended = next((one for one in self.forgettings if one.at >= made), None)
        then, now = ended.topic_ids.get(place[0]) if ended else None, self.source.get(place)
        return then is not None and now is not None and then != now

    @classmethod
    def of(
        cls, forgettings: Sequence[EndedRemoval], deeds: Sequence[AuditEntry], head: BindingsHead
    ) -> "Earlier":
        """From the removals of earlier pipelines and the writer's audit entries, both oldest first, and the
        bindings of the present pipeline."""
        last = next((deed for deed in reversed(deeds) if is_forgetting(deed)), None)
        # The writer may have been forgotten alone, and its pipeline only later.
        is_older = last is not None and any(one.at >= last.at for one in forgettings)
        had_writer = last is not None and (last.what == FORGET_PIPELINE or is_older)
        return cls(had_writer, forgettings, {place: head.topic_ids.get(place[0]) for place in head.reached})
