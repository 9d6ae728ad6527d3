"""The state of a pipeline, as the control plane has it: what ``tidemark status`` shows. Never changes it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tidemark.consensus.objects import Consensus
from tidemark.delivery.pipeline import Pipeline
from tidemark.delivery.positions import Positions
from tidemark.delivery.writer_state import Gate, LeftOut
from tidemark.log.binding import NOTHING_YET
from tidemark.log.control import LogControl
from tidemark.log.enrolled import enrolled


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


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """One pipeline, whole."""

    pipeline: str
    log: LogStatus
    upper: int
    unpublished: bool
    """Whether a binding waits for its capture or publication."""
    writers: tuple[WriterStatus, ...]

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``; others rely on its keys."""
        return {
            "pipeline": self.pipeline,
            "log": asdict(self.log),
            "bindings": {"upper": self.upper, "unpublished": self.unpublished},
            "writers": [asdict(writer) for writer in self.writers],
        }


def read_status(pipeline: Pipeline, consensus: Consensus) -> PipelineStatus:
    """The pipeline's state now."""
    control, positions = LogControl(consensus, pipeline.name), Positions(consensus, pipeline.name)
    bindings, log, gate = control.bindings_head(), control.log_head(), control.log_gate()
    declared = {writer.name: writer.kind.value for writer in pipeline.writers}
    retired = [name for name in enrolled(control) if name not in declared]
    return PipelineStatus(
        pipeline=pipeline.name,
        log=LogStatus(
            log.end,
            log.compacted_below,
            log.segments,
            log.bytes,
            log.count,
            Gate.STOPPED.value if gate else Gate.OPEN.value,
            gate.reason if gate else None,
        ),
        upper=bindings.upper,
        unpublished=bindings.newest is not None and bindings.newest > log.t,
        writers=(
            *(_writer_status(positions, name, kind, log.end) for name, kind in declared.items()),
            *(_writer_status(positions, name, None, log.end) for name in retired),
        ),
    )


def _writer_status(positions: Positions, name: str, kind: str | None, end: int) -> WriterStatus:
    state, is_retired = positions.load(name), kind is None
    if state is None:
        lag = end - NOTHING_YET
        return WriterStatus(name, kind or "", False, NOTHING_YET, lag, Gate.OPEN.value, None, is_retired)
    return WriterStatus(
        name,
        kind or str(state.shape.get("kind", "")),
        True,
        state.position,
        end - state.position,
        state.status.value,
        state.gate.reason if state.gate else None,
        is_retired,
        list(positions.left_out(name).values()),
    )


def summarize(delivered: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """What a run came to, from the summary of its delivery: the form of task results and asset events."""
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
