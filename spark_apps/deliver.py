"""deliver: published messages from the log to every writer, binding by binding. Moves positions."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from tidemark.cassandra.session import connect
from tidemark.consensus.lightweight import LightweightConsensus
from tidemark.delivery.positions import Positions
from tidemark.log.control import LogControl
from tidemark.log.files import LogFolder
from tidemark.log.publish import read_log
from tidemark.spark.deliver import Delivered, Log, WritersFailed, deliver_to
from tidemark.spark.job import Job, run_job, spark_session
from tidemark.writers.registry import build_writers


def deliver(job: Job) -> dict[str, Any]:
    """Bring every writer to the end of the log."""
    pipeline = job.pipeline
    consensus = LightweightConsensus(connect(job.connections.control))
    control, positions = LogControl(consensus, pipeline.name), Positions(consensus, pipeline.name)
    manifest = read_log(control, LogFolder(pipeline.name, pipeline.log.path))
    log = Log(control, manifest, pipeline.log.path)
    with spark_session(job) as spark:
        delivered = {
            writer.name: deliver_to(spark, writer, log, positions)
            for writer in build_writers(pipeline, job.connections)
        }
    failures = {name: outcome.failure for name, outcome in delivered.items() if outcome.failure}
    if failures:
        raise WritersFailed(pipeline.name, failures)
    return {"end": manifest.end, "writers": {name: _summary(outcome) for name, outcome in delivered.items()}}


def _summary(delivered: Delivered) -> dict[str, int]:
    total = delivered.total
    return {
        "position": delivered.position,
        "written": total.written,
        "filtered": total.filtered,
        "ignored": total.ignored,
        **total.details,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="deliver", description=__doc__)
    return run_job(parser, argv, deliver)


if __name__ == "__main__":
    sys.exit(main())
