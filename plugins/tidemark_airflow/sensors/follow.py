"""The ``wait_until_ready`` task of ``<pipeline>.follow``."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidemark_airflow.sensors import NO_TIMEOUT
from tidemark_airflow.triggers.follow import FollowTrigger, why_not_yet

if TYPE_CHECKING:
    from airflow.sdk import Context


class FollowSensor(BaseSensorOperator):
    """Waits, without holding a worker, for the engine, an open log gate and free leases."""

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: "Context") -> None:
        """Succeed or defer."""
        run_id = str(context["run_id"])
        if reason := why_not_yet(self.pipeline, run_id):
            self.log.warning("%s", reason)
            trigger = FollowTrigger(self.pipeline, run_id)
            self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """Nothing is in the way any more."""
        self.log.info("%s: ready", self.pipeline)
