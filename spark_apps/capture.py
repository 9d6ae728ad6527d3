"""capture: one binding's records from Kafka into log files. Writes nothing that a reader can see."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from tidemark.cassandra.session import connect
from tidemark.consensus.lightweight import LightweightConsensus
from tidemark.log.control import LogControl
from tidemark.log.files import Captured, LogFolder
from tidemark.spark.capture import read_bound, write_files
from tidemark.spark.job import Job, run_job, spark_session


def capture(job: Job) -> dict[str, Any]:
    """Capture the binding, or verify what an earlier attempt captured."""
    control = LogControl(LightweightConsensus(connect(job.connections.control)), job.pipeline.name)
    binding = control.binding(job.arguments.t)
    folder = LogFolder(job.pipeline.name, job.pipeline.log.path)
    captured = folder.read_captured(binding.t)
    if captured is None:
        kafka = job.pipeline.source.kafka
        with spark_session(job) as spark:
            records = read_bound(spark, binding, job.connections.kafka, kafka.isolation)
            files = write_files(records, binding, job.pipeline.name, job.pipeline.log.path)
        captured = Captured(binding.t, tuple(files))
        folder.write_captured(captured)
    else:
        for file in captured.files:
            folder.verify(file)
    return {
        "t": binding.t,
        "ids": [binding.base, binding.end],
        "records": sum(file.count for file in captured.files),
        "bytes": sum(file.bytes for file in captured.files),
        "files": len(captured.files),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="capture", description=__doc__)
    parser.add_argument("--t", required=True, type=int, help="the binding to capture, in µs")
    return run_job(parser, argv, capture)


if __name__ == "__main__":
    sys.exit(main())
