"""The ``soak`` task of ``<pipeline>.rebuild``."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidemark_airflow.sensors import NO_TIMEOUT
from tidemark_airflow.triggers.soak import SoakTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class SoakSensor(BaseSensorOperator):
    """Waits, without holding a worker, while readers may want to return to the earlier rendition.

    It waits as long as the earlier rendition is delivered to: for the time of the handover that ``hand_over``
    returned, else of the file. That counts from the handover, so that a retry does not begin anew.
    """

    template_fields = ("writer",)

    def __init__(self, *, pipeline: str, writer: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.writer = pipeline, writer

    def execute(self, context: "Context") -> None:
        """Check once, then defer."""
        done = context["ti"].xcom_pull(task_ids="hand_over")
        number, previous = int(done["number"]), int(done["previous"])
        trigger = SoakTrigger(self.pipeline, self.writer, number, previous=previous)
        if trigger.why() is None:
            return
        self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """The time is over, or readers have returned: the next task finds out which."""
        self.log.info("%s/%s: the wait is over", self.pipeline, self.writer)
