"""resume: after a failure, redeliver one message at a time from the position to the gate's ``through``.

Opens the gate at the end. Runs without Spark, under the writer's lease. The target confirms each message
before the next one is sent. The position is committed once a second, on a stop and at the end of a binding. A
message that fails again leaves the position right before it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.binding_delivery import Delivery, refuse_beyond
from tidemark.delivery.binding_steps import (
    PartDone,
    discard_acknowledged,
    error_text,
    finish,
    settle,
    total_of,
    write_part_of,
    write_parts_here,
)
from tidemark.delivery.compacted_history import BEGIN_ANEW, require_history
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.published_log import LogUnreadable, PublishedLog, read_messages
from tidemark.delivery.renditions.output import UNUSABLE, WriterOutput, advance_output
from tidemark.delivery.renditions.selection import operators_name
from tidemark.delivery.state.handed_back import refuse_handed_back
from tidemark.delivery.state.lease import LeaseLost, WriterHold, WriterTicket, take
from tidemark.delivery.state.positions import Positions, ShapeChanged, refuse_ended
from tidemark.delivery.state.writer_state import Cause, WriterGate, WriterState
from tidemark.delivery.target import prepare_target
from tidemark.delivery.writer import Part, TargetReplaced, Writer, Writing
from tidemark.delivery.writer_topics import Taken, WriterTopics
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile
from tidemark.outputs.settings import CodeDiffers

SHOWN_EVERY = 5 * SECOND


@with_fields
class NotRegistered(DeliveryError):
    """The pipeline has no registered writer of this name."""

    pipeline: str
    writer: str
    known: Sequence[str]

    def __str__(self) -> str:
        return (
            f"{self.pipeline} has no registered writer {self.writer}; there is: "
            f"{', '.join(self.known) or 'none'}. Nothing was changed."
        )


@with_fields
class NotResumable(DeliveryError):
    """The gate was closed for a reason that redelivering does not repair."""

    needs_person = True

    pipeline: str
    writer: str
    reason: str

    text = (
        "{pipeline}/{writer}: a verification closed its gate ({reason}), and redelivering does not mend "
        "that. Nothing was changed. To open it all the same: tidemark gate open {pipeline} {writer}"
    )


class _Unsettled(Exception):
    """The target failed to settle a position, so it cannot be committed."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """The result of a resume.

    Attributes:
        position: The writer's position afterwards.
        delivered: How many messages were sent one at a time, without those that the target had or that are
            not written.
        gate: The gate that is still closed; None when it is open.
        interrupted: Whether it stopped because it was asked to, before the end.
    """

    position: int
    delivered: int
    gate: WriterGate | None
    interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The form of summaries."""
        return {
            "position": self.position,
            "delivered": self.delivered,
            "gate": "stopped" if self.gate else "open",
            "reason": self.gate.reason if self.gate else None,
            "failed_id": self.gate.first_id if self.gate else None,
            "failures": self.gate.failures if self.gate else 0,
            "interrupted": self.interrupted,
        }


