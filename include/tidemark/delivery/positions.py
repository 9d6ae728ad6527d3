"""How far each writer has come: its object in the control plane.

A position is the last id a writer has finished with. It only grows here; going back is a command of its own
with a reason.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tidemark.consensus.objects import ABSENT, Change, Consensus, Kind, ObjectKey, Outpaced
from tidemark.errors import TidemarkError
from tidemark.log.binding import NOTHING_YET

HEAD = "head"


class Gate(StrEnum):
    """Whether a writer takes messages."""

    OPEN = "open"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class WriterState:
    """A registered writer."""

    pipeline: str
    name: str
    version: int
    position: int
    gate: Gate
    reason: str | None
    shape: Mapping[str, Any]
    """The settings that shape its output, as they were at registration."""


class ShapeChanged(TidemarkError):
    """A setting that shapes a writer's output is not what it was when the writer was registered."""

    def __init__(self, pipeline: str, writer: str, changed: Mapping[str, tuple[Any, Any]]) -> None:
        what = ", ".join(f"{key} was {old!r} and is now {new!r}" for key, (old, new) in changed.items())
        super().__init__(
            f"{pipeline}/{writer}: {what}. Nothing was delivered, because old and new output would mix. "
            "Change it back, or add a writer under a new name with the new setting."
        )
        self.pipeline, self.writer, self.changed = pipeline, writer, changed


class Positions:
    """The writers of one pipeline."""

    def __init__(self, consensus: Consensus, pipeline: str) -> None:
        self._consensus = consensus
        self.pipeline = pipeline

    def load(self, writer: str) -> WriterState | None:
        """The writer's state; None when it was never registered."""
        snapshot = self._consensus.read(self._key(writer), [HEAD])
        if HEAD not in snapshot.rows:
            return None
        body = json.loads(snapshot.rows[HEAD])
        return WriterState(
            pipeline=self.pipeline,
            name=writer,
            version=snapshot.version,
            position=body["position"],
            gate=Gate(body["gate"]),
            reason=body["reason"],
            shape=body["shape"],
        )

    def register(self, writer: str, shape: Mapping[str, Any], position: int = NOTHING_YET) -> WriterState:
        """Make the writer known at its first run; refuse one whose output would change its shape."""
        known = self.load(writer)
        if known is None:
            fresh = WriterState(self.pipeline, writer, ABSENT, position, Gate.OPEN, None, shape)
            try:
                return self._store(fresh)
            except Outpaced:
                return self.register(writer, shape, position)
        keys = {*known.shape, *shape}
        changed = {
            k: (known.shape.get(k), shape.get(k)) for k in sorted(keys) if known.shape.get(k) != shape.get(k)
        }
        if changed:
            raise ShapeChanged(self.pipeline, writer, changed)
        return known

    def commit(self, state: WriterState, position: int) -> WriterState:
        """Move the position forward, if the writer is still as we saw it."""
        if position < state.position:
            raise ValueError(
                f"{state.pipeline}/{state.name}: {position} is behind the position {state.position}"
            )
        return self._store(replace(state, position=position))

    def _store(self, state: WriterState) -> WriterState:
        body = {
            "position": state.position,
            "gate": state.gate,
            "reason": state.reason,
            "shape": dict(state.shape),
        }
        version = self._consensus.commit(
            self._key(state.name), state.version, Change({HEAD: json.dumps(body)})
        )
        return replace(state, version=version)

    def _key(self, writer: str) -> ObjectKey:
        return ObjectKey(Kind.WRITER, f"{self.pipeline}/{writer}")
