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

from tidemark.app.build import Build, NotDelivered, refuse_stopped
from tidemark.app.consumers import DeliveredConsumer, RunConsumers, difference_lines
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
from tidemark.delivery.writer import Writer
from tidemark.errors import TidemarkError
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.log.state.followed import read_followed
from tidemark.spark.application import Job, load_audit_beside, run_job, spark_session
from tidemark.spark.engine import EngineKind, engine_error
from tidemark.spark.jobs.deliver import reload_from, write_parts_with
from tidemark.spark.jobs.follow import write_parts_by_place
from tidemark.spark.jobs.reconcile import VerifiedInterval, reconcile_writer
from tidemark.verification.outputs.reconcile import files_of_interval, is_output, reconcile_now, usual_extent
from tidemark.verification.reconcile import unreconciled_after
from tidemark.writers.journal.writer import JournalWriter

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
    consumers = RunConsumers(pipeline, job.connections, positions)
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
        chosen = choose_consumers(consumers, log, arguments.consumer)
        if any(isinstance(one.built and one.writer, JournalWriter) for one in chosen):
            load_audit_beside(beside)

        @cache
        def session() -> "SparkSession":
            return sessions.enter_context(spark_session(job))

        stays_up = job.connections.spark is not None and job.connections.spark.is_connect
        write_parts = write_parts_by_place(session) if stays_up else write_parts_with(session())

        def deliver_one(consumer: DeliveredConsumer, log: PublishedLog = log) -> Delivered:
            reload = reload_from(job.connections.control, pipeline.name, consumer.name)
            if is_again:
                return deliver_again(
                    consumer.writer,
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
                consumer.writer,
                log,
                positions,
                holder,
                write_parts,
                limit=pipeline.limits.max_records_per_run,
                reload=reload,
                is_stopping=is_stopping,
                start=consumers.start(consumer, log),
            )

        def deliver_whole(consumer: DeliveredConsumer) -> Delivered:
            build = Build(consumer.name, log, positions, is_stopping)
            return build.until_caught_up(lambda newer: deliver_one(consumer, newer))

        def reconcile_one(writer: Writer, before: int, delivered: Delivered) -> dict[str, Any] | None:
            if is_stopping() or delivered.gate or delivered.failure or delivered.is_ended:
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

        differs = consumers.differences()
        for line in difference_lines(pipeline.name, differs):
            events.warning("the file differs", pipeline=pipeline.name, what=line)
        left: dict[str, Lease] = {}
        how = deliver_whole if arguments.until_caught_up else deliver_one
        outcomes = {one.name: _outcome(positions, one, how, reconcile_one, left) for one in chosen}
        refuse_left(consensus, pipeline.name, left, is_again=is_again)
        if is_stopping():  # as a result this would tell that nothing is left to do
            raise AskedToStop(holder)
    if arguments.consumer:
        refuse_stopped(pipeline.name, arguments.consumer, outcomes[chosen[0].name])
    beside = {one.shown: outcomes[one.name] for one in chosen if not one.is_active}
    for name, outcome in beside.items():
        report_beside(name, outcome)
    return {
        "end": log.end,
        "writers": {one.shown: outcomes[one.name] for one in chosen if one.is_active},
        "renditions": beside,
        "differs": {name: list(map(str, changed)) for name, changed in differs.items()},
        "engine": {"kind": EngineKind.PROCESS.value},
    }


def choose_consumers(consumers: RunConsumers, log: PublishedLog, name: str) -> list[DeliveredConsumer]:
    """The consumers to deliver to: all of a run, or the one that is named; raises ``NotDelivered``."""
    if not name:
        return consumers.choose(log)
    found = consumers.one(name, log)  # as an operator calls it, or as its state is stored
    if found is None:
        raise NotDelivered(consumers.pipeline.name, name)
    return [found]


def report_beside(name: str, outcome: Mapping[str, Any]) -> None:
    """Log why a rendition that readers do not use is not delivered to; it fails no run."""
    gate = outcome["gate"]
    if reason := outcome["failure"] or (gate and gate["reason"]):
        events.error("rendition stopped", writer=name, reason=reason)


def _outcome(
    positions: Positions,
    consumer: DeliveredConsumer,
    deliver_one: Callable[[DeliveredConsumer], Delivered],
    reconcile_one: Callable[[Writer, int, Delivered], dict[str, Any] | None],
    left: dict[str, Lease],
) -> dict[str, Any]:
    """Deliver to one consumer and reconcile it. Returns its part of the summary.

    A writer that is left to a follow is noted in ``left``, with the follow's lease.
    """
    state = positions.load(consumer.name)
    before = state.position if state else NOTHING_YET
    delivered = _isolated(deliver_one, positions, consumer)
    if delivered.left_to and consumer.is_active:
        left[consumer.name] = delivered.left_to
    try:
        reconciled = reconcile_one(consumer.writer, before, delivered) if consumer.built else None
    except LogUnreadable:
        raise
    except Exception as error:
        if engine_error(error, "") is not None:
            raise  # the whole run fails with one clear error, and a retry does the rest
        traceback.print_exc()
        events.error("not reconciled", writer=consumer.name, error=str(error))
        return {
            **_summary(replace(delivered, failure=f"not reconciled: {_error_text(error)}")),
            "reconciled": None,
        }
    if reconciled and not reconciled["passed"]:
        state = positions.load(consumer.name)
        delivered = replace(delivered, gate=state.gate if state else None, closed_now=True)
    return {**_summary(delivered), "reconciled": reconciled}


def _isolated(deliver_one: Any, positions: Positions, consumer: DeliveredConsumer) -> Delivered:
    """Deliver to one consumer. A failure affects this writer only, unless the log or the engine is lost."""
    try:
        delivered: Delivered = deliver_one(consumer)
        return delivered
    except LogUnreadable:
        raise
    except Exception as error:
        if engine_error(error, "") is not None:
            raise  # the whole run fails with one clear error, and a retry does the rest
        is_left = isinstance(error, LeaseHeld) and (
            is_of_follow(error.lease.holder) or not consumer.is_active
        )
        if isinstance(error, LeaseHeld) and is_left:
            events.info("left to the process that has it", writer=consumer.name, holder=error.lease.holder)
            state = positions.load(consumer.name)
            return Delivered(state.position if state else NOTHING_YET, left_to=error.lease)
        traceback.print_exc()
        state = positions.load(consumer.name)
        events.error("writer failed", writer=consumer.name, error=str(error))
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
        "ended": delivered.is_ended,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="deliver", description=__doc__)
    parser.add_argument("--from-t", default="", help="deliver the bindings from this time (µs) on again")
    parser.add_argument("--to-t", default="", help="the last binding (µs) to deliver again")
    parser.add_argument(
        "--verify", choices=("sample", "all"), default="sample", help="how much to compare with the log"
    )
    parser.add_argument("--consumer", default="", help="deliver to this one only, such as accounts.r2")
    parser.add_argument(
        "--until-caught-up", action="store_true", help="go on until the end of the log is reached"
    )
    parser.add_argument("--holder", default="", help="the name under which this run holds leases")
    return run_job(parser, argv, deliver)


if __name__ == "__main__":
    sys.exit(main())
