"""Waiting until a pipeline's collection of objects has everything before some offsets of its topic."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.triggers.gate import gate_advice
from tidemark_airflow.triggers.writer import WriterTrigger

Ends = Sequence[tuple[int, int]]
"""A partition, and the first offset that is not waited for."""


class CollectedTrigger(WriterTrigger):
    """Fires when the collection can be read with everything before these offsets."""

    def __init__(self, pipeline: str, writer: str, ends: Ends, every: float = 2.0) -> None:
        super().__init__(pipeline, writer, every)
        self.ends = ends

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        path, keys = super().serialize()
        return path, {**keys, "ends": [list(one) for one in self.ends]}

    def _reason(self) -> str | None:
        try:
            return why_not_collected(self.pipeline, dict(self.ends))
        except Exception as error:  # any failure is a reason to check again
            return f"{type(error).__name__}: {error}"


def why_not_collected(pipeline: str, ends: Mapping[int, int]) -> str | None:
    """What the collection waits for, as a sentence; None where it has everything before these offsets."""
    from tidemark.app.sync import open_sync
    from tidemark.oplog.sync.errors import CollectionBehind

    opened = open_pipeline(pipeline)
    sync = open_sync(opened)
    try:
        sync.reached(sync.read_topic(), ends)
    except CollectionBehind as behind:
        said = [str(behind)]
        if gate := sync.control.log_gate():
            said.append(f"The log's gate is closed: {gate.reason}")
        if sync.writer in opened.stopped():
            said.append(gate_advice(opened, sync.writer))
        return " ".join(said)
    return None
