"""The second half of a round: delivers what is published to every writer, each by itself, and measures it.

A failure affects its writer only. One that a retry would only meet again leaves the writer out of the
following rounds of the run. Where the log cannot be read or the engine is lost, no writer has failed: the
round has.
"""

import traceback
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import structlog

from tidemark.app.follow.arrivals import Arrivals
from tidemark.app.follow.round_types import RoundDone, RoundTools
from tidemark.clock import Clock
from tidemark.delivery.deliver import Delivered, deliver_to
from tidemark.delivery.published_log import LogUnreadable, PublishedLog
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import start_of
from tidemark.delivery.writer import Writer
from tidemark.errors import TidemarkError
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.state.lease import LogHeld
from tidemark.pipeline.model import AnyWriter, Pipeline

events = structlog.get_logger()


class Deliveries:
    """The deliveries of one run to the pipeline's writers."""

    def __init__(
        self,
        pipeline: Pipeline,
        writers: Sequence[tuple[AnyWriter, Writer]],
        positions: Positions,
        holder: str,
        tools: RoundTools,
        clock: Clock,
    ) -> None:
        self._pipeline, self._writers, self._positions = pipeline, writers, positions
        self._holder, self._tools, self._clock = holder, tools, clock
        self._arrivals = Arrivals()
        self._needs_person: dict[str, TidemarkError] = {}

    def expect(self, binding: Binding) -> None:
        """Measure a binding that this run has published when every open writer has it."""
        self._arrivals.expect(binding)

    def deliver(self, log: PublishedLog, is_stopping: Callable[[], bool]) -> RoundDone:
        """Deliver to every writer that is not left out, up to the end of the log or the limit of a run.

        Raises the error for which a writer is left out where no other writer is followed.
        """
        delivered: dict[str, Delivered] = {}
        held: list[tuple[AnyWriter, Writer]] = []
        for declared, writer in self._writers:
            if writer.name in self._needs_person:
                continue
            try:
                delivered[writer.name] = self._deliver_to(declared, writer, log, is_stopping)
            except (LeaseHeld, LogHeld) as error:
                events.info("left to another process", writer=writer.name, reason=str(error))
                held.append((declared, writer))
            except LogUnreadable:
                raise
            except Exception as error:
                if self._tools.is_engine_error(error):
                    raise
                traceback.print_exc()  # not by the logger, which may show the variables of every frame
                failure = f"{type(error).__name__}: {error}"
                events.error("writer failed", writer=writer.name, error=failure)
                if isinstance(error, TidemarkError) and error.needs_person:
                    self._needs_person[writer.name] = error
                else:
                    delivered[writer.name] = Delivered(self._position(writer, NOTHING_YET), failure=failure)
        is_open = [one for one in delivered.values() if one.gate is None]
        if self._needs_person and not is_open and not held:
            raise next(iter(self._needs_person.values()))
        return self._measured(delivered, held, log)

    def _deliver_to(
        self, declared: AnyWriter, writer: Writer, log: PublishedLog, is_stopping: Callable[[], bool]
    ) -> Delivered:
        return deliver_to(
            writer,
            log,
            self._positions,
            self._holder,
            self._tools.write_parts,
            limit=self._pipeline.limits.max_records_per_run,
            reload=self._tools.reload(self._positions, writer.name),
            is_stopping=is_stopping,
            start=start_of(declared, log.end),
        )

    def _measured(
        self, delivered: Mapping[str, Delivered], held: Sequence[tuple[AnyWriter, Writer]], log: PublishedLog
    ) -> RoundDone:
        """The result, with the latencies of what every open writer has by now, and what one still lacks."""
        reached = [one.position for one in delivered.values() if one.gate is None]
        waiting = [self._position(writer, start_of(declared, log.end)) for declared, writer in held]
        records, took = 0, np.zeros(0)
        if reached and not held:
            records, took = self._arrivals.arrived(min(reached), log, self._clock())
        return RoundDone(
            delivered,
            records,
            took,
            [writer.name for _, writer in held],
            self._arrivals.waiting_since(min([*reached, *waiting], default=log.end), log),
            any(position < log.end for position in reached),
            {name: str(error) for name, error in self._needs_person.items()},
        )

    def _position(self, writer: Writer, start: object) -> int:
        """The writer's position; the one that it begins with where it is not registered yet."""
        state = self._positions.load(writer.name)
        if state is not None:
            return state.position
        return start if isinstance(start, int) else NOTHING_YET
