"""The tasks of ``<pipeline>.sync`` that start a replication, where they would otherwise wait for one."""

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.triggers.collected import why_not_collected

if TYPE_CHECKING:
    from airflow.sdk import Context


class StartReplicationOperator(TriggerDagRunOperator):
    """Starts a run of ``<pipeline>.replicate``, unless nothing waits for one or the pipeline is followed."""

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(
            trigger_dag_id=f"{pipeline}.replicate",
            trigger_run_id="sync__{{ task.task_id }}__{{ run_id }}",
            skip_when_already_exists=True,
            **kwargs,
        )
        self.pipeline = pipeline

    def execute(self, context: "Context") -> None:
        """See ``TriggerDagRunOperator``."""
        from tidemark.app.sync import open_sync
        from tidemark.clock import wall_clock
        from tidemark.log.state.followed import read_followed

        opened = open_pipeline(self.pipeline)
        followed = read_followed(opened.consensus, self.pipeline)
        if followed is not None and followed.is_current(wall_clock()):
            self.log.info("%s is followed; nothing was started", self.pipeline)
            return
        if why_not_collected(self.pipeline, open_sync(opened).read_topic().ends) is None:
            self.log.info("%s: the collection has everything; nothing was started", self.pipeline)
            return
        super().execute(context)
