"""What the small steps of ``<pipeline>.replicate`` do: they decide, and start no JVM.

``begin_run`` binds what is new and says which of the heavy steps are needed; ``publish_run`` makes a
capture part of the log.
"""

import time
from dataclasses import dataclass

from cassandra.cluster import Session

from tidemark.cassandra.session import connect, server_time
from tidemark.connections import Connections
from tidemark.consensus.lightweight import KEYSPACE, LightweightConsensus, create_schema
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus
from tidemark.delivery.pipeline import Pipeline
from tidemark.delivery.positions import Positions
from tidemark.log.bind import bind, find_unfinished, refuse_clock
from tidemark.log.binding import NOTHING_YET
from tidemark.log.control import LogControl, LogHead
from tidemark.log.files import LogFolder
from tidemark.log.publish import publish
from tidemark.log.source import SourceTopics, read_offsets


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What one run has to do."""

    t: int | None
    """The binding to capture and publish; None when there is nothing new."""
    records: int
    """How many offsets that binding covers."""
    deliver: bool
    """Whether a writer has something to do."""


def open_control(connections: Connections) -> LightweightConsensus:
    """The control plane, made where it is missing."""
    session: Session = connect(connections.control)
    create_schema(session, connections.control.control_replication)
    return LightweightConsensus(session)


def look_at_control(connections: Connections) -> Consensus:
    """The control plane for somebody who only looks: nothing is made, and what is not there is empty."""
    session: Session = connect(connections.control)
    if KEYSPACE not in session.cluster.metadata.keyspaces:
        return MemoryConsensus()
    return LightweightConsensus(session)


def begin_run(pipeline: Pipeline, connections: Connections, run_id: str) -> RunPlan:
    """Bind what is new, unless something older has to be finished first."""
    consensus = open_control(connections)
    control = LogControl(consensus, pipeline.name)
    binding = find_unfinished(control, run_id)
    if binding is None:
        now = time.time_ns() // 1000
        refuse_clock(pipeline.name, now, server_time(connect(connections.control)))
        kafka = pipeline.source.kafka
        source = SourceTopics(pipeline.name, kafka.topics, kafka.topic_prefixes, kafka.isolation)
        available = read_offsets(source, connections.kafka)
        binding = bind(control, available, pipeline.limits.max_records_per_run, now, run_id)
    if binding is not None:
        return RunPlan(t=binding.t, records=binding.width, deliver=True)
    end = control.log_head().end
    positions = Positions(consensus, pipeline.name)
    states = [positions.load(writer.name) for writer in pipeline.writers]
    behind = any((state.position if state else NOTHING_YET) < end for state in states)
    return RunPlan(t=None, records=0, deliver=behind)


def publish_run(pipeline: Pipeline, connections: Connections, t: int) -> LogHead:
    """Make the captured binding part of the log."""
    control = LogControl(open_control(connections), pipeline.name)
    folder = LogFolder(pipeline.name, pipeline.log.path)
    return publish(control, folder, control.binding(t), pipeline.log.segment_bytes)
