"""find_expired: finds the entities that a run has to purge, through the index of heads. Sends nothing.

Used where one process would take long. Without ``--look`` the plan is stored for the run; a plan above the
ceiling is refused.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from typing import Any

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.purge import open_run
from tidemark.expiry.plan import refuse_too_many
from tidemark.spark.application import Job, run_job, spark_session
from tidemark.spark.jobs.find_expired import collect_expired, plan_of, read_expired


def find(job: Job) -> dict[str, Any]:
    """Find and count the expired entities, and store the plan unless ``--look`` is given."""
    arguments, opened = job.arguments, OpenPipeline(job.pipeline, job.connections)
    run, journal = open_run(opened, arguments.writer, arguments.run), opened.journal(arguments.writer)
    days = [date.fromisoformat(day) for day in arguments.days.split(",")]
    with spark_session(job) as spark:
        found = read_expired(spark, journal, days, run.is_ours).cache()
        plan = plan_of(job.pipeline.name, journal.name, days, found)
        if not arguments.look:
            refuse_too_many(plan, arguments.ceiling)  # before the driver collects all of them
            plan = run.plan(days, collect_expired(found), arguments.ceiling)
    return {**plan.to_dict(), "table": list(plan.to_lines())}


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="find_expired", description=__doc__)
    parser.add_argument("--writer", required=True, help="the journal writer whose heads are searched")
    parser.add_argument("--run", required=True, help="the run that the plan is for")
    parser.add_argument("--days", required=True, help="days, separated by commas: 2026-12-30,2026-12-31")
    parser.add_argument(
        "--ceiling", required=True, type=int, help="the number of entities that may be purged"
    )
    parser.add_argument("--look", action="store_true", help="plan without storing the plan")
    return run_job(parser, argv, find)


if __name__ == "__main__":
    sys.exit(main())
