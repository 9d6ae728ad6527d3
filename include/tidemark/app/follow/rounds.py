"""One round of a follow: bind, capture, audit, publish, deliver, with objects that live as long as the run.

The steps are those of ``<pipeline>.replicate``, with the same rules and the same fault points; a round adds
none of its own. Each round has its own run id and its own reader of the log, and takes a writer's lease only
while it delivers to it. Where Spark is needed, the caller provides it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol
from uuid import uuid4

import structlog

from tidemark.app.consumers import RunConsumers
from tidemark.app.follow.deliveries import Deliveries
from tidemark.app.follow.pace import write_times_end
from tidemark.app.follow.round_types import RoundDone, RoundTools
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.replicate import RunSource, archiving_of, begin_run_at
from tidemark.cassandra.session import connect, server_time
from tidemark.clock import Clock, wall_clock
from tidemark.consensus.control_plane import open_control
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.selection import active_state
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.writer import Writer
from tidemark.log.bindings.door import Bindings
from tidemark.log.capture import capture
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Available, Binding, Offsets, TopicPartition
from tidemark.log.model.gate import LogStopped
from tidemark.log.model.manifest import Manifest
from tidemark.log.publish import publish, require_audit
from tidemark.log.source import KafkaUnreachable, WatchedSource
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import OnFailure, source_topics

events = structlog.get_logger()


class FollowedKafka(Protocol):
    """The source's topics, through clients that stay connected: see ``WatchedSource``."""

    def available(self) -> Available:
        """See ``WatchedSource.available``."""

    def still_available(self, topics: Iterable[str]) -> Available:
        """See ``WatchedSource.still_available``."""

    def ends(self, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``WatchedSource.ends``."""

    def close(self) -> None:
        """Disconnect."""


class Rounds:
    """The rounds of one run, over a control plane and clients that stay open until ``close``."""

    def __init__(
        self,
        opened: OpenPipeline,
        run_id: str,
        tools: RoundTools,
        source: RunSource,
        kafka: FollowedKafka,
        clock: Clock = wall_clock,
    ) -> None:
        self._opened, self._tools = opened, tools
        self._source = replace(source, read_available=self._look)
        self._kafka, self._clock = kafka, clock
        self._pipeline, name = opened.pipeline, opened.pipeline.name
        self.holder = follow_holder(name, run_id)
        # A later attempt of the same run must not get this attempt's bindings again.
        self._run_id, self._number = f"{run_id} {uuid4().hex[:12]}", 0
        self.consensus = source.consensus
        self.control = LogControl(self.consensus, name)
        self.positions = Positions(self.consensus, name)
        self.folder = LogFolder(name, self._pipeline.log.path)
        self._bindings = Bindings(self.control, self.folder)
        consumers = RunConsumers(self._pipeline, opened.connections, self.positions, clock)
        self._deliveries = Deliveries(self._pipeline, consumers, self.positions, self.holder, tools, clock)
        self._offsets: Mapping[TopicPartition, Offsets] = {}
        self.reached: Mapping[TopicPartition, int] = {}
        """The next offset to bind of every partition that the last look at the source has found: the earliest
        one where nothing was ever bound. Topics that are deleted, or not declared any more, must not make
        every round a whole one."""
        self.written_until = 0
        """The last write time of the newest binding, whichever run made it, in µs."""
        self.active_from = 0
        """The first id of the log's active segment, as the last delivery has found it: it changes when a
        segment closes, and only then."""
        self._newest: int | None = None
        self._note_bindings()

    @classmethod
    def open(cls, opened: OpenPipeline, run_id: str, tools: RoundTools) -> "Rounds":
        """The rounds of a pipeline, with its connections."""
        connections = opened.connections
        kafka = WatchedSource(source_topics(opened.pipeline), connections.kafka)
        source = RunSource(
            open_control(connections),
            kafka.available,
            lambda: server_time(connect(connections.control)),
            opened.next_offsets,
            opened.pipeline.limits.max_records_in_process,
        )
        return cls(opened, run_id, tools, source, kafka)

    @property
    def writers(self) -> Sequence[tuple[str, Writer]]:
        """The writers of the active renditions, with the names in the file."""
        return [(one.name, self._opened.writer(one.name)) for one in self._pipeline.writers]

    def ends(self) -> Mapping[TopicPartition, int]:
        """The next offsets of the partitions in ``reached``: one request to Kafka.

        Empty where Kafka does not tell them. A topic may have been deleted a moment ago; a whole round, which
        this leads to, finds that out, or that Kafka does not answer.
        """
        try:
            return self._kafka.ends(self.reached) if self.reached else {}
        except KafkaUnreachable as error:
            events.warning("looking at everything", pipeline=self._pipeline.name, reason=str(error))
            return {}

    def refuse_replicator(self) -> None:
        """Stop where another replicator is active on tables that were taken over."""
        self._opened.refuse_replicator(self.holder)

    def whole(self, is_stopping: Callable[[], bool] = lambda: False) -> RoundDone:
        """Bind what is new, capture, audit and publish it; deliver what writers lack.

        Raises what closes the log's gate, and ``LogStopped`` where it is closed.
        """
        if self._waits_for_a_writer():
            return RoundDone(must_wait=True)
        self._number += 1
        run_id = f"{self._run_id} {self._number}"
        plan = begin_run_at(self._source, self._pipeline, run_id, retry=False, is_new=True)
        if gate := self.control.log_gate():
            raise LogStopped(self._pipeline.name, gate)
        if plan.t is not None:
            binding = self._bindings.at(plan.t)
            self._publish(binding)
            self._deliveries.expect(binding)
        done = self._deliver(is_stopping) if plan.deliver else RoundDone()
        self._note_bindings()
        return done

    def _look(self) -> Available:
        available = self._kafka.available()
        self._offsets = available.offsets
        return available

    def _note_bindings(self) -> None:
        head = self.control.bindings_head()
        self.reached = {
            place: head.reached.get(place, offsets.earliest) for place, offsets in self._offsets.items()
        }
        if head.newest is not None and head.newest != self._newest:
            self._newest = head.newest
            self.written_until = write_times_end(self._bindings.at(head.newest))

    def _publish(self, binding: Binding) -> None:
        """Capture, audit and publish a binding, unless another run has published it."""
        if self.control.log_head().t >= binding.t:
            return
        try:
            self._capture_and_publish(binding)
        except Exception as error:
            # A run at intervals finishes the oldest binding too, and removes other staging areas.
            if self.control.log_head().t < binding.t:
                raise
            events.warning(
                "published all the same",
                pipeline=self._pipeline.name,
                t=binding.t,
                error=f"{type(error).__name__}: {error}",
            )

    def _capture_and_publish(self, binding: Binding) -> None:
        pipeline = self._pipeline
        source = source_topics(pipeline)
        _, record = capture(
            self.control,
            self.folder,
            binding,
            self._tools.capture,
            self._kafka.still_available,
            self._clock(),
            source.declares,
        )
        for line in record.to_lines() if not record.passed else ():
            events.warning(line, pipeline=pipeline.name, t=binding.t)
        require_audit(self.control, self.folder, binding, self._clock())
        archiving = archiving_of(pipeline, self.control)
        publish(self.control, self.folder, binding, pipeline.log.segment_bytes, self._clock(), archiving)

    def log(self, who: str) -> AbstractContextManager[PublishedLog]:
        """The log as it is now, under a reader of its own, until the end of the block."""
        empty = PublishedLog(self.control, self.folder, Manifest(self._pipeline.name))
        return empty.held(who)

    def _deliver(self, is_stopping: Callable[[], bool]) -> RoundDone:
        with self.log(f"{self.holder}, round {self._number}") as log:
            if active := log.manifest.active.files:
                self.active_from = active[0].first_id
            return self._deliveries.deliver(log, is_stopping)

    def _waits_for_a_writer(self) -> bool:
        """Whether a stopped writer stops the whole pipeline; the next run waits for it in its first task."""
        if self._pipeline.on_failure is not OnFailure.STOP_PIPELINE:
            return False
        states = (active_state(self.positions, one.name) for one in self._pipeline.writers)
        return any(state is not None and state.gate is not None for state in states)

    def close(self) -> None:
        """Disconnect from Kafka."""
        self._kafka.close()


def follow_holder(pipeline: str, run_id: str) -> str:
    """The name under which the rounds of a run hold leases; ``is_of_follow`` knows it."""
    return f"{pipeline}.follow {run_id}"
