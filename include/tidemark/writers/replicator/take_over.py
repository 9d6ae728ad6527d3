"""Take-over: the offsets at which a pipeline begins that continues the work of a kafka-journal replicator.

They come from the replicator's pointers. Refused while a consumer group of the replicator has members. Our
writes are newer than the replicator's, because every ``t`` is later than its last write. Tables that were
handed back are taken over again by ``take_back.py``.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.consensus.lease import SECOND, Clock, wall_clock
from tidemark.errors import TidemarkError
from tidemark.journal_tables.statements import JournalTables, Pointer, are_there
from tidemark.kafka.consumer_groups import refuse_members
from tidemark.log.model.binding import TopicPartition
from tidemark.pipeline.model import JournalDeclaration, Pipeline


class NothingToTakeOver(TidemarkError):
    """There are no tables whose pointers could be taken."""

    needs_person = True

    def __init__(self, pipeline: str, keyspace: str) -> None:
        super().__init__(
            f"{pipeline}: source.kafka.start is `pointers`, but keyspace {keyspace} has no pointers. Nothing "
            "was bound. Correct the writer's keyspace, or start from `earliest`."
        )
        self.pipeline, self.keyspace = pipeline, keyspace


class WrittenAhead(TidemarkError):
    """The tables were written with times that this machine's clock has not reached."""

    def __init__(self, pipeline: str, keyspace: str, problem: str) -> None:
        super().__init__(f"{pipeline}: keyspace {keyspace}: {problem} Nothing was bound.")
        self.pipeline, self.keyspace, self.problem = pipeline, keyspace, problem


def ahead_of_clock(pointers: Iterable[Pointer], now: int) -> str | None:
    """Why tables with these pointers cannot be written at the time ``now`` (µs); None where they can."""
    ahead = max((pointer.written for pointer in pointers), default=0) - now
    if ahead < 0:
        return None
    return (
        f"the replicator's last pointer was written {ahead / SECOND:.1f} s ahead of this machine's clock, "
        "and would hide what is written before that. Synchronise the clocks, or wait so long."
    )


@dataclass(frozen=True, slots=True)
class TakeOver:
    """The take-over of a replicator's tables by a new pipeline."""

    pipeline: Pipeline
    connections: Connections
    clock: Clock = wall_clock

    def next_offsets(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the pointer of each of these partitions, where it has one.

        Raises ReplicatorRuns, NothingToTakeOver or WrittenAhead.
        """
        places = list(places)
        (journal,) = (one for one in self.pipeline.writers if isinstance(one, JournalDeclaration))
        refuse_members(self.pipeline.name, self.connections.kafka, (topic for topic, _ in places))
        session = connect(self.connections.cassandra[journal.connection])
        is_there = are_there(session, journal)
        pointers = JournalTables.of(session, journal).read_timed_pointers(places) if is_there else {}
        if not pointers:
            raise NothingToTakeOver(self.pipeline.name, journal.keyspace)
        if problem := ahead_of_clock(pointers.values(), self.clock()):
            raise WrittenAhead(self.pipeline.name, journal.keyspace, problem)
        return {place: pointer.offset + 1 for place, pointer in pointers.items()}
