"""verify: compares a journal's tables with the log, or two keyspaces of a pipeline. Read-only."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.spark.application import Job, run_job, spark_session
from tidemark.spark.jobs.diff import diff_with_spark
from tidemark.spark.jobs.verify import verify_with_spark
from tidemark.verification.selection import EntitySelection


def verify(job: Job) -> dict[str, Any]:
    """Compare what the arguments name. A difference is a result, not a failure."""
    opened, arguments = OpenPipeline(job.pipeline, job.connections), job.arguments
    positions = opened.positions
    if arguments.keyspaces:
        old, new = opened.journals_of(arguments.keyspaces.split(","))
        with spark_session(job) as spark, opened.log.held("diff") as log:
            return diff_with_spark(spark, old, new, log, positions, arguments.most).to_dict()
    writer = opened.journal(arguments.writer or None)
    with spark_session(job) as spark, opened.log.held("verify") as log:
        found = verify_with_spark(spark, writer, log, positions, _selection(arguments), arguments.most)
    return found.to_dict()


def _selection(arguments: argparse.Namespace) -> EntitySelection:
    return EntitySelection(
        topics=tuple(arguments.topic),
        from_t=int(arguments.from_t) if arguments.from_t else None,
        to_t=int(arguments.to_t) if arguments.to_t else None,
        sample=int(arguments.sample) if arguments.sample else None,
        seed=int(arguments.seed or 0),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="verify", description=__doc__)
    parser.add_argument(
        "--writer", default="", help="the journal writer; may be omitted where there is only one"
    )
    parser.add_argument("--keyspaces", default="", help="two keyspaces to compare, the old one first: a,b")
    parser.add_argument("--topic", action="append", default=[], help="only this topic; may be repeated")
    parser.add_argument("--from-t", default="", help="only entities touched by bindings from this time (µs)")
    parser.add_argument("--to-t", default="", help="and up to this one, included")
    parser.add_argument("--sample", default="", help="the number of entities to draw from those, at most")
    parser.add_argument("--seed", default="", help="another number draws another sample")
    parser.add_argument("--most", default=100, type=int, help="the number of differences to list")
    return run_job(parser, argv, verify)


if __name__ == "__main__":
    sys.exit(main())
