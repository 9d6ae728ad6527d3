"""Opens a purge of expired entities, for Airflow's tasks, Spark and the demo."""

from zoneinfo import ZoneInfo

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.delivery.writer_topics import recreated_topics
from tidemark.expiry.heads import JournalHeads, topics_of
from tidemark.expiry.purge_sender import PipelineTail, PurgeSender
from tidemark.expiry.run import ExpiryRun


def open_run(opened: OpenPipeline, writer: str, run: str) -> ExpiryRun:
    """The purge named ``run`` over the entities of one of the pipeline's journals. Creates nothing."""
    journal, pipeline, kafka = opened.journal(writer), opened.pipeline.name, opened.connections.kafka
    state = opened.positions.load(journal.name)
    recreated = recreated_topics(opened.log.control, state) if state else ()
    return ExpiryRun(
        run,
        journal.name,
        ZoneInfo(journal.zone),
        opened.positions,
        opened.log,
        JournalHeads(journal),
        PipelineTail(pipeline, kafka),
        PurgeSender(pipeline, run, kafka),
        topics_of(opened.pipeline, journal.declared.namespaces, recreated),
    )
