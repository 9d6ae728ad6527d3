"""The ``gate_…`` tasks of ``<pipeline>.replicate``: one per writer."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowSkipException

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.sensors import NO_TIMEOUT
from tidemark_airflow.triggers.gate import GateTrigger, gate_advice

if TYPE_CHECKING:
    from airflow.sdk import Context


class GateSensor(BaseSensorOperator):
    """Succeeds where a writer's gate is open.

    Where it is closed, the sensor is skipped at once and logs what to do. With ``waits``, for a pipeline that
    stops as a whole, it waits without holding a worker.
    """

    def __init__(self, *, pipeline: str, writer: str, waits: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.writer, self.waits = pipeline, writer, waits

    def execute(self, context: "Context") -> None:
        """Succeed, skip or defer."""
        opened = open_pipeline(self.pipeline)
        if self.writer not in opened.stopped():
            return
        said = gate_advice(opened, self.writer)
        if not self.waits:
            raise AirflowSkipException(said)
        self.log.warning("%s The whole pipeline waits for it, because of on_failure: stop_pipeline.", said)
        self.defer(trigger=GateTrigger(self.pipeline, self.writer), method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """The gate is open."""
        self.log.info("%s/%s: the gate is open", self.pipeline, self.writer)
