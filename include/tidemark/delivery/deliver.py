"""deliver: bring a writer to the end of the log, binding by binding, under its lease.

Where the parts of a binding are written is the caller's business: in Spark's tasks, or right here. The lowest
message that cannot be understood is the wall: the position stops right before it and the gate closes at it.
An error of the target has no id: what failed is tried once more, then the gate names the range. The position
passes the end of a binding only when the writer has finished it whole. One writer's trouble is never
another's.

Parts do not see each other. Should an entity have begun in two of them, the binding is written once more: now
each finds what the others left, and says at which message it cannot go on.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add

import structlog

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.published_log import LogUnreadable, PublishedLog, read_messages
from tidemark.delivery.redeliver import require_history
from tidemark.delivery.split_entities import is_any_split
from tidemark.delivery.state.lease import LeaseLost, WriterHold, WriterTicket, take
from tidemark.delivery.state.positions import Positions, ShapeChanged, refuse_other_shape
from tidemark.delivery.state.registration import BEGIN_ANEW, Start, known_writer
from tidemark.delivery.state.writer_state import Cause, WriterGate, WriterState
from tidemark.delivery.target import admit_target
from tidemark.delivery.writer import BadMessage, Part, TargetReplaced, Writer, Writing, Written
from tidemark.delivery.writer_topics import Counted, Taken, WriterTopics
from tidemark.errors import TidemarkError
from tidemark.faults import FaultPoint, reach
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.model.manifest import LogFile

events = structlog.get_logger()

LATER_BINDINGS = "Deliver again only bindings that begin at that id or later."
TRIES = 2
"""How often a binding's parts are written before its target is said to have failed."""


@dataclass(frozen=True, slots=True)
class PartDone:
    """What came of one part; travels back from where it was written."""

    written: Written = field(default_factory=Written)
    bad: BadMessage | None = None
    failure: str | None = None
    """What the target said."""
    unreadable: str | None = None
    """What is wrong with the log."""
    replaced: TargetReplaced | None = None
    """The target is another one by now."""

    @property
    def is_trouble(self) -> bool:
        """Whether anything went wrong."""
        return bool(self.bad or self.failure or self.unreadable or self.replaced)

    def with_log(self) -> "PartDone":
        """The same, unless the log could not be read, or the target is another one."""
        if self.unreadable is not None:
            raise LogUnreadable(self.unreadable)
        if self.replaced is not None:
            raise self.replaced
        return self


@dataclass(frozen=True, slots=True)
class Delivered:
    """How far a writer has come in one run, and what was done on the way."""

    position: int
    total: Written = field(default_factory=Written)
    gate: WriterGate | None = None
    """Closed before this run or by it."""
    closed_now: bool = False
    failure: str | None = None
    """Why nothing was delivered although the gate is open."""


WriteParts = Callable[[Writer, Sequence[Part], LogFolder, Collection[int], WriterTicket], list[PartDone]]
"""Writes all parts of a binding somewhere."""


def write_part(
    writer: Writer, part: Part, log: LogFolder, acknowledged: Collection[int], ticket: WriterTicket
) -> PartDone:
    """Write one part, with the messages that the log has for it."""
    return write_part_of(writer, part, Writing(read_messages(log, part, acknowledged), ticket))


def write_part_of(writer: Writer, part: Part, writing: Writing) -> PartDone:
    """Write one part; every failure is an answer, except that the writer is no longer ours."""
    return _answer(lambda: writer.write(part, writing))


def discard_acknowledged(
    writer: Writer,
    binding: Binding,
    files: Sequence[LogFile],
    log: PublishedLog,
    acknowledged: Collection[int],
    position: int,
    ticket: WriterTicket,
) -> PartDone:
    """Take back what attempts left of messages that people let pass; answers like a part.

    Who let one pass may have died before that, or have found the target broken.
    """
    first = max(position + 1, binding.base)
    passed = sorted(id_ for id_ in acknowledged if first <= id_ <= binding.end)

    def discard() -> None:
        for id_ in passed:
            one = Part(binding, tuple(files), first_id=id_, last_id=id_)
            for batch in read_messages(log.folder, one, ()):
                for message in batch.to_pylist():
                    ticket.check()
                    writer.discard(message)

    return _answer(discard)


def finish(
    writer: Writer,
    binding: Binding,
    files: Sequence[LogFile],
    log: PublishedLog,
    acknowledged: Collection[int],
    ticket: WriterTicket,
) -> PartDone:
    """What comes after all parts of a binding, up to the promise to its readers; answers like a part."""
    whole = Part(binding, tuple(files))
    writing = Writing(read_messages(log.folder, whole, acknowledged), ticket)
    done = _answer(lambda: writer.finish(whole, writing))
    reach(FaultPoint.DELIVER_FINISHED)
    return done if done.is_trouble else settle(writer, binding, binding.end, ticket)


