"""The check for a running replicator, made by every run of a pipeline that took over a replicator's tables.

It costs one request to Kafka per run, and none in pipelines that never took tables over. A running replicator
stops the writer, because both would write the same tables. The replicator's progress is not known, so only a
take-over opens the gate again.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tidemark.clock import Clock, wall_clock
from tidemark.connections import Connections
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.state.handed_back import LEFT, closing
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, HandedBack, WriterState
from tidemark.kafka.consumer_groups import ReplicatorRuns, find_members, replicator_group
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import JournalDeclaration, Pipeline, SourceStart


@dataclass(frozen=True, slots=True)
class ReplicatorWatch:
    """Checks the topics of one pipeline for running replicators."""

    pipeline: Pipeline
    connections: Connections
    control: LogControl
    positions: Positions
    clock: Clock = wall_clock

    def refuse_replicator(self, holder: str, only: str | None = None) -> None:
        """Stops the writers whose topics a replicator reads, and raises ReplicatorRuns.

        ``holder`` is the holder of the writers' leases. With ``only``, just that writer is checked.
        """
        watched = list(self._watched(only))
        if not watched:
            return
        # Empty before the first binding, when ``TakeOver`` checks the groups.
        topics = {topic for topic, _ in self.control.bindings_head().reached}
        taken = {
            declared.name: {topic for topic in topics if re.search(declared.namespaces, topic)}
            for declared, _ in watched
        }
        found = find_members(self.connections.kafka, set().union(*taken.values()))
        stopped: list[ReplicatorRuns] = []
        for declared, state in watched:
            groups = {replicator_group(topic) for topic in taken[declared.name]}
            for group in [group for group in found if group in groups][:1]:
                is_stopped = state is not None and self._stop(state, group, found[group], holder)
                name = declared.name if is_stopped else None
                stopped.append(ReplicatorRuns(self.pipeline.name, group, found[group], name))
        if stopped:
            raise stopped[0]

    def _watched(self, only: str | None) -> Iterator[tuple[JournalDeclaration, WriterState | None]]:
        """The journal writers that may write tables which were once a replicator's, with their states.

        Without those that were handed back: their tables are the replicator's and their gates are closed.
        """
        took_over = self.pipeline.source.kafka.start is SourceStart.POINTERS
        for declared in self.pipeline.writers:
            if not isinstance(declared, JournalDeclaration) or only not in (None, declared.name):
                continue
            state = self.positions.load(declared.name)
            if state is None:
                if took_over:
                    yield declared, None
            elif state.ended is not None:
                continue
            elif (took_over or state.theirs) and not state.handed_back and (only or state.gate is None):
                yield declared, state

    def _stop(self, state: WriterState, group: str, members: Iterable[str], holder: str) -> bool:
        """Closes the writer's gate. Returns False where another process holds its lease."""
        reason = f"consumer group {group} has members ({', '.join(members)})"
        left = HandedBack(self.clock(), holder, reason)
        deed = AuditEntry(LEFT, holder, reason, left.at)
        try:
            with holding(take(self.positions, state, holder, self.clock)) as hold:
                hold.change(
                    lambda held, lease: self.positions.commit(
                        replace(held, handed_back=held.handed_back or left),
                        held.position,
                        None,
                        closing(held, Cause.REPLICATOR, left),
                        lease,
                        self.positions.audit_row(held, deed),
                    )
                )
        except LeaseHeld:
            return False  # the next run finds the replicator again
        return True
