"""Waiting until replication has passed the purges of a run, without holding a worker."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidemark_airflow.gates import NO_TIMEOUT, WriterTrigger, advice, open_pipeline

if TYPE_CHECKING:
    from airflow.sdk import Context

Place = tuple[str, int, int]
"""A topic, a partition, and the offset of the last purge in it."""


class ReplicatedTrigger(WriterTrigger):
    """Waits until a writer has finished with these offsets."""

    def __init__(self, pipeline: str, writer: str, offsets: Sequence[Place], every: float = 5.0) -> None:
        super().__init__(pipeline, writer, every)
        self.offsets = offsets

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        path, keys = super().serialize()
        return path, {**keys, "offsets": list(self.offsets)}

    def _reason(self) -> str | None:
        try:
            return missing(self.pipeline, self.writer, self.offsets)
        except Exception as error:  # whatever it is, it is shown, and asked again
            return f"{type(error).__name__}: {error}"


class ReplicatedSensor(BaseSensorOperator):
    """Lets a run pass when the journal's writer has finished with its purges."""

    template_fields = ("run_name",)

    def __init__(self, *, pipeline: str, writer: str, run_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.writer, self.run_name = pipeline, writer, run_name

    def execute(self, context: "Context") -> None:
        """Pass or wait."""
        from tidemark.app.purge import open_run

        run = open_run(open_pipeline(self.pipeline), self.writer, self.run_name)
        offsets = [(topic, partition, last) for (topic, partition), last in run.last_offsets().items()]
        if said := missing(self.pipeline, self.writer, offsets):
            self.log.info("%s", said)
            trigger = ReplicatedTrigger(self.pipeline, self.writer, offsets)
            self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """The purges are delivered."""
        self.log.info("%s/%s: replication has passed the purges", self.pipeline, self.writer)


def missing(pipeline: str, writer: str, offsets: Sequence[Place]) -> str | None:
    """What a writer has not finished with, for people; None where there is nothing."""
    from tidemark.expiry.purges_delivered import read_not_passed
    from tidemark.log.state.control import LogControl

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
    return f"{said} {advice(opened, writer)}" if writer in opened.stopped() else said
