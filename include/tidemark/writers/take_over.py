"""Take-over from a kafka-journal replicator, and the way back.

Its pointers say where we begin, and the group it reads with says where it would go on. Neither is touched
while it runs: a group with members is refused, and so is handing back what a run of ours has. What it wrote
is older than anything we write, because every ``t`` is later than its last write; going back has to wait
until the clock is past our last write time.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaPartition

from tidemark.cassandra.session import connect
from tidemark.connections import Connections, KafkaConnection
from tidemark.consensus.lease import Clock, wall_clock
from tidemark.delivery.lease import holding
from tidemark.delivery.operate import NotPossible, Plan, refuse_held, take_as_seen
from tidemark.delivery.pipeline import JournalDeclaration, Pipeline
from tidemark.delivery.positions import Positions
from tidemark.delivery.writer_state import Deed
from tidemark.errors import TidemarkError
from tidemark.log.binding import TopicPartition
from tidemark.log.control import LogControl
from tidemark.writers.journal_tables import JournalTables, are_there

SECOND = 1_000_000
PATIENCE = 30.0
HANDING_BACK = "a hand-back"
"""Who has the writer meanwhile: one that died is taken up by the same command at once."""
T = TypeVar("T")


class ReplicatorRuns(TidemarkError):
    """Somebody still reads with the replicator's group."""

    needs_person = True

    def __init__(self, pipeline: str, group: str, members: Iterable[str]) -> None:
        self.pipeline, self.group, self.members = pipeline, group, tuple(members)
        super().__init__(
            f"{pipeline}: consumer group {group} has members ({', '.join(self.members)}): two replicators "
            "must not write the same tables. Nothing was changed. Stop them, wait until the group is empty "
            "(that may take as long as its session time-out), and try again."
        )


class NothingToTakeOver(TidemarkError):
    """There are no tables whose pointers could be taken."""

    needs_person = True

    def __init__(self, pipeline: str, keyspace: str) -> None:
        super().__init__(
            f"{pipeline}: source.kafka.start is `pointers`, but keyspace {keyspace} has no pointers. Nothing "
            "was bound. Correct the writer's keyspace, or start from `earliest`."
        )
        self.pipeline, self.keyspace = pipeline, keyspace


def replicator_group(topic: str) -> str:
    """The group a kafka-journal replicator reads a topic with, unless it was told otherwise."""
    return f"replicator-{topic}"


def refuse_members(pipeline: str, connection: KafkaConnection, topics: Iterable[str]) -> None:
    """Refuse to go on while a replicator reads one of the topics."""
    groups = [replicator_group(topic) for topic in sorted(set(topics))]
    with KafkaAdminClient(**connection.client_options()) as admin:
        for group, described in _patiently(lambda: admin.describe_groups(groups)).items():
            if members := [_member(member) for member in described["members"]]:
                raise ReplicatorRuns(pipeline, group, members)


def _member(member: Mapping[str, Any]) -> str:
    return f"{member['client_id']} at {member['client_host'].lstrip('/')}"


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Where a pipeline begins that continues somebody else's work."""

    pipeline: Pipeline
    connections: Connections

    def next_offsets(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of every partition that the tables do not have yet."""
        places = list(places)
        (journal,) = (one for one in self.pipeline.writers if isinstance(one, JournalDeclaration))
        refuse_members(self.pipeline.name, self.connections.kafka, (topic for topic, _ in places))
        session = connect(self.connections.cassandra[journal.connection])
        is_there = are_there(session, journal)
        pointers = JournalTables.of(session, journal).read_pointers(places) if is_there else {}
        if not pointers:
            raise NothingToTakeOver(self.pipeline.name, journal.keyspace)
        return {place: offset + 1 for place, offset in pointers.items()}


@dataclass(frozen=True, slots=True)
class HandBack:
    """How a kafka-journal replicator gets its tables back."""

    pipeline: Pipeline
    connections: Connections
    control: LogControl
    positions: Positions
    clock: Clock = wall_clock

    def plan(self, writer: str) -> Plan:
        """Put our offsets into the replicator's groups; refused while either side could still write."""
        name = self.pipeline.name
        declared = next((one for one in self.pipeline.writers if one.name == writer), None)
        if not isinstance(declared, JournalDeclaration):
            raise NotPossible(name, writer, "only a journal's tables can be handed back.")
        state = self.positions.load(writer)
        if state is None or state.gate is None:
            raise NotPossible(name, writer, f"stop it first: tidemark gate stop {name} {writer}.")
        refuse_held(state, HANDING_BACK, self.clock())  # a resume writes while the gate is closed
        self._refuse_early(writer)
        reached = self.control.bindings_head().reached
        tables = JournalTables.of(connect(self.connections.cassandra[declared.connection]), declared)
        pointers = tables.read_pointers(sorted(reached))
        topics = sorted({topic for topic, _ in pointers})
        refuse_members(name, self.connections.kafka, topics)
        offsets = {
            replicator_group(topic): {
                partition: offset + 1 for (of, partition), offset in pointers.items() if of == topic
            }
            for topic in topics
        }

        def execute(deed: Deed) -> None:
            with holding(take_as_seen(self.positions, state, HANDING_BACK, self.clock)) as hold:
                _commit_offsets(self.connections.kafka, topics, offsets)
                hold.change(
                    lambda held, _: self.positions.commit(
                        held, held.position, None, held.gate, None, self.positions.audit_row(held, deed)
                    )
                )

        lines = [
            *(
                f"group {group}: " + ", ".join(f"partition {p} at {o}" for p, o in sorted(of.items()))
                for group, of in offsets.items()
            ),
            "then kafka-journal's replicator may be started; leave the gate closed",
        ]
        return Plan("hand back", name, writer, tuple(lines), {"groups": offsets}, execute)

    def _refuse_early(self, writer: str) -> None:
        newest = self.control.bindings_head().newest
        if newest is None:
            return
        binding = self.control.binding(newest)
        wait = binding.t + binding.width - self.clock()
        if wait >= 0:
            raise NotPossible(
                self.pipeline.name,
                writer,
                f"its last write times are {wait / SECOND:.0f} s ahead of the clock, and would hide what "
                "the other writes before that. Wait so long.",
            )


def _commit_offsets(
    connection: KafkaConnection, topics: Iterable[str], offsets: Mapping[str, Mapping[int, int]]
) -> None:
    with KafkaAdminClient(**connection.client_options()) as admin:
        for topic in topics:
            group = replicator_group(topic)
            next_ones = {
                KafkaPartition(topic, partition): OffsetAndMetadata(offset, "tidemark", -1)
                for partition, offset in offsets[group].items()
            }
            _patiently(partial(admin.alter_group_offsets, group, next_ones))


def _patiently(ask: Callable[[], T]) -> T:
    """Ask until there is a coordinator: the first group of a broker has to wait for it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except KafkaError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
