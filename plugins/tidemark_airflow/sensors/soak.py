"""The ``soak`` task of ``<pipeline>.rebuild``."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidemark_airflow.sensors import NO_TIMEOUT
from tidemark_airflow.triggers.soak import SoakTrigger, why_to_soak

if TYPE_CHECKING:
    from airflow.sdk import Context


class SoakSensor(BaseSensorOperator):
    """Waits, without holding a worker, while readers may want to return to the earlier rendition.

    ``writer`` is the writer; ``soak`` how long, such as ``24h``, empty for what the file says. The time
    counts from the handover that ``hand_over`` returned, so that a retry does not begin anew.
    """

    template_fields = ("writer", "soak")

    def __init__(self, *, pipeline: str, writer: str, soak: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.writer, self.soak = pipeline, writer, soak

    def execute(self, context: "Context") -> None:
        """Check once, then defer."""
        done = context["ti"].xcom_pull(task_ids="hand_over")
        until = int(done["at"]) + self._length()
        if why_to_soak(self.pipeline, self.writer, int(done["number"]), until) is None:
            return
        trigger = SoakTrigger(self.pipeline, self.writer, int(done["number"]), until)
        self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """The time is over, or readers have returned: the next task finds out."""
        self.log.info("%s/%s: the wait is over", self.pipeline, self.writer)

    def _length(self) -> int:
        """In µs."""
        from tidemark.pipeline.loader import find_pipeline
        from tidemark.pipeline.quantities import parse_duration

        declared = {one.name: one for one in find_pipeline(self.pipeline).writers}[self.writer]
        length = parse_duration(self.soak) if self.soak else declared.soak
        return round(length.total_seconds() * 1_000_000)
