"""Waiting until replication has passed the purges of a run."""

from collections.abc import Sequence
from typing import Any

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.triggers.gate import gate_advice
from tidemark_airflow.triggers.writer import WriterTrigger

Place = tuple[str, int, int]
"""A topic, a partition, and the offset of the last purge in it."""


class ReplicatedTrigger(WriterTrigger):
    """Fires when a writer's position has passed these offsets."""

    def __init__(self, pipeline: str, writer: str, offsets: Sequence[Place], every: float = 2.0) -> None:
        super().__init__(pipeline, writer, every)
        self.offsets = offsets

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        path, keys = super().serialize()
        return path, {**keys, "offsets": list(self.offsets)}

    def _reason(self) -> str | None:
        try:
            return why_not_replicated(self.pipeline, self.writer, self.offsets)
        except Exception as error:  # any failure is a reason to check again
            return f"{type(error).__name__}: {error}"


def why_not_replicated(pipeline: str, writer: str, offsets: Sequence[Place]) -> str | None:
    """The offsets that a writer has not passed yet, as a sentence; None where it has passed all."""
    from tidemark.expiry.purges_delivered import read_not_passed
    from tidemark.log.state.control import LogControl
    from tidemark.outputs.model.consumer_name import split_consumer

    opened = open_pipeline(pipeline)
    wanted = {(topic, partition): offset for topic, partition, offset in offsets}
    control = LogControl(opened.consensus, pipeline)
    waiting = read_not_passed(control, opened.positions, writer, wanted)
    if not waiting:
        return None
    places = ", ".join(
        f"{topic}/{partition} at offset {last}" for (topic, partition), last in waiting.items()
    )
    said = f"{pipeline}/{writer}: {pipeline}.replicate has not passed the purges yet: {places}."
    return f"{said} {gate_advice(opened, writer)}" if split_consumer(writer)[0] in opened.stopped() else said
