"""The ``wait_for_target`` task of ``<pipeline>.resume``."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidemark_airflow.sensors import NO_TIMEOUT
from tidemark_airflow.triggers.target import TargetTrigger, why_unreachable

if TYPE_CHECKING:
    from airflow.sdk import Context


class TargetSensor(BaseSensorOperator):
    """Waits, without holding a worker, until a writer's target can be written to."""

    template_fields = ("writer",)

    def __init__(self, *, pipeline: str, writer: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.writer = pipeline, writer

    def execute(self, context: "Context") -> None:
        """Try once, then defer."""
        reason = why_unreachable(self.pipeline, self.writer)
        if reason is None:
            return
        self.log.warning("%s/%s: the target does not answer: %s", self.pipeline, self.writer, reason)
        trigger = TargetTrigger(self.pipeline, self.writer)
        self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """The target answers."""
        self.log.info("%s/%s: the target answers", self.pipeline, self.writer)