def settle(writer: Writer, binding: Binding, position: int, ticket: WriterTicket) -> PartDone:
    """The promise that has to stand before a position is committed; answers like a part."""
    done = _answer(lambda: writer.settle(binding, position, ticket))
    reach(FaultPoint.DELIVER_SETTLED)
    return done


def _answer(step: Callable[[], Written | None]) -> PartDone:
    try:
        return PartDone(step() or Written())
    except LeaseLost:
        raise
    except BadMessage as bad:
        return PartDone(bad=bad)
    except LogUnreadable as error:
        return PartDone(unreadable=str(error))
    except TargetReplaced as error:
        return PartDone(replaced=error)
    except Exception as error:
        return PartDone(failure=said(error))


def said(error: Exception) -> str:
    """What a target's error says; ours are sentences already."""
    if isinstance(error, TidemarkError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def write_parts_here(
    writer: Writer, parts: Sequence[Part], log: LogFolder, acknowledged: Collection[int], ticket: WriterTicket
) -> list[PartDone]:
    """Write the parts one after the other in this process."""
    return [write_part(writer, part, log, acknowledged, ticket) for part in parts]


def deliver_to(
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    holder: str,
    write_parts: WriteParts,
    *,
    limit: int,
    reload: Callable[[], WriterState | None],
    clock: Clock = wall_clock,
    is_stopping: Callable[[], bool] = lambda: False,
    start: Start = NOTHING_YET,
) -> Delivered:
    """Deliver what the writer has not finished with: at least one binding, then at most ``limit`` ids."""
    # A target that does not answer may not be able to say its shape either. Who is registered is asked for it
    # only when there is something to deliver, so that this closes the gate as any failure of the target does.
    state, log = known_writer(writer, log, positions, start, clock)
    if state.gate is not None:
        return Delivered(state.position, gate=state.gate)
    with holding(take(positions, state, holder, clock)) as hold:
        if hold.state.gate is not None:  # somebody closed it between our look and our lease
            return Delivered(hold.state.position, gate=hold.state.gate)
        delivery = Delivery(writer, log, positions, hold, write_parts, reload, clock)
        first = hold.state.position
        for binding, files in log.waiting(first):
            require_history(writer, writer.name, log, binding.base, BEGIN_ANEW, is_begun=True)
            if is_stopping() or (delivery.position > first and binding.end - first > limit):
                break
            if not delivery.deliver(binding, files):
                break
        return Delivered(delivery.position, delivery.total, hold.state.gate, hold.state.gate is not None)


def deliver_again(
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    holder: str,
    write_parts: WriteParts,
    *,
    from_t: int,
    to_t: int,
    reload: Callable[[], WriterState | None],
    clock: Clock = wall_clock,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Delivered:
    """Deliver finished bindings again: nothing happens where nothing is missing, and no position moves."""
    state = positions.load(writer.name)
    if state is None:
        return Delivered(NOTHING_YET)
    with holding(take(positions, state, holder, clock)) as hold:
        position, gate = hold.state.position, hold.state.gate
        if gate is not None:
            return Delivered(position, gate=gate)
        delivery = Delivery(writer, log, positions, hold, write_parts, reload, clock)
        finished = [
            (binding, files)
            for binding, files in log.waiting(NOTHING_YET)
            if from_t <= binding.t <= to_t and binding.end <= position
        ]
        if finished:
            require_history(writer, writer.name, log, finished[0][0].base, LATER_BINDINGS)
        for binding, files in finished:
            if is_stopping():
                return Delivered(position, delivery.total, failure=f"asked to stop before t = {binding.t}")
            failure = delivery.deliver_again(binding, files)
            if failure:
                closed = hold.state.gate
                return Delivered(position, delivery.total, closed, closed is not None, failure)
    return Delivered(position, delivery.total)


@dataclass(slots=True)
class _Work:
    """How far one binding has come."""

    parts: Sequence[Part] | None = None
    """All of them; None before they are cut."""
    left: Sequence[Part] = ()
    """The parts that are not written yet."""
    written: Written = field(default_factory=Written)
    wall: BadMessage | None = None
    """The lowest message that cannot be understood."""
    is_again: bool = False
    """Whether all parts are written for the second time: nothing is counted twice."""
    taken: Taken | None = None
    """The binding as the writer takes it; None before that is known."""

    def cut(self, parts: Sequence[Part]) -> None:
        """Begin with these parts."""
        self.parts = self.left = parts

    def is_doubtful(self) -> bool:
        """Whether an entity may have begun in two parts; one that met a wall did not say what it began."""
        begun = self.written.begun
        return not self.is_again and bool(begun) and (self.wall is not None or is_any_split(begun))

    def begin_again(self) -> None:
        """Let every part find what the others left."""
        self.left, self.is_again = self.parts or (), True

    def note(self, results: Sequence[PartDone]) -> str | None:
        """What came of the parts that were left; what the target said, if it failed."""
        pairs = list(zip(self.left, results, strict=True))
        self.left = [part for part, done in pairs if done.failure]
        if not self.is_again:
            self.written = reduce(add, (done.written for done in results), self.written)
        bad = [*([self.wall] if self.wall else []), *(done.bad for done in results if done.bad)]
        self.wall = min(bad, key=lambda one: one.id, default=None)
        return next((done.failure for done in results if done.failure), None)


def _left_out(left: Counted) -> Written:
    return Written(ignored=left.messages, details={"left_out": left.messages}) if left.rows else Written()


class Delivery:
    """The bindings that one holder brings to one writer."""

    def __init__(
        self,
        writer: Writer,
        log: PublishedLog,
        positions: Positions,
        hold: WriterHold,
        write_parts: WriteParts,
        reload: Callable[[], WriterState | None],
        clock: Clock,
    ) -> None:
        self._writer, self._log, self._hold, self._positions = writer, log, hold, positions
        self._write_parts, self._reload, self._clock = write_parts, reload, clock
        self._acknowledged = positions.acknowledged(writer.name)
        self._topics = WriterTopics(writer, log, positions, hold.state)
        self._is_prepared = False
        self.total = Written()

    @property
    def position(self) -> int:
        """How far the writer has come."""
        return self._hold.state.position

    def deliver(self, binding: Binding, files: Sequence[LogFile], gate: WriterGate | None = None) -> bool:
        """Write a binding and move the position to its end, leaving this gate; False when it was stopped."""
        done = self._attempt(binding, files)
        if isinstance(done, WriterGate):
            return self._stop(binding, files, done)
        own = self._topics.take(binding, files).files
        left = self._topics.count(binding, files, binding.end)
        self.total += done + _left_out(left)
        self._hold.commit(binding.end, self._log.last_ids(own, binding.end, binding.base), gate, left.rows)
        reach(FaultPoint.DELIVER_COMMITTED)
        events.info("delivered", writer=self._writer.name, t=binding.t, position=self.position)
        return True

    def deliver_again(self, binding: Binding, files: Sequence[LogFile]) -> str | None:
        """Write a finished binding once more; what went wrong, if anything did."""
        done = self._attempt(binding, files)
        if isinstance(done, WriterGate):
            if done.cause is Cause.REPLACED:
                self._hold.commit(self.position, {}, done)
            return f"{done.where}: {done.reason}"
        self.total += done
        return None

    def _attempt(self, binding: Binding, files: Sequence[LogFile]) -> Written | WriterGate:
        """Write a binding whole, or say why the gate has to close."""
        work, failure = _Work(), None
        try:
            for _ in range(TRIES):
                failure = self._go_on(work, binding, files)
                if failure is None:
                    bad = work.wall
                    return self._bad_message(binding, bad) if bad else replace(work.written, begun=())
        except TargetReplaced as error:
            return self._target_replaced(binding, error)
        return self._target_failed(binding, str(failure))

    def _go_on(self, work: "_Work", binding: Binding, files: Sequence[LogFile]) -> str | None:
        """Do what is left of a binding, up to its wall; what the target said, if it failed."""
        try:
            self._prepare()
            taken = work.taken = work.taken or self._topics.take(binding, files)
            if work.parts is None:
                taken.writer.examine(binding, self._topics.past(self._hold.state, binding))
                work.cut(taken.writer.cut(binding, taken.files))
        except (ShapeChanged, TargetReplaced, LogUnreadable, LeaseLost):
            raise
        except Exception as error:
            return said(error)
        if failure := self._discard_acknowledged(binding, taken):
            return failure
        # Also beside a wall all parts have to be written: it promises everything below it.
        failure = work.note(self._write(taken.writer, work.left))
        if failure is None and work.is_doubtful():
            work.begin_again()
            failure = work.note(self._write(taken.writer, work.left))
        if failure or work.wall:
            return failure
        done = self._finish(binding, taken)
        work.wall = done.bad
        return done.failure

    def _discard_acknowledged(self, binding: Binding, taken: Taken) -> str | None:
        ticket = self._hold.ticket(self._reload)
        place = (taken.writer, binding, taken.files, self._log, self._acknowledged, self.position, ticket)
        return discard_acknowledged(*place).with_log().failure

    def _prepare(self) -> None:
        if not self._is_prepared:
            self._writer = admit_target(
                self._writer, self._hold, self._positions, self._log, self._acknowledged
            )
            self._topics = self._topics.of(self._writer)
            refuse_other_shape(self._hold.state, self._writer.shape)
            self._writer.prepare()
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
        reached, left, own = self.position, Counted({}, 0), files
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

    def _target_failed(self, binding: Binding, reason: str) -> WriterGate:
        is_begun = binding.base <= self.position < binding.end
        first = self.position + 1 if is_begun else binding.base
        return WriterGate(Cause.TARGET, first, binding.end, binding.end, reason, self._clock())
