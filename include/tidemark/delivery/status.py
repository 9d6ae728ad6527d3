"""The state of a pipeline in the control plane, as ``tidemark status`` shows it. Read-only."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.objects import Consensus
from tidemark.delivery.compacted_history import refusal_of
from tidemark.delivery.operator.advice import Advice, advise
from tidemark.delivery.renditions.declared import changed_in_file
from tidemark.delivery.renditions.rendition_status import RenditionStatus, StatusSource
from tidemark.delivery.renditions.selection import operators_name
from tidemark.delivery.state.known_pipelines import known_writers
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, Gate, LeftOut, WriterState
from tidemark.log.bindings.door import Bindings
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.log.state.followed import Followed, read_followed
from tidemark.log.state.forgotten import read_mark
from tidemark.log.state.registered_writers import enrolled
from tidemark.outputs.model.consumer_name import consumer_name, split_consumer
from tidemark.outputs.model.rendition import Rendition, RenditionState
from tidemark.outputs.state.output_store import OutputStore
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.writers import WriterDeclaration


@dataclass(frozen=True, slots=True)
class LogStatus:
    """The state of the commit log.

    Attributes:
        end: The last id; −1 where the log is empty.
        compacted_below: Ids below this one may have been removed by compaction.
        segments: Number of segment files.
        bytes: Size of the segments.
        messages: Number of messages.
        gate: ``open`` or ``stopped``.
        reason: Why the gate is closed; None where it is open.
        root: The log's folder; None where the control plane has not recorded it.
    """

    end: int
    compacted_below: int
    segments: int
    bytes: int
    messages: int
    gate: str
    reason: str | None = None
    root: str | None = None


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """The state of one writer.

    Attributes:
        name: The writer's name.
        kind: The kind, as declared or as registered.
        registered: Whether it ever ran.
        position: The last id it has finished; −1 for none.
        lag: How many ids of the log it has not finished.
        gate: ``open`` or ``stopped``.
        reason: Why the gate is closed; None where it is open.
        retired: Whether the pipeline's file does not declare it any more. Compaction still waits for it.
        left_out: Topics that it skips because they were deleted and recreated.
        hint: The first remedy for a closed gate.
        frontier: Readers may read times (µs) before it; None before the first delivery.
        differs: The settings of the file that differ from the active rendition's, in words.
        renditions: All renditions; position, lag and gate above are those of the active one.
    """

    name: str
    kind: str
    registered: bool
    position: int
    lag: int
    gate: str
    reason: str | None
    retired: bool = False
    left_out: list[LeftOut] = field(default_factory=list)
    hint: str | None = None
    frontier: int | None = None
    differs: list[str] = field(default_factory=list)
    renditions: list[RenditionStatus] = field(default_factory=list)

    @property
    def active(self) -> RenditionStatus | None:
        """The rendition that readers use; None where it is frozen or there is none."""
        return next((one for one in self.renditions if one.state == RenditionState.ACTIVE), None)


@dataclass(frozen=True, slots=True)
class FollowStatus:
    """Whether a pipeline is followed.

    Attributes:
        followed: Whether a run repeats rounds now. False at the latest 20 s after such a run was killed.
        holder: The run that follows, or followed last.
        since: When it began, in µs.
        last_round: When its last round ended, in µs; 0 before the first.
        lag: The age in seconds of the oldest record of the last round when all targets had it, or of what a
            target still lacks; 0 where there is neither. None where the pipeline is not followed, and during
            the first seconds of the first round.
        rounds: The number of rounds of the run.
        records: The number of records that it delivered.
        needs_person: Why the run leaves writers out of its rounds, by the writer's name. The next run tries
            them again.
    """

    followed: bool
    holder: str | None = None
    since: int | None = None
    last_round: int | None = None
    lag: float | None = None
    rounds: int = 0
    records: int = 0
    needs_person: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Followed | None, now: int) -> "FollowStatus":
        """The status at ``now`` from the row of the last run that followed."""
        if state is None:
            return cls(followed=False)
        is_current = state.is_current(now)
        return cls(
            is_current,
            state.holder,
            state.since,
            state.last_round or None,
            state.lag if is_current and (state.last_round or state.lag) else None,
            state.rounds,
            state.records,
            state.needs_person if is_current else {},
        )


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """The state of one pipeline.

    Attributes:
        pipeline: The pipeline's name.
        log: The commit log.
        upper: The first time, in µs, that no binding covers yet.
        unpublished: Whether a binding waits for its capture or publication.
        writers: Declared writers in the order of the file, then retired ones.
        declared: Whether a file declares it; otherwise only the control plane knows it.
        error: What is wrong with its file or its connections, where its state can be shown nevertheless.
        warnings: Settings that work but should be changed.
        follow: Whether it is followed.
    """

    pipeline: str
    log: LogStatus
    upper: int
    unpublished: bool
    writers: tuple[WriterStatus, ...]
    declared: bool = True
    error: str | None = None
    warnings: tuple[str, ...] = ()
    follow: FollowStatus = FollowStatus(followed=False)

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``; its keys are a public interface."""
        return {
            "pipeline": self.pipeline,
            "log": asdict(self.log),
            "bindings": {"upper": self.upper, "unpublished": self.unpublished},
            "writers": [asdict(writer) for writer in self.writers],
            "declared": self.declared,
            "error": self.error,
            "warnings": list(self.warnings),
            "follow": asdict(self.follow),
        }


