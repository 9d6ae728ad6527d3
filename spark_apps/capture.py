"""capture: one binding's records from Kafka into log files, and their audit. Nothing a reader can see."""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

from tidemark.app.expectations import pipeline_suite
from tidemark.app.replicate import refuse_losses_of
from tidemark.cassandra.session import connect
from tidemark.consensus.lightweight import LightweightConsensus
from tidemark.log.audit import audit_files, prepare_audit
from tidemark.log.capture import capture
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import Judgement
from tidemark.log.model.binding import Binding
from tidemark.log.model.captured import Captured
from tidemark.log.model.loss import readable_slices
from tidemark.log.model.manifest import LogFile
from tidemark.log.publish import read_log
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import source_topics
from tidemark.spark.application import Job, run_job, spark_session
from tidemark.spark.jobs.capture import audit_messages, read_bound, write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def capture_binding(job: Job) -> dict[str, Any]:
    """Capture and audit the binding; of one that is published already, verify the files."""
    control = LogControl(LightweightConsensus(connect(job.connections.control)), job.pipeline.name)
    binding = control.binding(job.arguments.t)
    folder = LogFolder(job.pipeline.name, job.pipeline.log.path)
    if control.log_head().t < binding.t:
        return _capture_and_audit(job, control, folder, binding)
    files = read_log(control, folder).files_of(binding)
    for file in files:
        folder.verify(file)
    return _summary(binding, folder, files)


def _capture_and_audit(job: Job, control: LogControl, folder: LogFolder, binding: Binding) -> dict[str, Any]:
    name, suite = job.pipeline.name, pipeline_suite(job.pipeline)
    with ExitStack() as stack:
        # Great Expectations takes seconds to load, and Spark to start: both at once.
        loading = stack.enter_context(ThreadPoolExecutor(1)).submit(prepare_audit)

        @cache
        def spark() -> "SparkSession":
            return stack.enter_context(spark_session(job))

        def read() -> Captured:
            slices = readable_slices(binding, control.accepted_losses())
            refuse_losses_of(binding, slices, job.pipeline, job.connections, control)
            if not slices:
                return Captured(binding.t, (), rows_read=0)
            source = source_topics(job.pipeline)
            records = read_bound(spark(), slices, job.connections.kafka, source.isolation)
            return write_files(records, binding, slices, name, job.pipeline.log.path, source.declares)

        def audit(captured: Captured) -> list[Judgement]:
            loading.result()
            judgements = audit_files(name, list(captured.statistics), captured.rows_read, suite)
            if suite.messages:
                paths = [folder.at(file) for file in captured.files]
                judgements += audit_messages(name, spark(), paths, suite)
            return judgements

        captured, record = capture(folder, binding.t, read, audit)
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
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="capture", description=__doc__)
    parser.add_argument("--t", required=True, type=int, help="the binding to capture, in µs")
    return run_job(parser, argv, capture_binding)


if __name__ == "__main__":
    sys.exit(main())
