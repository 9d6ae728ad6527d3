"""Deliver bindings to one writer under its lease: parts, then the end of the binding, then the position.

The lowest message that cannot be processed is the wall: the position stops right before it, and the gate
closes at it. An error of the target has no id: what failed is retried once, then the gate names the range.
The position passes the end of a binding only when the writer has finished the whole binding.

Parts are written independently. If an entity may have its first event in two of them, all parts are written a
second time: each part then finds what the others wrote, and reports the message that it cannot process.

Where the output has times that readers read, a binding that was finished before is computed before it is
written: rows that would differ are not written, and freeze the output.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add

import structlog

from tidemark.clock import Clock
from tidemark.delivery.binding_steps import (
    PartDone,
    WriteParts,
    discard_acknowledged,
    error_text,
    finish,
    settle,
    total_of,
)
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.published_log import LogUnreadable, PublishedLog
from tidemark.delivery.renditions.output import UNUSABLE, WriterOutput
from tidemark.delivery.split_entities import is_any_split
from tidemark.delivery.state.lease import LeaseLost, Reload, WriterHold
from tidemark.delivery.state.positions import Positions, ShapeChanged
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.delivery.target import prepare_target
from tidemark.delivery.writer import BadMessage, Part, TargetReplaced, Writer, Written
from tidemark.delivery.writer_topics import LeftOutCount, Taken, WriterTopics
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile
from tidemark.outputs.model.digest import TimeDigests
from tidemark.outputs.settings import CodeDiffers

events = structlog.get_logger()

TRIES = 2
"""The number of attempts to write a binding's parts before the target counts as failed."""
_STOPPING = (Cause.REPLACED, Cause.TAINTED, Cause.CODE)
"""The causes that close the gate also where something is delivered again."""


@with_fields
class BindingBeyondPosition(DeliveryError):
    """A binding does not follow the writer's position: the messages between them would never be delivered."""

    needs_person = True

    pipeline: str
    writer: str
    t: int
    base: int
    position: int

    text = (
        "{pipeline}/{writer}: the binding at {t} begins with id {base}, but the writer's position is "
        "{position}, and what is between them would be left out. Nothing was written, and the position did "
        "not move. Look at the log with: tidemark log verify {pipeline}"
    )


def refuse_beyond(pipeline: str, writer: str, binding: Binding, position: int) -> None:
    """Raise ``BindingBeyondPosition`` where a binding does not follow a position."""
    if binding.base > position + 1:
        raise BindingBeyondPosition(pipeline, writer, binding.t, binding.base, position)


@dataclass(slots=True)
class _Progress:
    """The progress of one binding over its attempts.

    Attributes:
        parts: All parts; None before the binding is cut.
        left: The parts that are not written yet.
        written: The counts of the parts that are written.
        wall: The lowest message that cannot be processed.
        is_again: Whether all parts are being written a second time. Nothing is counted then.
        taken: The binding as the writer takes it; None before that is known.
        is_compared: Whether it was computed first, where that has to be done. A wall that was met since
            does not end the next try: parts that failed have messages below it.
        committed: Its committed digests; None where there are none.
    """

    parts: Sequence[Part] | None = None
    left: Sequence[Part] = ()
    written: Written = field(default_factory=Written)
    wall: BadMessage | None = None
    is_again: bool = False
    taken: Taken | None = None
    is_compared: bool = False
    committed: TimeDigests | None = None

    def cut(self, parts: Sequence[Part]) -> None:
        """Set the parts of the binding; none of them is written yet."""
        self.parts = self.left = parts

    def is_doubtful(self) -> bool:
        """Whether an entity may have begun in two parts. A part that met a wall reports no entities."""
        begun = self.written.begun
        return not self.is_again and bool(begun) and (self.wall is not None or is_any_split(begun))

    def begin_again(self) -> None:
        """Write all parts once more, so that each finds what the others wrote."""
        self.left, self.is_again = self.parts or (), True

    def note(self, results: Sequence[PartDone]) -> str | None:
        """Add the results of the remaining parts; returns the target's error, if it failed."""
        pairs = list(zip(self.left, results, strict=True))
        self.left = [part for part, done in pairs if done.failure]
        if not self.is_again:
            self.written = reduce(add, (done.written for done in results), self.written)
        bad = [*([self.wall] if self.wall else []), *(done.bad for done in results if done.bad)]
        self.wall = min(bad, key=lambda one: one.id, default=None)
        return next((done.failure for done in results if done.failure), None)


