"""deliver: writes published messages from the log to every writer with an open gate. Moves positions.

Afterwards each target is compared with the log; a difference closes the writer's gate.
"""

import argparse
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import structlog

from tidemark.app.expectations import pipeline_suite
from tidemark.app.shutdown import AskedToStop, stop_requested
from tidemark.cassandra.session import connect
from tidemark.clock import wall_clock
from tidemark.consensus.lease import Lease
from tidemark.consensus.lease_wait import is_of_follow
from tidemark.consensus.lightweight import LightweightConsensus
from tidemark.consensus.objects import Consensus
from tidemark.delivery.deliver import Delivered, deliver_again, deliver_to
from tidemark.delivery.published_log import LogUnreadable, PublishedLog
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import start_of
from tidemark.delivery.writer import Writer
from tidemark.errors import TidemarkError
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.log.state.followed import read_followed
from tidemark.pipeline.model import AnyWriter
from tidemark.spark.application import Job, load_audit_beside, run_job, spark_session
from tidemark.spark.engine import EngineKind, engine_error
from tidemark.spark.jobs.deliver import reload_from, write_parts_with
from tidemark.spark.jobs.follow import write_parts_by_place
from tidemark.spark.jobs.reconcile import VerifiedInterval, reconcile_writer
from tidemark.verification.outputs.reconcile import files_of_interval, is_output, reconcile_now, usual_extent
from tidemark.verification.reconcile import unreconciled_after
from tidemark.writers.journal.writer import JournalWriter
from tidemark.writers.registry import build_writers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

events = structlog.get_logger()


def deliver(job: Job) -> dict[str, Any]:
    """Deliver to every writer with an open gate up to the end of the log, independently of each other."""
    pipeline, arguments = job.pipeline, job.arguments
    consensus = LightweightConsensus(connect(job.connections.control))
    positions = Positions(consensus, pipeline.name)
    opened = PublishedLog.open(LogControl(consensus, pipeline.name), pipeline.log.path)
    holder = arguments.holder or f"deliver of {pipeline.name}"
    writers = list(zip(pipeline.writers, build_writers(pipeline, job.connections), strict=True))
    is_again = bool(arguments.to_t)
    from_t, to_t = int(arguments.from_t or 0), int(arguments.to_t or 0)
    everything = arguments.verify == "all"
    extent = VerifiedInterval(everything, from_t, to_t) if is_again else VerifiedInterval(everything)
    suite = pipeline_suite(pipeline)
    with (
        ThreadPoolExecutor(1) as beside,
        ExitStack() as sessions,
        opened.held(holder) as log,
        stop_requested() as is_stopping,
    ):
        if any(isinstance(writer, JournalWriter) for _, writer in writers):
            load_audit_beside(beside)

        @cache
        def session() -> "SparkSession":
            return sessions.enter_context(spark_session(job))

        stays_up = job.connections.spark is not None and job.connections.spark.is_connect
        write_parts = write_parts_by_place(session) if stays_up else write_parts_with(session())

        def deliver_one(declared: AnyWriter, writer: Writer) -> Delivered:
            reload = reload_from(job.connections.control, pipeline.name, writer.name)
            if is_again:
                return deliver_again(
                    writer,
                    log,
                    positions,
                    holder,
                    write_parts,
                    from_t=from_t,
                    to_t=to_t,
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
                start=start_of(declared, log.end),
            )

        def reconcile_one(writer: Writer, before: int, delivered: Delivered) -> dict[str, Any] | None:
            if is_stopping() or delivered.gate or delivered.failure:
                return None
            if is_output(writer):
                wanted = usual_extent(writer, before, everything=everything)
                if wanted and is_again:
                    wanted = replace(wanted, names=files_of_interval(writer, log, from_t, to_t))
                return reconcile_now(writer, log, positions, wanted, holder) if wanted else None
            if not isinstance(writer, JournalWriter):
                return None
            after = unreconciled_after(
                pipeline.name, pipeline.log.path, writer.name, before, delivered.position
            )
            if after is None and extent.selection is None:
                return None
            first = before if after is None else after
            spark = session() if extent.selection else None
            return reconcile_writer(spark, writer, log, positions, suite, extent, first, holder)

        left: dict[str, Lease] = {}
        outcomes = {
            writer.name: _outcome(positions, declared, writer, deliver_one, reconcile_one, left)
            for declared, writer in writers
        }
        refuse_left(consensus, pipeline.name, left, is_again=is_again)
        if is_stopping():  # as a result this would tell that nothing is left to do
            raise AskedToStop(holder)
    return {"end": log.end, "writers": outcomes, "engine": {"kind": EngineKind.PROCESS.value}}