@dataclass(frozen=True, slots=True)
class PipelineTrouble:
    """A pipeline whose state cannot be read.

    Attributes:
        pipeline: The pipeline's name.
        error: Why.
        declared: Whether a file declares it.
    """

    pipeline: str
    error: str
    declared: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return asdict(self)


def read_status(pipeline: Pipeline, consensus: Consensus) -> PipelineStatus:
    """The pipeline's state now."""
    below = LogControl(consensus, pipeline.name).log_head().compacted_below
    refused = {
        writer.name: str(refusal)
        for writer in pipeline.writers
        if (refusal := refusal_of(pipeline.name, writer, below))
    }
    return _status(pipeline.name, pipeline, consensus, refused)


def read_orphan_status(pipeline: str, consensus: Consensus) -> PipelineStatus:
    """The state of a pipeline that no file declares; all its writers are retired."""
    return replace(_status(pipeline, None, consensus, {}), declared=False)


def _status(
    name: str,
    pipeline: Pipeline | None,
    consensus: Consensus,
    refused: Mapping[str, str],
    clock: Clock = wall_clock,
) -> PipelineStatus:
    """The state of a pipeline; None for one that no file declares.

    ``refused`` has, by name, why a writer that is not registered yet cannot begin.
    """
    control, positions = LogControl(consensus, name), Positions(consensus, name)
    declared = {writer.name: writer for writer in pipeline.writers} if pipeline else {}
    bindings, log, gate = control.bindings_head(), control.log_head(), control.log_gate()
    mark = read_mark(control)
    reason = mark.said(name) if mark else gate.reason if gate else None
    known = enrolled(control) if declared else known_writers(control, positions)
    retired = sorted({split_consumer(one)[0] for one in known} - {*declared})
    folder = LogFolder(name, log.root) if log.root else None
    source = StatusSource(positions, Bindings(control, folder), bindings.upper, log.end)
    return PipelineStatus(
        pipeline=name,
        log=LogStatus(
            log.end,
            log.compacted_below,
            log.segments,
            log.bytes,
            log.count,
            Gate.STOPPED.value if reason else Gate.OPEN.value,
            reason,
            log.root,
        ),
        upper=bindings.upper,
        unpublished=bindings.newest is not None and bindings.newest > log.t,
        writers=(
            *(
                _writer_status(source, name, pipeline, one, refused.get(name))
                for name, one in declared.items()
            ),
            *(_writer_status(source, name, None, None) for name in retired),
        ),
        follow=FollowStatus.of(read_followed(consensus, name), clock()),
    )