def resume_writer(
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    holder: str,
    *,
    singly: int,
    show: Callable[[str], object],
    clock: Clock = wall_clock,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Resumed:
    """Redeliver up to the gate's ``through``, and open the gate.

    After ``singly`` messages in a row without a failure the rest is delivered in bulk; 0 means never.
    ``show`` gets a line of progress every few seconds. ``is_stopping`` is asked before every message.
    """
    state = positions.load(writer.name)
    if state is None:
        raise NotRegistered(positions.pipeline, writer.name, [])
    refuse_ended(state)
    if state.gate is None:
        return Resumed(state.position, 0, None)
    with holding(take(positions, state, holder, clock)) as hold:
        gate = hold.state.gate
        if gate is None:
            return Resumed(hold.state.position, 0, None)
        refuse_handed_back(hold.state, positions.handed_back(hold.state))
        if gate.cause is Cause.VERIFICATION:
            raise NotResumable(positions.pipeline, operators_name(positions, writer.name), gate.reason)
        if gate.through > log.end:  # the log was opened before that was published
            log = log.reopened()
        resumed = _Resume(writer, log, positions, hold, gate, clock, show, is_stopping, singly).run()
    advance_output(writer, log, positions, clock)
    return resumed


class _Resume:
    """One resume of one writer."""

    def __init__(
        self,
        writer: Writer,
        log: PublishedLog,
        positions: Positions,
        hold: WriterHold,
        gate: WriterGate,
        clock: Clock,
        show: Callable[[str], object],
        is_stopping: Callable[[], bool],
        singly: int,
    ) -> None:
        self._writer, self._log, self._positions, self._hold = writer, log, positions, hold
        self._clock, self._show, self._is_stopping, self._singly = clock, show, is_stopping, singly
        self._acknowledged = positions.acknowledged(writer.name)
        self._gate, self._position, self._namespaces = gate, hold.state.position, dict[str, int]()
        self._delivered = self._clean = 0
        self._committed_at = clock()
        self._began_at = self._shown_at = clock()
        self._binding: Binding | None = None
        self._output = WriterOutput.of(writer, log, positions, clock)
        self._topics = WriterTopics(writer, log, positions, hold.state)
        self._taken = Taken(writer, ())
        self._files: Sequence[LogFile] = ()
        """All files of the binding, including those that the writer leaves out."""

    def run(self) -> Resumed:
        """Redeliver from the position to the gate's ``through``."""
        gate = self._gate
        try:
            self._output.refuse_unusable(self._hold.state)
            if failed := self._prepare():
                return self._fail(Cause.TARGET, gate.first_id, gate.last_id, gate.through, failed)
            for binding, files in self._log.waiting(self._position):
                if max(binding.base, self._position + 1) > gate.through:
                    break
                refuse_beyond(self._log.control.pipeline, self._writer.name, binding, self._position)
                require_history(
                    self._writer, self._writer.name, self._log, binding.base, BEGIN_ANEW, is_begun=True
                )
                self._binding = binding
                if stopped := self._one_by_one(binding, files):
                    return stopped
            self._commit(None)
        except _Unsettled as unsettled:
            self._position = self._hold.state.position
            return self._fail(Cause.TARGET, self._position + 1, gate.last_id, gate.through, str(unsettled))
        except TargetReplaced as replaced:
            self._position = self._hold.state.position
            first = self._position + 1
            return self._fail(Cause.REPLACED, first, max(first, gate.last_id), gate.through, str(replaced))
        except CodeDiffers as differs:
            return self._unusable(Cause.CODE, differs)
        except UNUSABLE as frozen:
            return self._unusable(Cause.TAINTED, frozen)
        reach(FaultPoint.RESUME_OPENED)
        self._show(f"{self._name}: at id {self._position}, the gate is open")
        return Resumed(self._position, self._delivered, None)

    def _one_by_one(self, binding: Binding, files: Sequence[LogFile]) -> Resumed | None:
        if failed := self._take(binding, files) or self._examine(binding):
            return self._fail(Cause.TARGET, self._position + 1, binding.end, binding.end, failed)
        whole, files = files, self._taken.files
        if stopped := self._compare_first(binding, files):
            return stopped
        if failed := self._discard_acknowledged(binding, files):
            return self._fail(Cause.TARGET, self._position + 1, binding.end, binding.end, failed)
        last = min(binding.end, self._gate.through)
        rest = Part(binding, tuple(files), first_id=self._position + 1, last_id=last)
        for message in self._singles(rest):
            if self._is_stopping():
                return self._interrupt()
            if self._is_clean and last == binding.end:
                return self._in_bulk(binding, whole)
            if stopped := self._send(binding, files, message):
                return stopped
        if last < binding.end:  # the next run delivers the rest and finishes the binding
            self._position = last
            return None
        place = (self._taken.writer, binding, files, self._log, self._acknowledged, self._ticket)
        if stopped := self._trouble(binding, finish(*place).with_log()):
            return stopped
        further: Mapping[str, str] = {}
        if self._output.is_timed:
            computed = self._computed(binding, files)
            if stopped := self._trouble(binding, computed):
                return stopped
            further = self._output.row(binding, computed.written)
        self._position = binding.end
        self._namespaces = self._log.last_ids(files, binding.end, binding.base)
        self._commit(self._gate if binding.end < self._gate.through else None, further)
        return None

    def _compare_first(self, binding: Binding, files: Sequence[LogFile]) -> Resumed | None:
        """Compare a binding that was finished before with its committed digests, before any message of it is
        sent again."""
        committed = self._output.committed(binding, self._hold.state.reached)
        if committed is None:
            return None
        computed = self._computed(binding, files)
        if stopped := self._trouble(binding, computed):
            return stopped
        self._output.refuse_other(committed, self._output.computed(binding, computed.written))
        return None

    def _computed(self, binding: Binding, files: Sequence[LogFile]) -> PartDone:
        """What all messages of a binding make. Writes nothing."""
        parts = self._taken.writer.cut(binding, files)
        place = (parts, self._log.folder, self._acknowledged, self._ticket)
        return total_of([done.with_log() for done in write_parts_here(self._taken.writer.trial(), *place)])

    def _trouble(self, binding: Binding, done: PartDone) -> Resumed | None:
        """Close the gate over a step that failed; None where it did not."""
        if done.bad:
            return self._fail(Cause.MESSAGE, done.bad.id, done.bad.id, binding.end, str(done.bad))
        if done.failure:
            return self._fail(Cause.TARGET, self._position + 1, binding.end, binding.end, done.failure)
        return None

    def _singles(self, part: Part) -> Iterator[pa.RecordBatch]:
        for batch in read_messages(self._log.folder, part, self._acknowledged):
            yield from (batch.slice(row, 1) for row in range(batch.num_rows))

    def _send(self, binding: Binding, files: Sequence[LogFile], message: pa.RecordBatch) -> Resumed | None:
        id_, namespace = message["id"][0].as_py(), message["namespace"][0].as_py()
        part = Part(binding, tuple(files), first_id=id_, last_id=id_)
        done = write_part_of(self._taken.writer, part, Writing([message], self._ticket)).with_log()
        if done.bad:
            return self._fail(Cause.MESSAGE, id_, id_, binding.end, str(done.bad))
        if done.failure:
            return self._fail(Cause.TARGET, id_, id_, binding.end, done.failure)
        reach(FaultPoint.RESUME_WRITTEN)
        # At the binding's end, no later run would finish the binding.
        self._position, self._clean = min(id_, binding.end - 1), self._clean + 1
        self._delivered += done.written.written
        self._namespaces[namespace] = id_
        now = self._clock()
        if now - self._committed_at >= SECOND:
            self._commit(self._gate)
        if now - self._shown_at >= SHOWN_EVERY:
            self._show_progress(id_, now)
        return None

    @property
    def _is_clean(self) -> bool:
        """Whether enough messages succeeded in a row to deliver the rest in bulk."""
        return 0 < self._singly <= self._clean

    def _in_bulk(self, binding: Binding, files: Sequence[LogFile]) -> Resumed | None:
        self._commit(self._gate)
        delivery = Delivery(
            self._writer, self._log, self._positions, self._hold, write_parts_here, self._reload, self._clock
        )
        left = self._gate if binding.end < self._gate.through else None
        whole = delivery.deliver(binding, files, left)
        # The delivery has counted what it left out: an older count would overwrite that.
        self._topics = WriterTopics(self._writer, self._log, self._positions, self._hold.state)
        self._position, self._gate = self._hold.state.position, self._hold.state.gate or self._gate
        self._show(f"{self._name}: at id {self._position}, in bulk")
        return None if whole else Resumed(self._position, self._delivered, self._hold.state.gate)

    def _fail(self, cause: Cause, first: int, last: int, through: int, reason: str) -> Resumed:
        """Commit the gate, with the position before the failed message; counts repeated failures."""
        newer = WriterGate(cause, first, last, through, reason, self._clock())
        self._gate = self._gate.again(newer)
        if cause is Cause.MESSAGE:
            self._position = max(self._position, first - 1)
        self._commit(self._gate)
        self._show(f"{self._name}: {self._gate.where} failed ({self._gate.failures}): {reason}")
        return Resumed(self._position, self._delivered, self._hold.state.gate)

    def _unusable(self, cause: Cause, error: Exception) -> Resumed:
        """Keep the gate closed over an output to which nothing may be delivered."""
        self._position = self._hold.state.position
        first = min(self._position + 1, self._gate.last_id)
        return self._fail(cause, first, self._gate.last_id, self._position, str(error))

    def _interrupt(self) -> Resumed:
        self._commit(self._gate)
        self._show(f"{self._name}: asked to stop, at id {self._position}")
        return Resumed(self._position, self._delivered, self._gate, interrupted=True)

    def _commit(self, gate: WriterGate | None, further: Mapping[str, str] | None = None) -> None:
        if self._binding and self._hold.state.position < self._position < self._binding.end:
            done = settle(self._taken.writer, self._binding, self._position, self._ticket).with_log()
            if done.failure:
                raise _Unsettled(done.failure)
        left = self._topics.count(self._binding, self._files, self._position) if self._binding else None
        rows = {**(left.rows if left else {}), **(further or {})}
        self._hold.commit(self._position, self._namespaces, gate, rows)
        self._gate = self._hold.state.gate or self._gate
        self._namespaces, self._committed_at = {}, self._clock()
        reach(FaultPoint.RESUME_COMMITTED)

    def _prepare(self) -> str | None:
        """Make the target ready; returns its error, if it failed."""

        def prepare() -> None:
            place = (self._hold, self._positions, self._log, self._acknowledged)
            self._writer = prepare_target(self._writer, *place)
            self._topics = self._topics.of(self._writer)

        return _failure_of(prepare)

    def _take(self, binding: Binding, files: Sequence[LogFile]) -> str | None:
        """Determine which files of a binding the writer takes; returns why it must stop, or None."""

        def take() -> None:
            self._taken = self._topics.take(binding, files)

        self._files = files
        return _failure_of(take)

    def _examine(self, binding: Binding) -> str | None:
        """Let the writer check its target before a binding; returns its refusal, or None."""
        past = self._topics.past(self._hold.state, binding)
        return _failure_of(lambda: self._taken.writer.examine(binding, past))

    def _discard_acknowledged(self, binding: Binding, files: Sequence[LogFile]) -> str | None:
        """Remove acknowledged messages from the target; returns its error, if it failed."""
        place = (self._taken.writer, binding, files, self._log)
        return (
            discard_acknowledged(*place, self._acknowledged, self._position, self._ticket).with_log().failure
        )

    def _show_progress(self, id_: int, now: int) -> None:
        self._shown_at = now
        rate = self._clean * SECOND / max(now - self._began_at, 1)
        left, through = self._gate.through - id_, self._gate.through
        self._show(f"{self._name}: finished id {id_}, {left} ids left to {through}, {rate:.0f}/s")

    @property
    def _ticket(self) -> WriterTicket:
        """The lease as it is now: it is renewed continuously."""
        return self._hold.ticket(self._reload)

    def _reload(self) -> WriterState | None:
        return self._positions.load(self._writer.name)

    @property
    def _name(self) -> str:
        return f"{self._positions.pipeline}/{self._writer.name}"


def _failure_of(step: Callable[[], None]) -> str | None:
    """Run a step on the target; returns the target's error, if it failed."""
    try:
        step()
    except (ShapeChanged, TargetReplaced, LogUnreadable, LeaseLost):
        raise
    except Exception as error:
        return error_text(error)
    return None
