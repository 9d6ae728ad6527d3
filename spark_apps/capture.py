"""capture: reads one binding's records from Kafka into log files and audits them. Publishes nothing."""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import structlog

from tidemark.app.expectations import pipeline_suite
from tidemark.cassandra.session import connect
from tidemark.clock import wall_clock
from tidemark.consensus.lightweight import LightweightConsensus
from tidemark.log.bindings.door import Bindings
from tidemark.log.capture import capture
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile
from tidemark.log.publish import read_log
from tidemark.log.source import read_still_available
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import source_topics
from tidemark.spark.application import Job, load_audit_beside, run_job, spark_session
from tidemark.spark.engine import EngineKind
from tidemark.spark.jobs.capture import SparkCapture

events = structlog.get_logger()

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def capture_binding(job: Job) -> dict[str, Any]:
    """Capture and audit the binding, or verify its files where it is published already."""
    control = LogControl(LightweightConsensus(connect(job.connections.control)), job.pipeline.name)
    folder = LogFolder(job.pipeline.name, job.pipeline.log.path)
    binding = Bindings(control, folder).at(job.arguments.t)
    if control.log_head().t < binding.t:
        try:
            return _capture_and_audit(job, control, folder, binding)
        except Exception as error:
            # A follow finishes the oldest binding, whichever run made it, and removes other staging areas.
            if control.log_head().t < binding.t:
                raise
            events.info("published by another run meanwhile", t=binding.t, error=str(error))
    files = read_log(control, folder).files_of(binding)
    for file in files:
        folder.verify(file)
    return _summary(binding, folder, files)


def _capture_and_audit(job: Job, control: LogControl, folder: LogFolder, binding: Binding) -> dict[str, Any]:
    source, kafka = source_topics(job.pipeline), job.connections.kafka
    with ExitStack() as stack:
        load_audit_beside(stack.enter_context(ThreadPoolExecutor(1)))

        @cache
        def session() -> "SparkSession":
            return stack.enter_context(spark_session(job))

        engine = SparkCapture(session, kafka, source.isolation, folder, pipeline_suite(job.pipeline))
        still_available = partial(read_still_available, source, kafka)
        captured, record = capture(
            control, folder, binding, engine, still_available, wall_clock(), source.declares
        )
    failures, warnings = list(record.failures), list(record.warnings)
    return {
        **_summary(binding, folder, captured.files),
        "audit": {"passed": record.passed, "failures": len(failures), "warnings": len(warnings)},
    }


def _summary(binding: Binding, folder: LogFolder, files: Sequence[LogFile]) -> dict[str, Any]:
    return {
        "t": binding.t,
        "ids": [binding.base, binding.end],
        "records": sum(folder.count_between(file, binding.base, binding.end) for file in files),
        "bytes": sum(file.bytes for file in files),
        "files": len(files),
        "engine": {"kind": EngineKind.PROCESS.value},
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="capture", description=__doc__)
    parser.add_argument("--t", required=True, type=int, help="the time of the binding to capture, in µs")
    return run_job(parser, argv, capture_binding)


if __name__ == "__main__":
    sys.exit(main())
