"""Opens the synchronisations of a pipeline, for commands, Airflow's tasks and Spark."""

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.log.state.control import LogControl
from tidemark.oplog.sync.synchronisation import Synchronisation


def open_sync(opened: OpenPipeline) -> Synchronisation:
    """The synchronisations of a pipeline. Creates nothing. Raises ``NoOplogCollection``."""
    control = LogControl(opened.consensus, opened.pipeline.name)
    return Synchronisation.of(opened.pipeline, opened.connections, control)
