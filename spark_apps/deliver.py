"""deliver: published messages from the log to every writer whose gate is open. Moves positions."""

import argparse
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import structlog

from tidemark.cassandra.session import connect
from tidemark.consensus.lightweight import LightweightConsensus
from tidemark.delivery.deliver import Delivered, deliver_again, deliver_to
from tidemark.delivery.pipeline import AnyWriter, WriterStart
from tidemark.delivery.positions import Positions
from tidemark.delivery.published import LogUnreadable, PublishedLog
from tidemark.delivery.stopping import stop_requested
from tidemark.delivery.writer import Writer
from tidemark.errors import TidemarkError
from tidemark.log.binding import NOTHING_YET
from tidemark.log.control import LogControl
from tidemark.spark.deliver import reload_from, write_parts_with
from tidemark.spark.job import Job, run_job, spark_session
from tidemark.writers.registry import build_writers

events = structlog.get_logger()


def deliver(job: Job) -> dict[str, Any]:
    """Bring every open writer to the end of the log, each on its own."""
    pipeline = job.pipeline
    consensus = LightweightConsensus(connect(job.connections.control))
    positions = Positions(consensus, pipeline.name)
    log = PublishedLog.open(LogControl(consensus, pipeline.name), pipeline.log.path)
    holder = job.arguments.holder or f"deliver of {pipeline.name}"
    writers = zip(pipeline.writers, build_writers(pipeline, job.connections), strict=True)
    with spark_session(job) as spark, stop_requested() as is_stopping:
        write_parts = write_parts_with(spark)

        def deliver_one(declared: AnyWriter, writer: Writer) -> Delivered:
            reload = reload_from(job.connections.control, pipeline.name, writer.name)
            if job.arguments.to_t:
                return deliver_again(
                    writer,
                    log,
                    positions,
                    holder,
                    write_parts,
                    from_t=int(job.arguments.from_t or 0),
                    to_t=int(job.arguments.to_t),
                    reload=reload,
                    is_stopping=is_stopping,
                )
            return deliver_to(
                writer,
                log,
                positions,
                holder,
                write_parts,
                limit=pipeline.limits.max_records_per_run,
                reload=reload,
                is_stopping=is_stopping,
                start=log.end if declared.start is WriterStart.LATEST else NOTHING_YET,
            )

        outcomes = {one.name: _isolated(deliver_one, positions, one, writer) for one, writer in writers}
    return {"end": log.end, "writers": {name: _summary(outcome) for name, outcome in outcomes.items()}}


def _isolated(deliver_one: Any, positions: Positions, declared: AnyWriter, writer: Writer) -> Delivered:
    """One writer's trouble is its own; a log that cannot be read is everybody's."""
    try:
        found: Delivered = deliver_one(declared, writer)
        return found
    except LogUnreadable:
        raise
    except Exception as error:
        traceback.print_exc()
        state = positions.load(writer.name)
        events.error("writer failed", writer=writer.name, error=str(error))
        said = str(error) if isinstance(error, TidemarkError) else f"{type(error).__name__}: {error}"
        return Delivered(state.position if state else NOTHING_YET, failure=said)


def _summary(delivered: Delivered) -> dict[str, Any]:
    total = delivered.total
    return {
        "position": delivered.position,
        "written": total.written,
        "filtered": total.filtered,
        "ignored": total.ignored,
        **total.details,
        "gate": asdict(delivered.gate) if delivered.gate else None,
        "stopped_now": delivered.closed_now,
        "failure": delivered.failure,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="deliver", description=__doc__)
    parser.add_argument("--from-t", default="", help="deliver the bindings from this time (µs) on again")
    parser.add_argument("--to-t", default="", help="the last binding (µs) to deliver again")
    parser.add_argument("--holder", default="", help="who delivers, for people and for the lease")
    return run_job(parser, argv, deliver)


if __name__ == "__main__":
    sys.exit(main())
