"""compact_offsets: removes from writers' offset logs what newer entries made obsolete. Moves no position.

Spark counts the entries of every writer; those with more than one are planned one by one, on linearizable
reads, and compacted in one conditional transaction each. Without ``--execute`` it only plans.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from tidemark.consensus.control_plane import look_at_control
from tidemark.delivery.state.offset_log import OffsetsNotCompacted, compact_offsets, find_writers
from tidemark.spark.application import Job, run_job, spark_session
from tidemark.spark.jobs.compact_offsets import collect_counts, count_entries, read_objects


def compact(job: Job) -> dict[str, Any]:
    """Count, plan, and do it where that is asked for."""
    arguments = job.arguments
    consensus = look_at_control(job.connections)
    found = list(find_writers(consensus, None if arguments.every else job.pipeline.name))
    if not found:
        return {"executed": False, "counted": [], "writers": []}
    with spark_session(job) as spark:
        objects = read_objects(spark, job.connections.control)
        counted = collect_counts(count_entries(objects, ["/".join(writer) for writer in found]))
    long = {one.name for one in counted if one.rows > 1}
    chosen = [writer for writer in found if "/".join(writer) in long]
    outcomes = compact_offsets(consensus, chosen, execute=arguments.execute)
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    if failures and arguments.execute:
        raise OffsetsNotCompacted(failures)
    return {
        "executed": arguments.execute,
        "counted": [{"writer": one.name, "rows": one.rows, "bytes": one.bytes} for one in counted],
        "writers": [outcome.to_dict() for outcome in outcomes],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="compact_offsets", description=__doc__)
    parser.add_argument("--every", action="store_true", help="the writers of all pipelines, not of this one")
    parser.add_argument("--execute", action="store_true", help="do it, instead of planning")
    return run_job(parser, argv, compact)


if __name__ == "__main__":
    sys.exit(main())
