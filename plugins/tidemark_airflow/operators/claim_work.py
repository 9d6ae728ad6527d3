"""An operator that does the due entries of a work journal.

However the task ends, no claim outlives it: an entry that is not done is failed with its error or given back.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidemark_airflow.connections import open_work

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.work.claimed_item import WorkItem
    from tidemark.work.drain import Stop


class ClaimWork(BaseOperator):
    """Claims up to ``limit`` due entries and calls ``handler`` with each; renews the claims meanwhile.

    An entry whose handler returns is done. One whose handler raises has failed: it comes back after its
    back-off or becomes a dead letter, and the other entries go on. Where the task itself ends early (it is
    stopped, or times out) the remaining entries are given back at once. Returns how many entries were done,
    failed, dead and lost.
    """

    template_fields = ("journal", "limit")

    def __init__(
        self, *, journal: str, handler: "Callable[[WorkItem], Any]", limit: int | str = 100, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.journal, self.handler, self.limit = journal, handler, limit
        self._stop: Stop | None = None

    def execute(self, context: "Context") -> dict[str, int]:
        """Claim entries and do them."""
        from tidemark.work.drain import Stop, drain

        instance = context["ti"]
        owner = f"{instance.dag_id}/{instance.task_id}/{instance.run_id}"[:200]
        self._stop = Stop()
        with open_work(self.journal, owner) as work:
            result = drain(work, self.handler, int(self.limit), self.log.info, self._stop)
        self.log.info("%s: %s", self.journal, result)
        return result

    def on_kill(self) -> None:
        """Stop at once and give back the remaining entries: Airflow kills the process a few seconds later."""
        if self._stop is not None:
            self._stop.ask()