def _left_out(left: LeftOutCount) -> Written:
    return Written(ignored=left.messages, details={"left_out": left.messages}) if left.rows else Written()


class Delivery:
    """Delivers bindings to one writer under one lease."""

    def __init__(
        self,
        writer: Writer,
        log: PublishedLog,
        positions: Positions,
        hold: WriterHold,
        write_parts: WriteParts,
        reload: Reload,
        clock: Clock,
    ) -> None:
        self._writer, self._log, self._hold, self._positions = writer, log, hold, positions
        self._write_parts, self._reload, self._clock = write_parts, reload, clock
        self._acknowledged = positions.acknowledged(writer.name)
        self._topics = WriterTopics(writer, log, positions, hold.state)
        self._output = WriterOutput.of(writer, log, positions, clock)
        self._is_prepared = False
        self.total = Written()

    @property
    def position(self) -> int:
        """The writer's position."""
        return self._hold.state.position

    def is_given_up(self) -> bool:
        """Whether the rendition was given up since the delivery began."""
        return self._output.is_given_up()

    def deliver(self, binding: Binding, files: Sequence[LogFile], gate: WriterGate | None = None) -> bool:
        """Write a binding, then commit its end as the position.

        ``gate`` is the gate to commit with it; None opens it. Returns False where the delivery failed: the
        gate is closed then.
        """
        refuse_beyond(self._log.control.pipeline, self._writer.name, binding, self.position)
        done = self._attempt(binding, files)
        if isinstance(done, WriterGate):
            return self._stop(binding, files, done)
        own = self._topics.take(binding, files).files
        left = self._topics.count(binding, files, binding.end)
        self.total += replace(done, digests=()) + _left_out(left)
        rows = {**left.rows, **self._output.row(binding, done)}
        self._hold.commit(binding.end, self._log.last_ids(own, binding.end, binding.base), gate, rows)
        reach(FaultPoint.DELIVER_COMMITTED)
        events.info("delivered", writer=self._writer.name, t=binding.t, position=self.position)
        return True

    def deliver_again(self, binding: Binding, files: Sequence[LogFile]) -> str | None:
        """Write a finished binding again without moving the position; returns the failure, or None."""
        done = self._attempt(binding, files)
        if isinstance(done, WriterGate):
            if done.cause in _STOPPING:
                self._hold.commit(self.position, {}, done)
            return f"{done.where}: {done.reason}"
        self.total += replace(done, digests=())
        if self._output.is_timed and self._output.committed(binding, self._hold.state.reached) is None:
            row = self._output.row(binding, done)
            self._hold.commit(self.position, {}, self._hold.state.gate, row)
        return None

    def _attempt(self, binding: Binding, files: Sequence[LogFile]) -> Written | WriterGate:
        """Write a whole binding, with one retry; returns the gate to close where it failed."""
        progress, failure = _Progress(), None
        try:
            if not self._is_prepared:
                self._output.refuse_unusable(self._hold.state)
            for _ in range(TRIES):
                failure = self._continue(progress, binding, files)
                if failure is None:
                    bad = progress.wall
                    return self._bad_message(binding, bad) if bad else replace(progress.written, begun=())
        except TargetReplaced as error:
            return self._target_replaced(binding, error)
        except CodeDiffers as error:
            return self._unusable(binding, Cause.CODE, error)
        except UNUSABLE as error:
            return self._unusable(binding, Cause.TAINTED, error)
        return self._target_failed(binding, str(failure))

    def _continue(self, progress: "_Progress", binding: Binding, files: Sequence[LogFile]) -> str | None:
        """Write the remaining parts of a binding up to its wall; returns the target's error, if it failed."""
        try:
            self._prepare()
            taken = progress.taken = progress.taken or self._topics.take(binding, files)
            if progress.parts is None:
                taken.writer.examine(binding, self._topics.past(self._hold.state, binding))
                progress.cut(taken.writer.cut(binding, taken.files))
        except (ShapeChanged, TargetReplaced, LogUnreadable, LeaseLost):
            raise
        except Exception as error:
            return error_text(error)
        if not progress.is_compared:
            failure = self._compute_first(progress, binding, taken)
            if failure or progress.wall:
                return failure
            progress.is_compared = True
        if failure := self._discard_acknowledged(binding, taken):
            return failure
        # All parts are written even if one met a wall: everything below the wall must be in the target.
        failure = progress.note(self._write(taken.writer, progress.left))
        if failure is None and progress.is_doubtful():
            progress.begin_again()
            failure = progress.note(self._write(taken.writer, progress.left))
        if failure or progress.wall:
            return failure
        if progress.committed:
            self._output.refuse_other(progress.committed, self._output.computed(binding, progress.written))
        done = self._finish(binding, taken)
        progress.wall = done.bad
        return done.failure

    def _compute_first(self, progress: "_Progress", binding: Binding, taken: Taken) -> str | None:
        """Compare a binding that was finished before with its committed digests, before it is written again;
        returns the error, if it could not be computed."""
        progress.committed = self._output.committed(binding, self._hold.state.reached)
        if progress.committed is not None:
            done = total_of(self._write(taken.writer.trial(), progress.left))
            progress.wall = done.bad
            if done.failure or done.bad:
                return done.failure
            self._output.refuse_other(progress.committed, self._output.computed(binding, done.written))
        return None

    def _discard_acknowledged(self, binding: Binding, taken: Taken) -> str | None:
        ticket = self._hold.ticket(self._reload)
        place = (taken.writer, binding, taken.files, self._log, self._acknowledged, self.position, ticket)
        return discard_acknowledged(*place).with_log().failure

    def _prepare(self) -> None:
        if not self._is_prepared:
            place = (self._hold, self._positions, self._log, self._acknowledged)
            self._writer = prepare_target(self._writer, *place)
            self._topics = self._topics.of(self._writer)
            self._is_prepared = True

    def _write(self, writer: Writer, parts: Sequence[Part]) -> list[PartDone]:
        if not parts:
            return []
        ticket = self._hold.ticket(self._reload)
        results = self._write_parts(writer, parts, self._log.folder, self._acknowledged, ticket)
        reach(FaultPoint.DELIVER_PARTS_WRITTEN)
        return [done.with_log() for done in results]

    def _finish(self, binding: Binding, taken: Taken) -> PartDone:
        ticket = self._hold.ticket(self._reload)
        place = (taken.writer, binding, taken.files, self._log, self._acknowledged, ticket)
        return finish(*place).with_log()

    def _stop(self, binding: Binding, files: Sequence[LogFile], gate: WriterGate) -> bool:
        reached, left, own = self.position, LeftOutCount({}, 0), files
        if gate.cause is Cause.MESSAGE and gate.first_id - 1 > reached:
            taken = self._topics.take(binding, files)
            done = settle(taken.writer, binding, gate.first_id - 1, self._hold.ticket(self._reload))
            if done.replaced:
                gate = self._target_replaced(binding, done.replaced)
            elif done.failure:
                gate = self._target_failed(binding, done.failure)
            else:
                reached, own = gate.first_id - 1, taken.files
                left = self._topics.count(binding, files, reached)
                self.total += _left_out(left)
        known = self._hold.state.gate
        closed = known.again(gate) if known else gate
        self._hold.commit(reached, self._log.last_ids(own, reached, binding.base), closed, left.rows)
        reach(FaultPoint.DELIVER_STOPPED)
        events.error("writer stopped", writer=self._writer.name, where=gate.where, reason=gate.reason)
        return False

    def _bad_message(self, binding: Binding, bad: BadMessage) -> WriterGate:
        if not binding.base <= bad.id <= binding.end:
            raise ValueError(f"{bad} It is not in the binding from {binding.base} to {binding.end}.")
        return WriterGate(Cause.MESSAGE, bad.id, bad.id, binding.end, str(bad), self._clock())

    def _target_replaced(self, binding: Binding, error: TargetReplaced) -> WriterGate:
        first, last = self.position + 1, max(self.position + 1, binding.end)
        through = max(self.position, binding.end)
        return WriterGate(Cause.REPLACED, first, last, through, str(error), self._clock())

    def _unusable(self, binding: Binding, cause: Cause, error: Exception) -> WriterGate:
        """The gate of an output to which nothing may be delivered, however often it is tried."""
        return WriterGate(cause, binding.base, binding.end, self.position, str(error), self._clock())

    def _target_failed(self, binding: Binding, reason: str) -> WriterGate:
        is_begun = binding.base <= self.position < binding.end
        first = self.position + 1 if is_begun else binding.base
        return WriterGate(Cause.TARGET, first, binding.end, binding.end, reason, self._clock())
