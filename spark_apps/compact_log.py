"""compact_log: does one step of a compaction: the plan, its files, or their proof. Publishes nothing.

A step with nothing to read does not start Spark.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

from tidemark.compaction.compact import Compaction
from tidemark.compaction.plan import CompactionPlan
from tidemark.compaction.report import plan_document, plan_lines
from tidemark.consensus.control_plane import look_at_control
from tidemark.spark.application import Job, run_job, spark_session
from tidemark.spark.jobs.compact import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = ("look", "plan", "write", "verify")


def compact(job: Job) -> dict[str, Any]:
    """Do one step. Returns its result for the summary."""
    arguments, pipeline = job.arguments, job.pipeline
    with ExitStack() as stack:

        @cache
        def session() -> "SparkSession":
            return stack.enter_context(spark_session(job))

        policy = arguments.policy or None
        consensus = look_at_control(job.connections)
        compaction = Compaction.open(pipeline, consensus, SparkEngine(session), policy)
        if arguments.step == "look":
            return _planned(compaction.look())
        with compaction.recording_refusals(arguments.holder):
            match arguments.step:
                case "plan":
                    return _planned(compaction.plan(arguments.holder))
                case "write":
                    files = compaction.write(arguments.plan, arguments.holder)
                    return {"files": len(files), "bytes": sum(file.bytes for file in files)}
                case _:
                    compaction.verify(arguments.plan, arguments.holder)
                    return {"verified": arguments.plan}


def _planned(plan: CompactionPlan) -> dict[str, Any]:
    return {**plan_document(plan), "table": list(plan_lines(plan))}


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="compact_log", description=__doc__)
    parser.add_argument("--step", required=True, choices=STEPS, help="look: plan without storing the plan")
    parser.add_argument("--plan", default="", help="the digest of the plan to carry out")
    parser.add_argument("--holder", default="", help="the name under which the step holds the log's lease")
    parser.add_argument("--policy", default="", help="a policy for this run instead of the pipeline's")
    return run_job(parser, argv, compact)


if __name__ == "__main__":
    sys.exit(main())
