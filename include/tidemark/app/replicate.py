"""The steps of ``<pipeline>.replicate`` that need no JVM: bind, check the audit, publish.

``begin_run`` binds new offsets and returns which further steps are needed. ``audit_run`` shows the findings
of an audit and refuses a critical one. ``publish_run`` makes a capture part of the log.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tidemark.cassandra.session import connect, server_time
from tidemark.clock import SECOND, wall_clock
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.consensus.objects import Consensus
from tidemark.delivery.compacted_history import needing_every_message
from tidemark.delivery.renditions.selection import consumers_of_all, outputs_of
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import passed_by_all
from tidemark.faults import FaultPoint, reach
from tidemark.log.bind import bind, find_unfinished, refuse_clock
from tidemark.log.bindings.archive import Archiving
from tidemark.log.bindings.door import Bindings
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import NOTHING_YET, Available, Binding, TopicPartition
from tidemark.log.model.gate import LogStopped
from tidemark.log.publish import publish, require_audit
from tidemark.log.source import NoSuchTopic, read_available
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.forgotten import refuse_forgotten
from tidemark.pipeline.kinds import FORMATS
from tidemark.pipeline.model import Pipeline, WriterStart, source_topics

NextOffsets = Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int]]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The work of one run.

    Attributes:
        t: The binding to capture and publish; None when there is nothing new.
        records: How many offsets that binding covers.
        lag: How many published ids the slowest consumer has not finished; those that are stopped, and
            renditions that are being built, do not count.
        stopped: Whether the gate of an active rendition is closed.
    """

    t: int | None
    records: int
    lag: int
    stopped: bool = False

    @property
    def deliver(self) -> bool:
        """Whether a writer has something to do."""
        return self.lag > 0 or self.t is not None

    @property
    def messages(self) -> int:
        """The most messages that one step has to process."""
        return self.records + self.lag


@dataclass(frozen=True)
class RunSource:
    """Where a run binds: the control plane, Kafka, and how.

    Attributes:
        consensus: The control plane, for changes.
        read_available: Reads the current state of the source's topics.
        server_time: Reads Cassandra's clock, in µs.
        next_offsets: The start of a pipeline that continues another replicator's work.
        in_process: A binding of at most so many offsets is captured without Spark.
    """

    consensus: Consensus
    read_available: Callable[[], Available]
    server_time: Callable[[], int]
    next_offsets: NextOffsets | None = None
    in_process: int = 0

    @classmethod
    def of(
        cls, pipeline: Pipeline, connections: Connections, next_offsets: NextOffsets | None
    ) -> "RunSource":
        """For one run: everything is opened for it.

        A small binding is captured without Spark where the engine stays up. An application per task has
        started Spark before it knows what there is to do.
        """
        stays_up = connections.spark is not None and connections.spark.is_connect
        return cls(
            open_control(connections),
            lambda: read_available(source_topics(pipeline), connections.kafka),
            lambda: server_time(connect(connections.control)),
            next_offsets,
            pipeline.limits.max_records_in_process if stays_up else 0,
        )


def begin_run(
    pipeline: Pipeline,
    connections: Connections,
    run_id: str,
    *,
    retry: bool,
    next_offsets: NextOffsets | None = None,
) -> RunPlan:
    """See ``begin_run_at``; everything that it needs is opened for this run."""
    return begin_run_at(RunSource.of(pipeline, connections, next_offsets), pipeline, run_id, retry=retry)