def _outcome(
    positions: Positions,
    declared: AnyWriter,
    writer: Writer,
    deliver_one: Callable[[AnyWriter, Writer], Delivered],
    reconcile_one: Callable[[Writer, int, Delivered], dict[str, Any] | None],
    left: dict[str, Lease],
) -> dict[str, Any]:
    """Deliver to one writer and reconcile it. Returns its part of the summary.

    A writer that is left to a follow is noted in ``left``, with the follow's lease.
    """
    state = positions.load(writer.name)
    before = state.position if state else NOTHING_YET
    delivered = _isolated(deliver_one, positions, declared, writer)
    if delivered.left_to:
        left[writer.name] = delivered.left_to
    try:
        reconciled = reconcile_one(writer, before, delivered)
    except LogUnreadable:
        raise
    except Exception as error:
        if engine_error(error, "") is not None:
            raise  # the whole run fails with one clear error, and a retry does the rest
        traceback.print_exc()
        events.error("not reconciled", writer=writer.name, error=str(error))
        return {
            **_summary(replace(delivered, failure=f"not reconciled: {_error_text(error)}")),
            "reconciled": None,
        }
    if reconciled and not reconciled["passed"]:
        state = positions.load(writer.name)
        delivered = replace(delivered, gate=state.gate if state else None, closed_now=True)
    return {**_summary(delivered), "reconciled": reconciled}


def _isolated(deliver_one: Any, positions: Positions, declared: AnyWriter, writer: Writer) -> Delivered:
    """Deliver to one writer. A failure affects this writer only, unless the log or the engine is lost."""
    try:
        delivered: Delivered = deliver_one(declared, writer)
        return delivered
    except LogUnreadable:
        raise
    except Exception as error:
        if engine_error(error, "") is not None:
            raise  # the whole run fails with one clear error, and a retry does the rest
        if isinstance(error, LeaseHeld) and is_of_follow(error.lease.holder):
            events.info(
                "left to the follow that has the writer", writer=writer.name, holder=error.lease.holder
            )
            state = positions.load(writer.name)
            return Delivered(state.position if state else NOTHING_YET, left_to=error.lease)
        traceback.print_exc()
        state = positions.load(writer.name)
        events.error("writer failed", writer=writer.name, error=str(error))
        return Delivered(state.position if state else NOTHING_YET, failure=_error_text(error))


def refuse_left(consensus: Consensus, pipeline: str, left: Mapping[str, Lease], *, is_again: bool) -> None:
    """Raise ``LeaseHeld`` for a writer that was left to a follow which will not do this run's work.

    A follow that goes on delivers everything that is new. It delivers nothing again, and one that is dead
    delivers nothing at all: then a retry finds the lease free.
    """
    if not left:
        return
    followed = read_followed(consensus, pipeline)
    if is_again or followed is None or not followed.is_current(wall_clock()):
        writer, lease = next(iter(left.items()))
        raise LeaseHeld(pipeline, writer, lease)


def _error_text(error: Exception) -> str:
    return str(error) if isinstance(error, TidemarkError) else f"{type(error).__name__}: {error}"


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
        "left_to": delivered.left_to.holder if delivered.left_to else None,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="deliver", description=__doc__)
    parser.add_argument("--from-t", default="", help="deliver the bindings from this time (µs) on again")
    parser.add_argument("--to-t", default="", help="the last binding (µs) to deliver again")
    parser.add_argument(
        "--verify", choices=("sample", "all"), default="sample", help="how much to compare with the log"
    )
    parser.add_argument("--holder", default="", help="the name under which this run holds leases")
    return run_job(parser, argv, deliver)


if __name__ == "__main__":
    sys.exit(main())
