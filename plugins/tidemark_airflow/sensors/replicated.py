"""The ``wait_for_replication`` task of ``<pipeline>.purge_expired``."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.sensors import NO_TIMEOUT
from tidemark_airflow.triggers.replicated import ReplicatedTrigger, why_not_replicated

if TYPE_CHECKING:
    from airflow.sdk import Context


class ReplicatedSensor(BaseSensorOperator):
    """Waits, without holding a worker, until the journal's writer has passed the purges of a run."""

    template_fields = ("run_name",)

    def __init__(self, *, pipeline: str, writer: str, run_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.writer, self.run_name = pipeline, writer, run_name

    def execute(self, context: "Context") -> None:
        """Succeed or defer."""
        from tidemark.app.purge import open_run

        run = open_run(open_pipeline(self.pipeline), self.writer, self.run_name)
        offsets = [(topic, partition, last) for (topic, partition), last in run.last_offsets().items()]
        if said := why_not_replicated(self.pipeline, self.writer, offsets):
            self.log.info("%s", said)
            trigger = ReplicatedTrigger(self.pipeline, self.writer, offsets)
            self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """The purges are delivered."""
        self.log.info("%s/%s: replication has passed the purges", self.pipeline, self.writer)
