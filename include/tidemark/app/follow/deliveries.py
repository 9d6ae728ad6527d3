"""The second half of a round: delivers what is published to every writer, each by itself, and measures it.

Only the active renditions count for the round. The others are delivered to afterwards, and a failure of one
of them is logged and fails nothing.

A failure affects its writer only. One that a retry would only meet again leaves the writer out of the
following rounds of the run. Where the log cannot be read or the engine is lost, no writer has failed: the
round has.
"""

import traceback
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import structlog

from tidemark.app.consumers import DeliveredConsumer, RunConsumers, difference_lines
from tidemark.app.follow.arrivals import Arrivals
from tidemark.app.follow.round_types import RoundDone, RoundTools
from tidemark.clock import Clock
from tidemark.delivery.deliver import Delivered, deliver_to
from tidemark.delivery.published_log import LogUnreadable, PublishedLog
from tidemark.delivery.renditions.selection import active_name
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.delivery.state.positions import Positions
from tidemark.errors import TidemarkError
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.state.lease import LogHeld
from tidemark.pipeline.model import Pipeline

events = structlog.get_logger()


class Deliveries:
    """The deliveries of one run to the pipeline's writers."""

    def __init__(
        self,
        pipeline: Pipeline,
        consumers: RunConsumers,
        positions: Positions,
        holder: str,
        tools: RoundTools,
        clock: Clock,
    ) -> None:
        self._pipeline, self._consumers, self._positions = pipeline, consumers, positions
        self._holder, self._tools, self._clock = holder, tools, clock
        self._arrivals = Arrivals()
        self._needs_person: dict[str, TidemarkError] = {}
        """The errors for which consumers are left out, by the consumer's name."""
        self._said: list[str] = []

    def expect(self, binding: Binding) -> None:
        """Measure a binding that this run has published when every open writer has it."""
        self._arrivals.expect(binding)

    def deliver(self, log: PublishedLog, is_stopping: Callable[[], bool]) -> RoundDone:
        """Deliver to every writer that is not left out, up to the end of the log or the limit of a run.

        Raises the error for which a writer is left out where no other writer is followed.
        """
        chosen = [one for one in self._consumers.choose(log) if one.name not in self._needs_person]
        self._say_differences()
        delivered: dict[str, Delivered] = {}
        held: list[DeliveredConsumer] = []
        for consumer in chosen:
            try:
                done = self._deliver_to(consumer, log, is_stopping)
            except (LeaseHeld, LogHeld) as error:
                events.info("left to another process", writer=consumer.name, reason=str(error))
                held += [consumer] if consumer.is_active else []
                continue
            except LogUnreadable:
                raise
            except Exception as error:
                if self._tools.is_engine_error(error):
                    raise
                traceback.print_exc()  # not by the logger, which may show the variables of every frame
                failure = f"{type(error).__name__}: {error}"
                events.error("writer failed", writer=consumer.name, error=failure)
                if isinstance(error, TidemarkError) and error.needs_person:
                    self._needs_person[consumer.name] = error
                    continue
                done = Delivered(self._position(consumer.name, NOTHING_YET), failure=failure)
            if consumer.is_active:
                delivered[consumer.shown] = done
            elif done.closed_now and done.gate:
                events.error("rendition stopped", writer=consumer.name, reason=done.gate.reason)
        is_open = [one for one in delivered.values() if one.gate is None]
        if self._needs_person and not is_open and not held and (left_out := self._left_out()):
            raise next(iter(left_out.values()))
        return self._measured(delivered, held, log)

    def _left_out(self) -> dict[str, TidemarkError]:
        """Why writers are left out whose active renditions are, by the writer's name."""
        active = {active_name(self._positions, one.name): one.name for one in self._pipeline.writers}
        return {active[name]: error for name, error in self._needs_person.items() if name in active}

    def _say_differences(self) -> None:
        """Log once for each change that the file differs from the active renditions."""
        for line in difference_lines(self._pipeline.name, self._consumers.differences()):
            if line not in self._said:
                events.warning("the file differs", pipeline=self._pipeline.name, what=line)
                self._said.append(line)

    def _deliver_to(
        self, consumer: DeliveredConsumer, log: PublishedLog, is_stopping: Callable[[], bool]
    ) -> Delivered:
        return deliver_to(
            consumer.writer,
            log,
            self._positions,
            self._holder,
            self._tools.write_parts,
            limit=self._pipeline.limits.max_records_per_run,
            reload=self._tools.reload(self._positions, consumer.name),
            is_stopping=is_stopping,
            start=self._consumers.start(consumer, log),
        )

    def _measured(
        self, delivered: Mapping[str, Delivered], held: Sequence[DeliveredConsumer], log: PublishedLog
    ) -> RoundDone:
        """The result, with the latencies of what every open writer has by now, and what one still lacks."""
        reached = [one.position for one in delivered.values() if one.gate is None]
        waiting = [self._position(one.name, self._consumers.start(one, log)) for one in held]
        records, took = 0, np.zeros(0)
        if reached and not held:
            records, took = self._arrivals.arrived(min(reached), log, self._clock())
        return RoundDone(
            delivered,
            records,
            took,
            [one.shown for one in held],
            self._arrivals.waiting_since(min([*reached, *waiting], default=log.end), log),
            any(position < log.end for position in reached),
            {name: str(error) for name, error in self._left_out().items()} if self._needs_person else {},
        )

    def _position(self, name: str, start: object) -> int:
        """A consumer's position; the one that it begins with where it is not registered yet."""
        state = self._positions.load(name)
        if state is not None:
            return state.position
        return start if isinstance(start, int) else NOTHING_YET
