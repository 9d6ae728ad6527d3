"""follow: rounds of bind, capture, audit, publish and deliver until the time of the run is over."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import cache
from typing import TYPE_CHECKING, Any

import structlog

from tidemark.app.expectations import pipeline_suite
from tidemark.app.follow.failures import noting_failures
from tidemark.app.follow.rounds import Rounds
from tidemark.app.follow.run import FollowRun, Upkeep
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.renditions.on_change import names_changed
from tidemark.app.shutdown import stop_requested
from tidemark.log.audit import prepare_audit
from tidemark.log.files.parquet import LogFolder
from tidemark.log.kafka_records import RecordReader
from tidemark.pipeline.model import FollowDeclaration, source_topics
from tidemark.spark.application import Job, run_job, spark_session
from tidemark.spark.jobs.follow import SampledReconciliation, SmallFileMerging, round_tools
from tidemark.spark.library_archive import is_library_changed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

events = structlog.get_logger()


def follow(job: Job) -> dict[str, Any]:
    """Repeat rounds; returns the figures of the run, the writers whose gates are closed at its end, and those
    that are to be rebuilt because their settings have changed."""
    opened = OpenPipeline(job.pipeline, job.connections)
    with noting_failures(opened), ExitStack() as stack:
        pipeline, kafka, suite = job.pipeline, job.connections.kafka, pipeline_suite(job.pipeline)
        isolation = source_topics(pipeline).isolation
        folder = LogFolder(pipeline.name, pipeline.log.path)
        prepare_audit()  # so that the first round does not wait for it

        @cache
        def session() -> "SparkSession":
            return stack.enter_context(spark_session(job))

        reader = stack.enter_context(closing(RecordReader(kafka, isolation)))
        tools = round_tools(session, reader, kafka, isolation, folder, suite, job.connections.control)
        rounds = stack.enter_context(closing(Rounds.open(opened, job.arguments.run_id, tools)))
        upkeep = Upkeep(
            SampledReconciliation(rounds, pipeline.name, suite),
            SmallFileMerging(pipeline, rounds),
            is_library_changed,
        )
        is_stopping = stack.enter_context(stop_requested())
        declared = pipeline.follow or FollowDeclaration()
        run = FollowRun(pipeline.name, declared, rounds, rounds.consensus, upkeep)
        figures = run.repeat(is_stopping)
        return {**figures, "stopped": sorted(opened.stopped()), "changed": names_changed(opened)}


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="follow", description=__doc__)
    parser.add_argument("--run-id", required=True, help="the run that follows: rounds get ids of their own")
    return run_job(parser, argv, follow)


if __name__ == "__main__":
    sys.exit(main())
