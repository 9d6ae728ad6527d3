"""Take-back: a stopped writer continues with tables that a kafka-journal replicator has written meanwhile.

As in the first take-over, the replicator's groups must be empty. Its pointers must also be at or past every
offset that the log has bound. A bound message has its write time already. If the replicator had not written
it, our write would have an older time than the replicator's last writes and would be hidden by them. Later
bindings must have later times: the source's ``upper`` is moved first, then the gate opens.

Messages at or below the replicator's pointers count as written by it. The log still reads them from Kafka, so
it is complete and other writers get them. This writer drops them and moves its position past them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidemark.cassandra.session import connect
from tidemark.clock import Clock, wall_clock
from tidemark.connections import Connections
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease_holder import holding
from tidemark.consensus.objects import Outpaced
from tidemark.delivery.operator.action_plan import (
    ActionPlan,
    ChangedMeanwhile,
    NotPossible,
    refuse_held,
    take_as_seen,
)
from tidemark.delivery.state.handed_back import TAKE_OVER
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterState
from tidemark.faults import FaultPoint, reach
from tidemark.journal_tables.statements import JournalTables, Pointer, are_there
from tidemark.kafka.consumer_groups import refuse_members
from tidemark.log.model.binding import TopicPartition
from tidemark.log.state.control import BindingsHead, LogControl
from tidemark.pipeline.model import JournalDeclaration, Pipeline, SourceStart
from tidemark.writers.replicator.hand_back import journal_of
from tidemark.writers.replicator.take_over import ahead_of_clock

TAKING_OVER = "a take-over"
"""The holder of the lease. After a crash, the same command has the same holder and continues at once."""


def objection_to(
    reached: Mapping[TopicPartition, int], pointers: Mapping[TopicPartition, Pointer], now: int
) -> str | None:
    """Why tables with these pointers cannot be taken over; None where they can.

    ``reached`` has the next offset to bind of each partition that the writer delivers; ``now`` is in µs.
    """
    for (topic, partition), next_offset in sorted(reached.items()):
        pointer = pointers.get((topic, partition))
        offset = pointer.offset if pointer else -1
        if offset < next_offset - 1:
            actual = f"is at {offset}" if pointer else "is missing"
            return (
                f"the log has bound {topic}/{partition} up to offset {next_offset - 1}, but its pointer "
                f"{actual}: what lies between has older write times than the replicator's own writes, which "
                "would hide it. Let the replicator go on until its pointer is there, stop it and try again; "
                "or begin a pipeline with a new name, a log of its own and `source.kafka.start: pointers`."
            )
    return ahead_of_clock(pointers.values(), now)


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Takes the tables of a stopped writer back from a replicator."""

    pipeline: Pipeline
    connections: Connections
    control: LogControl
    positions: Positions
    clock: Clock = wall_clock

    def plan(self, writer: str) -> ActionPlan:
        """The plan of a take-back. Raises NotPossible while the replicator could still write."""
        name, declared = self.pipeline.name, journal_of(self.pipeline, writer)
        state = self._stopped(writer)
        refuse_held(state, TAKING_OVER, self.clock())
        head = self.control.bindings_head()
        reached = self._delivered_offsets(head, declared)
        refuse_members(name, self.connections.kafka, (topic for topic, _ in reached))
        # Read after the groups were found empty, because a stopped replicator moves no pointer.
        pointers = self._read_pointers(declared, sorted(reached))
        now = self.clock()
        if problem := objection_to(reached, pointers, now):
            raise NotPossible(name, writer, problem)
        offsets = {place: pointer.offset for place, pointer in pointers.items()}

        def execute(deed: AuditEntry) -> None:
            with holding(take_as_seen(self.positions, state, TAKING_OVER, self.clock)) as hold:
                self._advance_upper(head, now, writer)
                reach(FaultPoint.TAKE_OVER_DATED)
                hold.change(
                    lambda held, lease: self.positions.commit(
                        replace(held, handed_back=None, theirs=offsets),
                        held.position,
                        None,
                        None,
                        lease,
                        self.positions.audit_row(held, deed),
                    )
                )
                reach(FaultPoint.TAKE_OVER_OPENED)

        lines = [
            *(
                f"{topic}/{partition}: offsets {reached[topic, partition]} to {offset} count as written by "
                "the replicator"
                for (topic, partition), offset in sorted(offsets.items())
                if offset >= reached[topic, partition]
            ),
            f"position {state.position} stays, and the gate opens: the next run reads what is new, passes "
            "what the replicator has written and writes what follows",
        ]
        places = [[*place, offset] for place, offset in sorted(offsets.items())]
        details = {"position": state.position, "pointers": places}
        return ActionPlan(TAKE_OVER, name, writer, tuple(lines), details, execute)

    def _stopped(self, writer: str) -> WriterState:
        state, name = self.positions.load(writer), self.pipeline.name
        if state is None:
            start = "its first run takes over by itself"
            if self.pipeline.source.kafka.start is not SourceStart.POINTERS:
                start = "give the pipeline `source.kafka.start: pointers`, and " + start
            raise NotPossible(name, writer, f"it never ran, so {start}.")
        if state.gate is None:
            raise NotPossible(name, writer, "its gate is open, so its tables are this writer's already.")
        is_theirs = self.positions.handed_back(state) is not None  # older versions have only the audit entry
        if not is_theirs and state.gate.cause in (Cause.MESSAGE, Cause.VERIFICATION):
            problem = f"its gate is closed for something that a take-over does not mend ({state.gate.reason})"
            raise NotPossible(name, writer, f"{problem}. Look at: tidemark gate show {name} {writer}.")
        return state

    def _delivered_offsets(
        self, head: BindingsHead, declared: JournalDeclaration
    ) -> dict[TopicPartition, int]:
        """The next offset to bind of each partition that the writer delivers."""
        return {
            place: offset
            for place, offset in head.reached.items()
            if re.search(declared.namespaces, place[0])
        }

    def _read_pointers(
        self, declared: JournalDeclaration, places: list[TopicPartition]
    ) -> Mapping[TopicPartition, Pointer]:
        session = connect(self.connections.cassandra[declared.connection])
        if not are_there(session, declared):
            return {}
        return JournalTables.of(session, declared).read_timed_pointers(places)

    def _advance_upper(self, head: BindingsHead, now: int, writer: str) -> None:
        """Makes the times of all further bindings later than ``now``.

        Raises ChangedMeanwhile where a binding was made since ``head`` was read.
        """
        try:
            self.control.advance_upper(head, now)
        except Outpaced:
            raise ChangedMeanwhile(self.pipeline.name, writer) from None
