"""verify_rendition: compares a rendition of a writer with the one that readers use, and keeps the evidence.

With ``--hand-over`` readers take it in the same step, under the leases of both: it first gets what was
published since, is compared again unless nothing has changed, and is refused where a difference is not
explained. Without it only evidence is written.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.rendition_verification import verify_rendition
from tidemark.app.renditions.catch_up import CatchingUp
from tidemark.app.renditions.hand_over import HandingOver, default_mode
from tidemark.app.renditions.held_delivery import HandoverTools
from tidemark.app.renditions.opened import WriterRenditions
from tidemark.app.shutdown import stop_requested
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.pipeline.quantities import parse_duration
from tidemark.spark.application import Job, run_job, spark_session
from tidemark.spark.jobs.deliver import reload_from, write_parts_with
from tidemark.spark.jobs.renditions import SparkEngine


def verify(job: Job) -> dict[str, Any]:
    """Compare the rendition that the arguments name; with ``--hand-over`` let readers take it."""
    arguments = job.arguments
    renditions = WriterRenditions.of(OpenPipeline(job.pipeline, job.connections), arguments.writer)
    mode = VerificationMode(arguments.mode) if arguments.mode else default_mode(renditions)
    number = int(arguments.number)
    if arguments.hand_over:
        return _hand_over(job, renditions, number, mode)
    with spark_session(job) as spark:
        engine = SparkEngine(spark, print)
        report = verify_rendition(renditions.opened, renditions.writer, number, mode, session=engine)
    return {**report.to_dict(), "lines": list(report.to_lines())}


def _hand_over(job: Job, renditions: WriterRenditions, number: int, mode: VerificationMode) -> dict[str, Any]:
    arguments = job.arguments
    signed = renditions.signature(arguments.who, arguments.reason)
    one = HandingOver(renditions, number, mode=mode, soak=soak_of(arguments.soak))
    done = one.found()
    if done is None:
        with ExitStack() as stack:
            spark = stack.enter_context(spark_session(job))
            is_stopping = stack.enter_context(stop_requested())
            write = write_parts_with(spark)
            reload = partial(reload_from, job.connections.control, job.pipeline.name)
            holder = arguments.holder or f"hand_over of {job.pipeline.name}"
            if one.is_behind:
                CatchingUp(renditions, number).carry_out(holder, write, is_stopping, reload)
            done = one.carry_out(signed, HandoverTools(SparkEngine(spark, print), write, reload))
    return {"h": done.h, "number": done.rendition, "previous": one.previous(done), "at": done.signed.at}


def soak_of(text: str) -> timedelta | None:
    """The argument ``--soak``; None where it is left out."""
    return parse_duration(text) if text else None


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="verify_rendition", description=__doc__)
    parser.add_argument("--writer", required=True, help="the writer")
    parser.add_argument("--number", required=True, help="the number of the rendition")
    parser.add_argument("--mode", default="", help="exact or explained; by default as the file says")
    parser.add_argument("--hand-over", action="store_true", help="let readers take it, if nothing differs")
    parser.add_argument("--who", default="", help="with --hand-over: the operator")
    parser.add_argument("--reason", default="", help="with --hand-over: why; kept for ever")
    parser.add_argument(
        "--soak", default="", help="with --hand-over: how long readers can return, such as 24h"
    )
    parser.add_argument("--holder", default="", help="the name under which this run holds leases")
    return run_job(parser, argv, verify)


if __name__ == "__main__":
    sys.exit(main())
