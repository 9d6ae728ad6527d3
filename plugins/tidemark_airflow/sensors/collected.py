"""The tasks ``barrier`` and ``wait_for_replication`` of ``<pipeline>.sync``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.failures import no_retry_if_person_needed
from tidemark_airflow.sensors import NO_TIMEOUT
from tidemark_airflow.triggers.collected import CollectedTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class CollectedSensor(BaseSensorOperator):
    """Waits, without holding a worker, until the collection has everything that the topic has now.

    With a run and a time: everything that the run's corrections were sent after, and themselves. Returns the
    time that can be read then.
    """

    template_fields = ("run", "t")

    def __init__(self, *, pipeline: str, run: str = "", t: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.run, self.t = pipeline, run, t

    def execute(self, context: "Context") -> dict[str, int]:
        """Succeed or defer."""
        from tidemark.app.sync import open_sync
        from tidemark.oplog.sync.errors import CollectionBehind

        sync = open_sync(open_pipeline(self.pipeline))
        with no_retry_if_person_needed():
            topic = sync.read_topic()
            ends = sync.files.sent(sync.files.diff(self.run, int(self.t))).ends if self.run else topic.ends
            try:
                return {"t": sync.reached(topic, ends).t}
            except CollectionBehind as behind:
                self.log.info("%s", behind)
        trigger = CollectedTrigger(self.pipeline, sync.writer, sorted(ends.items()))
        self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: Mapping[str, Any]) -> dict[str, int]:
        """The collection has everything that was waited for: what can be read only grows."""
        from tidemark.app.sync import open_sync

        sync = open_sync(open_pipeline(self.pipeline))
        with no_retry_if_person_needed():
            known = sync.reached(sync.read_topic(), {})
        self.log.info("%s/%s: has everything; it is read at %s", self.pipeline, sync.writer, known.t)
        return {"t": known.t}
