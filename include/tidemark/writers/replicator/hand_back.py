"""Hand-back: a kafka-journal replicator continues with the tables of a stopped writer.

The hand-back is recorded in the writer's state before the replicator's consumer groups are changed. After a
crash in between, repeating the command finishes it, and only a take-over opens the gate. Refused while either
side could still write, and while our write times are ahead of the clock, because they would hide what the
replicator writes.
"""

from dataclasses import dataclass, replace

from tidemark.cassandra.session import connect
from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.connections import Connections
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.operator.action_plan import ActionPlan, NotPossible, refuse_held, take_as_seen
from tidemark.delivery.state.handed_back import HAND_BACK, closing
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, HandedBack, WriterState
from tidemark.delivery.writer_topics import recreated_topics
from tidemark.faults import FaultPoint, reach
from tidemark.journal_tables.statements import JournalTables
from tidemark.kafka.consumer_groups import commit_offsets, refuse_members, replicator_group
from tidemark.log.bindings.door import Bindings
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import JournalDeclaration, Pipeline

HANDING_BACK = "a hand-back"
"""The holder of the lease. After a crash, the same command has the same holder and continues at once."""


def journal_of(pipeline: Pipeline, writer: str) -> JournalDeclaration:
    """The declaration of a journal writer. Raises NotPossible for writers of other kinds."""
    declared = next((one for one in pipeline.writers if one.name == writer), None)
    if not isinstance(declared, JournalDeclaration):
        raise NotPossible(pipeline.name, writer, "only a journal's tables are handed back or taken over.")
    return declared


@dataclass(frozen=True, slots=True)
class HandBack:
    """Hands the tables of a journal writer back to a kafka-journal replicator."""

    pipeline: Pipeline
    connections: Connections
    control: LogControl
    positions: Positions
    clock: Clock = wall_clock

    def plan(self, writer: str) -> ActionPlan:
        """The plan of a hand-back. Raises NotPossible while either side could still write."""
        name = self.pipeline.name
        declared = journal_of(self.pipeline, writer)
        state = self.positions.load(writer)
        if state is None or state.gate is None:
            raise NotPossible(name, writer, f"stop it first: tidemark gate stop {name} {writer}.")
        refuse_held(state, HANDING_BACK, self.clock())  # a resume writes although the gate is closed
        self._refuse_early(writer)
        self._refuse_recreated(writer, state)
        reached = self.control.bindings_head().reached
        tables = JournalTables.of(connect(self.connections.cassandra[declared.connection]), declared)
        pointers = tables.read_pointers(sorted(reached))
        topics = sorted({topic for topic, _ in pointers})
        refuse_members(name, self.connections.kafka, topics)
        offsets = {
            topic: {partition: offset + 1 for (of, partition), offset in pointers.items() if of == topic}
            for topic in topics
        }

        def execute(deed: AuditEntry) -> None:
            handed_back = HandedBack(deed.at, deed.who, deed.reason)
            with holding(take_as_seen(self.positions, state, HANDING_BACK, self.clock)) as hold:
                hold.change(
                    lambda held, lease: self.positions.commit(
                        replace(held, handed_back=handed_back),
                        held.position,
                        None,
                        closing(held, Cause.HAND, handed_back),
                        lease,
                        self.positions.audit_row(held, deed),
                    )
                )
                reach(FaultPoint.HAND_BACK_RECORDED)
                commit_offsets(self.connections.kafka, offsets)
                reach(FaultPoint.HAND_BACK_COMMITTED)

        groups = {replicator_group(topic): of for topic, of in offsets.items()}
        lines = [
            *(
                f"group {group}: " + ", ".join(f"partition {p} at {o}" for p, o in sorted(of.items()))
                for group, of in groups.items()
            ),
            "the gate stays closed, and only a take-over opens it again",
            "then kafka-journal's replicator may be started",
        ]
        return ActionPlan(HAND_BACK, name, writer, tuple(lines), {"groups": groups}, execute)

    def _refuse_recreated(self, writer: str, state: WriterState) -> None:
        if recreated := sorted(recreated_topics(self.control, state)):
            raise NotPossible(
                self.pipeline.name,
                writer,
                f"topic {', '.join(recreated)} was deleted and made again. The tables hold the old one, and "
                "a replicator would go on from its pointers in the new one, past records that it never saw. "
                "Let it begin with an empty keyspace.",
            )

    def _refuse_early(self, writer: str) -> None:
        newest = self.control.bindings_head().newest
        if newest is None:
            return
        binding = Bindings(self.control).at(newest)
        wait = binding.t + binding.width - self.clock()
        if wait >= 0:
            raise NotPossible(
                self.pipeline.name,
                writer,
                f"its last write times are {wait / SECOND:.0f} s ahead of the clock, and would hide what "
                "the other writes before that. Wait so long.",
            )
