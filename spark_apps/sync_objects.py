"""sync_objects: compares a dump with a collection's objects, and keeps what differs as files. Sends nothing.

The dump was validated before, and the collection has everything that the topic had then.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.sync import open_sync
from tidemark.oplog.sync.report import plan_document, plan_lines
from tidemark.spark.application import Job, run_job, spark_session
from tidemark.spark.jobs.oplog.sync_objects import compare


def sync_objects(job: Job) -> dict[str, Any]:
    """Compare, and return what differs for the summary."""
    arguments, sync = job.arguments, open_sync(OpenPipeline(job.pipeline, job.connections))
    dump, topic = sync.files.dump(arguments.run), sync.read_topic()
    known = sync.known_at(topic, arguments.t)
    with spark_session(job) as spark:
        diff = compare(spark, sync, dump, topic, known)
    plan = (sync.pipeline, dump, diff)
    return {**plan_document(*plan), "table": list(plan_lines(*plan))}


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="sync_objects", description=__doc__)
    parser.add_argument("--run", required=True, help="the key of the run, as its validation has returned it")
    parser.add_argument(
        "--t", required=True, type=int, help="the time of the objects, as the barrier found it"
    )
    return run_job(parser, argv, sync_objects)


if __name__ == "__main__":
    sys.exit(main())