def begin_run_at(
    source: RunSource, pipeline: Pipeline, run_id: str, *, retry: bool, is_new: bool = False
) -> RunPlan:
    """Bind what is new, unless something older has to be finished first.

    A gate that closed over a binding stops every run but a retry: the binding's own run, or one that an
    operator has started. ``is_new`` tells that no earlier attempt had this run id.
    """
    control = LogControl(source.consensus, pipeline.name)
    refuse_forgotten(control)
    bindings = Bindings(control, LogFolder(pipeline.name, pipeline.log.path))
    if is_new:
        bindings.expect_new(run_id)
    binding = find_unfinished(control, run_id, bindings)
    if binding is None:
        binding = _bind_new(source, pipeline, control, run_id, bindings)
    else:
        gate = control.log_gate()
        if gate is not None and not retry and binding.run_id != run_id:
            raise LogStopped(pipeline.name, gate)
    end = control.log_head().end
    positions = Positions(source.consensus, pipeline.name)
    outputs = outputs_of(source.consensus, pipeline.name, pipeline.writers)
    found = consumers_of_all(outputs, pipeline.writers, wall_clock())
    # A rendition that is being built starts no run by itself: that is what its build is for.
    states = [(one.is_active, positions.load(one.name)) for one in found if not one.is_building]
    reached = [state.position if state else NOTHING_YET for _, state in states if not (state and state.gate)]
    lag = max((end - position for position in reached), default=0)
    stopped = any(is_active and state and state.gate for is_active, state in states)
    if binding is None:
        return RunPlan(t=None, records=0, lag=lag, stopped=stopped)
    return RunPlan(t=binding.t, records=binding.width, lag=lag, stopped=stopped)


def _bind_new(
    source: RunSource, pipeline: Pipeline, control: LogControl, run_id: str, bindings: Bindings
) -> Binding | None:
    now = wall_clock()
    refuse_clock(pipeline.name, now, source.server_time())
    # Read before Kafka's offsets: a binding in between would look like a partition that was truncated.
    head = control.bindings_head()
    try:
        available = source.read_available()
    except NoSuchTopic as missing:
        was_read = any(topic == missing.topic for topic, _ in head.reached)
        raise NoSuchTopic(pipeline.name, missing.topic, was_read=was_read) from None
    if source.next_offsets and head.newest is None and not head.reached:
        head = control.start_from(head, source.next_offsets(available.offsets))
        reach(FaultPoint.TAKEN_OVER)
    limit = pipeline.limits.max_records_per_run
    fixes = FORMATS.find(pipeline.source.kafka.format).has_fixed_partitions
    place = (control, available, limit, now, run_id, head, bindings, source.in_process)
    return bind(*place, fixes_partitions=fixes)


def audit_run(
    pipeline: Pipeline, connections: Connections, t: int, show: Callable[[str], object]
) -> AuditRecord:
    """Show what the audit of a capture found; a bad finding closes the log's gate and stops here."""
    control = LogControl(open_control(connections), pipeline.name)
    folder = LogFolder(pipeline.name, pipeline.log.path)
    if found := folder.read_audit(t):
        for line in found.to_lines():
            show(line)
    return require_audit(control, folder, Bindings(control, folder).at(t), wall_clock())


def publish_run(pipeline: Pipeline, connections: Connections, t: int) -> LogHead:
    """Make the captured binding part of the log."""
    control = LogControl(open_control(connections), pipeline.name)
    folder = LogFolder(pipeline.name, pipeline.log.path)
    binding, archiving = Bindings(control, folder).at(t), archiving_of(pipeline, control)
    return publish(control, folder, binding, pipeline.log.segment_bytes, wall_clock(), archiving)


def archiving_of(pipeline: Pipeline, control: LogControl) -> Archiving:
    """Which bindings leave the control plane: those older than ``log.keep_bindings`` that every registered
    and declared writer has passed."""

    def passed() -> int:
        declared = [one.name for one in pipeline.writers if one.start is not WriterStart.LATEST]
        is_compacted = control.log_head().compacted_below > 0
        refused = needing_every_message(pipeline.writers) if is_compacted else ()
        return passed_by_all(control, Positions(control.consensus, pipeline.name), declared, refused)

    return Archiving(int(pipeline.log.bindings_kept.total_seconds() * SECOND), passed)
