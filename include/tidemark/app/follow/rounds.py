"""One round of a follow: bind, capture, audit, publish, deliver, with objects that live as long as the run.

The steps are those of ``<pipeline>.replicate``, with the same rules and the same fault points; a round adds
none of its own. Each round has its own run id and its own reader of the log, and takes a writer's lease only
while it delivers to it. Where Spark is needed, the caller provides it.
"""

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import uuid4

import numpy as np
import structlog
from numpy.typing import NDArray

from tidemark.app.follow.figures import latencies
from tidemark.app.follow.pace import write_times_end
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.replicate import RunSource, archiving_of, begin_run_at
from tidemark.cassandra.session import connect, server_time
from tidemark.clock import Clock, wall_clock
from tidemark.consensus.control_plane import open_control
from tidemark.delivery.binding_steps import WriteParts
from tidemark.delivery.deliver import Delivered, deliver_to
from tidemark.delivery.published_log import LogUnreadable, PublishedLog
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import start_of
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.writer import Writer
from tidemark.log.bindings.door import Bindings
from tidemark.log.capture import CaptureEngine, capture
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Available, Binding, TopicPartition
from tidemark.log.model.gate import LogStopped
from tidemark.log.model.manifest import Manifest
from tidemark.log.publish import publish, require_audit
from tidemark.log.source import KafkaUnreachable, WatchedSource
from tidemark.log.state.control import LogControl
from tidemark.log.state.lease import LogHeld
from tidemark.pipeline.model import AnyWriter, OnFailure, source_topics

MOST_WAITING = 1_000
"""The most bindings whose latency is still to be measured: more are waiting only while a writer is held."""

Reload = Callable[[], WriterState | None]

events = structlog.get_logger()


@dataclass(frozen=True)
class RoundTools:
    """What a round needs beyond the pipeline: the heavy parts, on Spark or in this process.

    Attributes:
        capture: Reads Kafka and audits files.
        write_parts: Writes the parts of a binding.
        reload: The function that reads a writer's state, also in other processes.
    """

    capture: CaptureEngine
    write_parts: WriteParts
    reload: Callable[[Positions, str], Reload]


@dataclass(frozen=True)
class RoundDone:
    """What a round did.

    Attributes:
        delivered: The result for every writer that was delivered to.
        records: The number of records that every open writer has since this round.
        took: The latencies of these records, in seconds.
        held: The writers that another process has.
        waiting_since: The time, in µs, of the oldest binding of this run that a writer with an open gate
            lacks; None where none does.
        must_wait: Nothing was done, because the whole pipeline waits for a stopped writer.
    """

    delivered: Mapping[str, Delivered] = field(default_factory=dict)
    records: int = 0
    took: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    held: Sequence[str] = ()
    waiting_since: int | None = None
    must_wait: bool = False

    @property
    def closed(self) -> list[str]:
        """The writers whose gates closed in this round."""
        return [name for name, one in self.delivered.items() if one.closed_now]

    @property
    def failures(self) -> list[str]:
        """Why something was not delivered although the gate is open, a sentence for each writer."""
        return [f"{name}: {one.failure}" for name, one in self.delivered.items() if one.failure]


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
        self.writers: Sequence[tuple[AnyWriter, Writer]] = [
            (declared, opened.writer(declared.name)) for declared in self._pipeline.writers
        ]
        self._unmeasured: list[Binding] = []
        self._source_places: Collection[TopicPartition] = ()
        self.reached: Mapping[TopicPartition, int] = {}
        """The next offset to bind of every partition that the last look at the source has found. Topics that
        are deleted, or not declared any more, must not make every round a whole one."""
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
            self._unmeasured.append(binding)
            del self._unmeasured[:-MOST_WAITING]
        done = self._deliver(is_stopping) if plan.deliver else RoundDone()
        self._note_bindings()
        return done

    def _look(self) -> Available:
        available = self._kafka.available()
        self._source_places = available.offsets.keys()
        return available

    def _note_bindings(self) -> None:
        head = self.control.bindings_head()
        self.reached = {
            place: offset for place, offset in head.reached.items() if place in self._source_places
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
            results = {
                writer.name: self._deliver_to(declared, writer, log, is_stopping)
                for declared, writer in self.writers
            }
            delivered = {name: one for name, one in results.items() if one is not None}
            done = RoundDone(delivered, held=[name for name, one in results.items() if one is None])
            return self._measured(done, log)

    def _waits_for_a_writer(self) -> bool:
        """Whether a stopped writer stops the whole pipeline; the next run waits for it in its first task."""
        if self._pipeline.on_failure is not OnFailure.STOP_PIPELINE:
            return False
        states = (self.positions.load(one.name) for one in self._pipeline.writers)
        return any(state is not None and state.gate is not None for state in states)

    def _deliver_to(
        self, declared: AnyWriter, writer: Writer, log: PublishedLog, is_stopping: Callable[[], bool]
    ) -> Delivered | None:
        """Deliver to one writer; None where another process has it. Its failure affects this writer only."""
        try:
            return deliver_to(
                writer,
                log,
                self.positions,
                self.holder,
                self._tools.write_parts,
                limit=self._pipeline.limits.max_records_per_run,
                reload=self._tools.reload(self.positions, writer.name),
                is_stopping=is_stopping,
                start=start_of(declared, log.end),
            )
        except (LeaseHeld, LogHeld) as held:
            events.info("left to another process", writer=writer.name, reason=str(held))
            return None
        except LogUnreadable:
            raise
        except Exception as error:
            traceback.print_exc()  # not by the logger, which may show the variables of every frame
            failure = f"{type(error).__name__}: {error}"
            events.error("writer failed", writer=writer.name, error=failure)
            state = self.positions.load(writer.name)
            return Delivered(state.position if state else -1, failure=failure)

    def _measured(self, done: RoundDone, log: PublishedLog) -> RoundDone:
        """The same result with the latencies of the bindings that every open writer has by now."""
        now = self._clock()
        reached = [one.position for one in done.delivered.values() if one.gate is None]
        if done.held or not reached:
            return replace(done, waiting_since=self._oldest_unmeasured if done.held else None)
        least = min(reached)
        finished = [one for one in self._unmeasured if one.end <= least]
        self._unmeasured = [one for one in self._unmeasured if one.end > least]
        stamps = [
            batch.column("timestamp").to_numpy()
            for one in finished
            for file in log.manifest.files_of(one)
            for batch in self.folder.read_file(file, ["timestamp"], one.base, one.end)
        ]
        every = np.concatenate(stamps) if stamps else np.zeros(0, dtype=np.int64)
        return replace(
            done,
            records=len(every),
            took=latencies(every, now),
            waiting_since=self._oldest_unmeasured,
        )

    @property
    def _oldest_unmeasured(self) -> int | None:
        return self._unmeasured[0].t if self._unmeasured else None

    def close(self) -> None:
        """Disconnect from Kafka."""
        self._kafka.close()


def follow_holder(pipeline: str, run_id: str) -> str:
    """The name under which the rounds of a run hold leases; ``is_round`` knows it."""
    return f"{pipeline}.follow {run_id}"
