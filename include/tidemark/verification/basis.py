"""What a verification starts from: how far a writer has come, and what the control plane knows of the log.

Read once, before anything else, and then carried to wherever entities are judged.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.handed_back import refuse_handed_back
from tidemark.delivery.state.positions import Positions, refuse_other_shape
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.writer_topics import taken_number
from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition
from tidemark.log.model.loss import AcceptedLoss
from tidemark.log.model.recreated_topics import Recreations, topics_in_log
from tidemark.verification.errors import NothingDelivered, TopicNotDelivered
from tidemark.verification.journal.provable import Ground, own_losses
from tidemark.verification.rebuild import find_gap
from tidemark.writers.journal.writer import JournalWriter


class PointerRange(NamedTuple):
    """Where a pointer has to be, and how far an interrupted delivery may have moved it."""

    expected: int
    most: int


@dataclass(frozen=True)
class Basis:
    """What a writer's tables are judged by; travels to tasks."""

    pipeline: str
    writer: str
    keyspace: str
    position: int
    horizon: int
    """The last id of which a delivery that was interrupted may have left something."""
    version: int
    """The writer's: another one means that it moved."""
    acknowledged: frozenset[int]
    segment_size: int
    timezone: str
    ground: Ground
    pointers: Mapping[TopicPartition, PointerRange]
    """Of all partitions the writer has come to."""
    gap: str = ""
    """What the log does not have, and so tables rebuilt from it would not; empty where it is whole."""
    taken: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Of topics that were made again: the first and the last id of the one that the tables hold."""

    @cached_property
    def zone(self) -> ZoneInfo:
        """That of ``expire_on``."""
        return ZoneInfo(self.timezone)

    @cached_property
    def topics(self) -> frozenset[str]:
        """Those that the writer takes."""
        return frozenset(topic for topic, _ in self.ground.starts)

    def takes(self, topic: str, id_: int) -> bool:
        """Whether a message is of the topic that the tables hold, and not of another one of its name."""
        return self.may_take(topic, id_, id_)

    def may_take(self, topic: str, first_id: int, last_id: int) -> bool:
        """Whether one of these ids can be of the topic that the tables hold."""
        if topic not in self.taken:
            return True
        first, last = self.taken[topic]
        return first <= last_id and first_id <= last

    def require_topics(self, named: Sequence[str]) -> list[str]:
        """These topics, or all where none is named; refuses one that the writer has nothing of."""
        for topic in named:
            if topic not in self.topics:
                raise TopicNotDelivered(self.pipeline, self.writer, topic, tuple(sorted(self.topics)))
        return sorted(named or self.topics)

    def check_pointers(self, found: Mapping[TopicPartition, int]) -> Iterator[Difference]:
        """The pointers that are not where the position says."""
        for (topic, partition), (expected, most) in sorted(self.pointers.items()):
            offset = found.get((topic, partition))
            if offset is None:
                kind = DifferenceKind.POINTER_MISSING
            elif offset < expected:
                kind = DifferenceKind.POINTER_BEHIND
            elif offset > most:
                kind = DifferenceKind.POINTER_TOO_FAR
            else:
                continue
            yield Difference(kind, topic, partition=partition, expected=expected, found=offset)


def read_basis(writer: JournalWriter, log: PublishedLog, positions: Positions) -> Basis:
    """What is known now; refuses a writer that never ran, whose settings would make other tables, or whose
    tables are another replicator's."""
    state = positions.load(writer.name)
    if state is None:
        raise NothingDelivered(writer.pipeline, writer.name)
    refuse_handed_back(state, positions.handed_back(state))
    refuse_other_shape(state, writer.shape)
    bindings = [one for one in log.control.bindings_after(NOTHING_YET) if one.t <= log.manifest.t]
    losses = log.control.accepted_losses()
    unclear_below = 0 if log.manifest.keeps_state else log.manifest.compacted_below
    return basis_of(writer, state, bindings, losses, positions.acknowledged(writer.name), unclear_below)


def basis_of(
    writer: JournalWriter,
    state: WriterState,
    bindings: Sequence[Binding],
    losses: Sequence[AcceptedLoss],
    acknowledged: frozenset[int],
    unclear_below: int = 0,
) -> Basis:
    """The same, from published bindings, oldest first; below an id they may be compacted beyond proof."""
    admitted = re.compile(writer.declared.namespaces)
    recreations = Recreations.of(losses)

    def number(topic: str) -> int:
        return taken_number(state.starts, topic)

    def is_taken(topic: str, binding: Binding) -> bool:
        return recreations.number_in(topic, binding) == number(topic)

    starts: dict[TopicPartition, int] = {}
    for binding in bindings:
        for s in binding.slices:
            if admitted.search(s.topic) and is_taken(s.topic, binding):
                starts.setdefault((s.topic, s.partition), s.lower)
    # Tables are never ahead of the binding after the furthest position, and never taken back by a rewind.
    furthest = max(state.position, state.reached)
    horizon = next((binding.end for binding in bindings if binding.end > furthest), furthest)
    expected, most = (_offsets(bindings, at, is_taken) for at in (state.position, horizon))
    ground = Ground.of(starts, own_losses(losses, recreations, number), state.position)
    return Basis(
        writer.pipeline,
        writer.name,
        writer.declared.keyspace,
        state.position,
        horizon,
        state.version,
        acknowledged,
        writer.declared.segment_size,
        writer.zone,
        replace(
            ground,
            compacted={
                place: offset + 1 for place, offset in _offsets(bindings, unclear_below - 1, is_taken).items()
            },
            taken_over={place: offset + 1 for place, offset in state.theirs.items()},
        ),
        {
            place: PointerRange(expected[place], max(most[place], state.theirs.get(place, NOTHING_YET)))
            for place in expected
            if place in starts
        },
        find_gap(ground, unclear_below),
        {
            one.topic: (one.first_id, one.last_id)
            for one in topics_in_log(bindings, recreations)
            if one.topic in recreations.of_topics and one.number == number(one.topic)
        },
    )


def _offsets(
    bindings: Sequence[Binding], position: int, is_taken: Callable[[str, Binding], bool]
) -> dict[TopicPartition, int]:
    reached: dict[TopicPartition, int] = {}
    for binding in bindings:
        if binding.base <= position:
            own = binding.offsets_at(position).items()
            reached |= {place: offset for place, offset in own if is_taken(place[0], binding)}
    return reached
