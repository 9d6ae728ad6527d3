"""The state of a pipeline in the control plane, as ``tidemark status`` shows it. Read-only."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tidemark.consensus.objects import Consensus
from tidemark.delivery.compacted_history import refusal_of
from tidemark.delivery.operator.advice import Advice, advise
from tidemark.delivery.state.known_pipelines import known_writers
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, Gate, LeftOut, WriterState
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.log.state.forgotten import read_mark
from tidemark.log.state.registered_writers import enrolled
from tidemark.pipeline.model import Pipeline


@dataclass(frozen=True, slots=True)
class LogStatus:
    """The commit log."""

    end: int
    compacted_below: int
    segments: int
    bytes: int
    messages: int
    gate: str
    reason: str | None = None
    """Why its gate is closed."""
    root: str | None = None
    """Its folder, as far as the control plane knows it."""


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """One writer."""

    name: str
    kind: str
    registered: bool
    position: int
    lag: int
    """How many ids of the log it has not finished with."""
    gate: str
    reason: str | None
    retired: bool = False
    """Whether the pipeline's file does not have it any more: it still holds compaction back."""
    left_out: list[LeftOut] = field(default_factory=list)
    """Topics that it goes on without, because they were made again."""
    hint: str | None = None
    """What to do first about a closed gate."""


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """One pipeline, whole."""

    pipeline: str
    log: LogStatus
    upper: int
    unpublished: bool
    """Whether a binding waits for its capture or publication."""
    writers: tuple[WriterStatus, ...]
    declared: bool = True
    """Whether a file has it; else only the control plane knows it."""
    error: str | None = None
    """What is wrong with its file or its connections, where its state can be shown in spite of that."""
    warnings: tuple[str, ...] = ()
    """Settings that work but should be changed."""

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
        }


@dataclass(frozen=True, slots=True)
class PipelineTrouble:
    """A pipeline of which nothing can be shown."""

    pipeline: str
    error: str
    declared: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return asdict(self)


def read_status(pipeline: Pipeline, consensus: Consensus) -> PipelineStatus:
    """The pipeline's state now."""
    declared = {writer.name: writer.kind for writer in pipeline.writers}
    below = LogControl(consensus, pipeline.name).log_head().compacted_below
    refused = {
        writer.name: str(refusal)
        for writer in pipeline.writers
        if (refusal := refusal_of(pipeline.name, writer, below))
    }
    return _status(pipeline.name, declared, consensus, refused)


def read_orphan_status(pipeline: str, consensus: Consensus) -> PipelineStatus:
    """The state of a pipeline that no file declares; all its writers are retired."""
    return replace(_status(pipeline, {}, consensus, {}), declared=False)


def _status(
    name: str, declared: Mapping[str, str], consensus: Consensus, refused: Mapping[str, str]
) -> PipelineStatus:
    """``refused`` is why writers cannot begin, should they not be registered yet."""
    control, positions = LogControl(consensus, name), Positions(consensus, name)
    bindings, log, gate = control.bindings_head(), control.log_head(), control.log_gate()
    mark = read_mark(control)
    reason = mark.said(name) if mark else gate.reason if gate else None
    known = enrolled(control) if declared else known_writers(control, positions)
    retired = [one for one in known if one not in declared]
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
                _writer_status(positions, name, kind, log.end, refused.get(name))
                for name, kind in declared.items()
            ),
            *(_writer_status(positions, name, None, log.end) for name in retired),
        ),
    )


def _writer_status(
    positions: Positions, name: str, kind: str | None, end: int, refusal: str | None = None
) -> WriterStatus:
    """One writer; ``refusal`` is why it cannot begin, should it not be registered yet."""
    state, is_retired = positions.load(name), kind is None
    if state is None:
        lag, gate = end - NOTHING_YET, Gate.STOPPED if refusal else Gate.OPEN
        return WriterStatus(name, kind or "", False, NOTHING_YET, lag, gate.value, refusal, is_retired)
    reason, hint = _why_stopped(positions, state)
    return WriterStatus(
        name,
        kind or str(state.shape.get("kind", "")),
        True,
        state.position,
        end - state.position,
        state.status.value,
        reason,
        is_retired,
        list(positions.left_out(name).values()),
        hint,
    )


def read_advice(positions: Positions, name: str) -> Advice:
    """What to do about a writer's gate, by what the control plane knows now."""
    state = positions.load(name)
    return advice_about(positions, state) if state else Advice(positions.pipeline, name)


def advice_about(positions: Positions, state: WriterState) -> Advice:
    """The same for a writer's state as it was seen."""
    if state.gate is None:
        return Advice(state.pipeline, state.name)
    return advise(state, positions.acknowledged(state.name), positions.handed_back(state))


def _why_stopped(positions: Positions, state: WriterState) -> tuple[str | None, str | None]:
    """The reason of a closed gate as it is now, and what to do first."""
    if state.gate is None:
        return None, None
    advice = advice_about(positions, state)
    is_passed = state.gate.cause is Cause.MESSAGE and advice.acknowledgeable is None
    first = advice.hints[0]
    return advice.where if is_passed else state.gate.reason, f"{first.what}: {first.command}"


def summarize(delivered: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The summary of a run, from that of its delivery: the form of task results and asset events."""
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
        "seconds": round(seconds, 1),
    }