def _writer_status(
    source: StatusSource,
    name: str,
    pipeline: Pipeline | None,
    declared: WriterDeclaration | None,
    refusal: str | None = None,
) -> WriterStatus:
    """The state of one writer; ``refusal`` is why it cannot begin where it is not registered yet."""
    positions, is_retired, kind = source.positions, declared is None, declared.kind if declared else None
    output = OutputStore(positions.consensus, positions.pipeline, name).load()
    consumer = consumer_name(name, output.active.number) if output else name
    state = positions.load(consumer)
    if state is None:
        lag, gate = source.end - NOTHING_YET, Gate.STOPPED if refusal else Gate.OPEN
        return WriterStatus(name, kind or "", False, NOTHING_YET, lag, gate.value, refusal, is_retired)
    reason, hint = _why_stopped(positions, state)
    renditions = output.renditions if output else ()
    differs = [_differences(pipeline, declared, one) for one in renditions]
    return WriterStatus(
        name,
        kind or str(state.shape.get("kind", "")),
        True,
        state.position,
        source.end - state.position,
        state.status.value,
        reason,
        is_retired,
        list(positions.left_out(consumer).values()),
        hint,
        output.frontier if output else None,
        _differences(pipeline, declared, output.active) if output else [],
        source.of(output, declared, differs) if output else [],
    )


def _differences(
    pipeline: Pipeline | None, declared: WriterDeclaration | None, rendition: Rendition
) -> list[str]:
    """The settings of the file that differ from a rendition's, in words; empty without a file."""
    if pipeline is None or declared is None:
        return []
    return [str(one) for one in changed_in_file(pipeline, declared, rendition)]


def read_advice(positions: Positions, name: str) -> Advice:
    """The advice about a writer's gate in its present state."""
    state = positions.load(name)
    return advice_about(positions, state) if state else Advice(positions.pipeline, name)


def advice_about(positions: Positions, state: WriterState) -> Advice:
    """The advice about a writer's gate in a state that was read before."""
    shown = replace(state, name=operators_name(positions, state.name))
    if state.gate is None:
        return Advice(state.pipeline, shown.name)
    return advise(shown, positions.acknowledged(state.name), positions.handed_back(state))


def _why_stopped(positions: Positions, state: WriterState) -> tuple[str | None, str | None]:
    """Why the gate is closed, and the first remedy; None for both where it is open."""
    if state.gate is None:
        return None, None
    advice = advice_about(positions, state)
    is_passed = state.gate.cause is Cause.MESSAGE and advice.acknowledgeable is None
    first = advice.hints[0]
    return advice.where if is_passed else state.gate.reason, f"{first.what}: {first.command}"


def summarize(delivered: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The summary of a run from the summary of its delivery: the form of task results and asset events."""
    writers = delivered["writers"]
    moved = [one["written"] + one["filtered"] + one["ignored"] for one in writers.values()]
    counted = {
        name: sum(one.get(name, 0) for one in writers.values())
        for name in ("events", "entities", "duplicates", "left_out")
    }
    return {
        "records": max(moved, default=0),
        **counted,
        "positions": {name: one["position"] for name, one in writers.items()},
        "lag": {name: delivered["end"] - one["position"] for name, one in writers.items()},
        **({"engine": delivered["engine"]} if "engine" in delivered else {}),
        **({"differs": delivered["differs"]} if delivered.get("differs") else {}),
        **({"renditions": beside} if (beside := _beside(delivered)) else {}),
        "seconds": round(seconds, 1),
    }


def _beside(delivered: Mapping[str, Any]) -> dict[str, Any]:
    """The renditions that a run has delivered to beside the active ones: position, gate and failure."""
    keys = ("position", "gate", "failure")
    found: Mapping[str, Mapping[str, Any]] = delivered.get("renditions", {})
    return {name: {key: one[key] for key in keys} for name, one in found.items()}
