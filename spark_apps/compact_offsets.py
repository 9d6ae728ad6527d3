"""compact_offsets: removes entries of writers' offset logs that newer ones made obsolete. Moves no position.

Spark counts the entries of every writer. Each writer with more than one is planned on linearizable reads and
compacted in one conditional transaction. Without ``--execute`` the application only plans.
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
    """Count, plan, and compact where ``--execute`` is given."""
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
    parser.add_argument(
        "--every", action="store_true", help="the writers of all pipelines, not only of this one"
    )
    parser.add_argument("--execute", action="store_true", help="compact, instead of only planning")
    return run_job(parser, argv, compact)


if __name__ == "__main__":
    sys.exit(main())
