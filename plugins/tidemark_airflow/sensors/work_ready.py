"""A sensor for DAGs that drain a work journal."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidemark_airflow.connections import open_work
from tidemark_airflow.sensors import NO_TIMEOUT
from tidemark_airflow.triggers.work_ready import EVERY, WorkReadyTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class WorkReadySensor(BaseSensorOperator):
    """Waits, without holding a worker, until an entry of a work journal is due.

    ``journal`` is the journal's name; ``every`` the longest time between two checks, in seconds.
    """

    template_fields = ("journal",)

    def __init__(self, *, journal: str, every: float = EVERY, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.journal, self.every = journal, every

    def execute(self, context: "Context") -> None:
        """Check once, then defer."""
        with open_work(self.journal) as work:
            if work.is_ready():
                return
        trigger = WorkReadyTrigger(self.journal, self.every)
        self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """An entry is due."""
        self.log.info("%s: an entry is due", self.journal)
