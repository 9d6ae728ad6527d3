"""Take-over: the offsets at which a pipeline begins that continues the work of a kafka-journal replicator.

They come from the replicator's pointers. Refused while a consumer group of the replicator has members. Our
writes are newer than the replicator's, because every ``t`` is later than its last write. Tables that were
handed back are taken over again by ``take_back.py``.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.cassandra.session import connect
from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.connections import Connections
from tidemark.errors import with_fields
from tidemark.journal_tables.statements import JournalTables, Pointer, are_there
from tidemark.kafka.consumer_groups import refuse_members
from tidemark.log.model.binding import TopicPartition
from tidemark.pipeline.model import JournalDeclaration, Pipeline
from tidemark.writers.errors import WriterError


@with_fields
class NothingToTakeOver(WriterError):
    """The keyspace has no pointers to take over."""

    needs_person = True

    pipeline: str
    keyspace: str

    text = (
        "{pipeline}: source.kafka.start is `pointers`, but keyspace {keyspace} has no pointers. Nothing was "
        "bound. Correct the writer's keyspace, or start from `earliest`."
    )


@with_fields
class WrittenAhead(WriterError):
    """The tables have write times that are ahead of this machine's clock."""

    pipeline: str
    keyspace: str
    problem: str

    text = "{pipeline}: keyspace {keyspace}: {problem} Nothing was bound."


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
