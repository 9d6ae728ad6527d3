"""The input of a verification: a writer's position and settings, and what the control plane knows of the log.

It is read once, before any message or row, and then sent to every task that judges entities. Nothing here
reads the log's files or the writer's tables.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.handed_back import refuse_handed_back
from tidemark.delivery.state.positions import Positions, refuse_other_shape
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.writer_topics import taken_number
from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.log.model.binding import NOTHING_YET, TopicPartition
from tidemark.log.model.loss import AcceptedLoss
from tidemark.log.model.recreated_topics import Recreations
from tidemark.verification.bound import Bound, Incarnation, bound_up_to, of_numbers, published_after
from tidemark.verification.errors import NothingDelivered, TopicNotDelivered
from tidemark.verification.journal.provable import Ground, own_losses
from tidemark.verification.rebuild import find_gap
from tidemark.writers.journal.writer import JournalWriter


class PointerRange(NamedTuple):
    """The offset that a pointer must have, and the highest one an interrupted delivery may have left."""

    expected: int
    most: int


@dataclass(frozen=True)
class Basis:
    """What a writer's tables are judged by. Picklable: it is sent to tasks.

    Attributes:
        horizon: The last id of which an interrupted delivery may have written something.
        version: The version of the writer's state. It changes whenever the writer delivers.
        acknowledged: The ids of messages that an operator acknowledged, so that they were never written.
        timezone: The zone of ``expire_on``.
        ground: What is known of each partition, from which follows what is provable.
        pointers: The expected pointer of every partition of which the writer has delivered something.
        gap: What the log lacks, so that tables rebuilt from it would lack it too; empty for a complete log.
        taken: For topics that were deleted and created again: the first and the last id of the incarnation
            that the tables hold.
        first_ids: The first id of every partition of the writer.
    """

    pipeline: str
    writer: str
    keyspace: str
    position: int
    horizon: int
    version: int
    acknowledged: frozenset[int]
    segment_size: int
    timezone: str
    ground: Ground
    pointers: Mapping[TopicPartition, PointerRange]
    gap: str = ""
    taken: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    first_ids: Mapping[TopicPartition, int] = field(default_factory=dict)

    @cached_property
    def zone(self) -> ZoneInfo:
        """The zone of ``expire_on``."""
        return ZoneInfo(self.timezone)

    @cached_property
    def topics(self) -> frozenset[str]:
        """The topics that the writer delivers."""
        return frozenset(topic for topic, _ in self.ground.starts)

    def takes(self, topic: str, id_: int) -> bool:
        """Whether a message belongs to the incarnation of the topic that the tables hold."""
        return self.may_take(topic, id_, id_)

    def may_take(self, topic: str, first_id: int, last_id: int) -> bool:
        """Whether an id of this range can belong to the incarnation of the topic that the tables hold."""
        if topic not in self.taken:
            return True
        first, last = self.taken[topic]
        return first <= last_id and first_id <= last

    def require_topics(self, named: Sequence[str]) -> list[str]:
        """The named topics, sorted; all topics of the writer where none is named.

        Raises ``TopicNotDelivered`` where the writer has delivered nothing of a named topic.
        """
        for topic in named:
            if topic not in self.topics:
                raise TopicNotDelivered(self.pipeline, self.writer, topic, tuple(sorted(self.topics)))
        return sorted(named or self.topics)

    def check_pointers(self, found: Mapping[TopicPartition, int]) -> Iterator[Difference]:
        """The pointers that do not match the writer's position."""
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


def read_basis(writer: JournalWriter, log: PublishedLog, positions: Positions) -> tuple[Basis, PublishedLog]:
    """The basis as of now, and the log that it was read from, which has all that the writer has delivered.

    The writer's state is read before the log: what a holder of the lease delivers was published before it
    took the lease. The other way round, rows of a delivery in between would count as too many.

    Refuses a writer that never ran, one with settings that would produce other tables, and one with tables
    that were handed back to another replicator.
    """
    state = positions.load(writer.name)
    if state is None:
        raise NothingDelivered(writer.pipeline, writer.name)
    refuse_handed_back(state, positions.handed_back(state))
    refuse_other_shape(state, writer.shape)
    log = log.reopened()
    losses = log.control.accepted_losses()
    unclear_below = 0 if log.manifest.keeps_state else log.manifest.compacted_below
    bound = read_bound(log, Recreations.of(losses), state, unclear_below)
    acknowledged = positions.acknowledged(writer.name)
    return basis_of(writer, state, bound, losses, acknowledged, unclear_below), log


@dataclass(frozen=True, slots=True)
class BoundOffsets:
    """What a basis needs to know of bindings.

    Attributes:
        published: The sum of all published bindings.
        horizon: See ``Basis``.
        expected: The last offsets at the writer's position.
        most: The last offsets at the horizon.
        unclear: The last offsets of those that were compacted by a policy that does not preserve state.
    """

    published: Bound
    horizon: int
    expected: Mapping[Incarnation, int]
    most: Mapping[Incarnation, int]
    unclear: Mapping[Incarnation, int]


def read_bound(
    log: PublishedLog, recreations: Recreations, state: WriterState, unclear_below: int
) -> BoundOffsets:
    """What the bindings say about a writer's position; see ``basis_of``."""

    def up_to(position: int, purpose: str) -> tuple[Bound, Mapping[Incarnation, int]]:
        bound = bound_up_to(log, recreations, position, purpose)
        return bound, bound.offsets_at(position, next(published_after(log, position), None))

    past, expected = up_to(state.position, f"position of {state.name}")
    _, unclear = up_to(unclear_below - 1, "compacted") if unclear_below else (past, {})
    # A delivery writes at most one binding beyond the furthest position, and a rewind removes no rows.
    furthest = max(state.position, state.reached)
    beyond = next(published_after(log, furthest), None)
    horizon = beyond.end if beyond else furthest
    rest = published_after(log, past.end)
    near = past.with_bindings(takewhile(lambda one: one.end <= horizon, rest))
    return BoundOffsets(
        near.with_bindings(published_after(log, near.end)), horizon, expected, near.offsets, unclear
    )


def basis_of(
    writer: JournalWriter,
    state: WriterState,
    bound: BoundOffsets,
    losses: Sequence[AcceptedLoss],
    acknowledged: frozenset[int],
    unclear_below: int = 0,
) -> Basis:
    """The basis, from the published bindings.

    Below the id ``unclear_below`` the log was compacted by a policy that does not preserve an entity's state.
    """
    admitted = re.compile(writer.declared.namespaces)
    published, horizon = bound.published, bound.horizon
    recreations = published.recreations

    def number(topic: str) -> int:
        return taken_number(state.starts, topic)

    starts = {
        place: lower
        for place, lower in of_numbers(published.starts, number).items()
        if admitted.search(place[0])
    }
    ids = of_numbers(published.ids, number)
    expected, most = of_numbers(bound.expected, number), of_numbers(bound.most, number)
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
            compacted={place: offset + 1 for place, offset in of_numbers(bound.unclear, number).items()},
            taken_over={place: offset + 1 for place, offset in state.theirs.items()},
        ),
        {
            place: PointerRange(expected[place], max(most[place], state.theirs.get(place, NOTHING_YET)))
            for place in expected
            if place in starts
        },
        find_gap(ground, unclear_below),
        {
            topic: (min(first for first, _ in of_topic), max(last for _, last in of_topic))
            for topic in recreations.of_topics
            if (of_topic := [one for place, one in ids.items() if place[0] == topic])
        },
        {place: first for place, (first, _) in ids.items() if place in starts},
    )
