"""Redelivery of a dead letter to its writer: a plan first, then carried out by an operator with a reason.

Possible only where no reader can tell that the message is late: the writer decides that by the messages it
has finished since. Refused are messages that were never acknowledged, that the writer has not passed yet or
that the log no longer has. Runs under the writer's lease. The next attempt finds and finishes one that
crashed, so no message is written twice.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.binding_steps import error_text
from tidemark.delivery.dead_letters.listing import Fate, ListedLetter
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.operator.action_plan import ActionPlan, NotPossible, refuse_held, take_as_seen
from tidemark.delivery.published_log import PublishedLog, read_messages
from tidemark.delivery.state.handed_back import refuse_handed_back
from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.state.positions import Positions, refuse_other_shape
from tidemark.delivery.state.writer_state import Redelivered, WriterState
from tidemark.delivery.target import TargetVerdict, compare, replaced
from tidemark.delivery.writer import Later, Part, Writer
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach

REDELIVERING = "a redelivery"
"""The lease holder's name. All redeliveries share it, so that one can take over from one that crashed."""
COLUMNS = ("id", "topic", "key", "namespace")


@with_fields
class NotRedelivered(DeliveryError):
    """The target failed to take a dead letter."""

    pipeline: str
    writer: str
    id: int
    problem: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}/{self.writer}: id {self.id} was not redelivered: {self.problem.rstrip('.')}. "
            f"It is a dead letter as before. Try again: tidemark dead-letters redeliver {self.pipeline} "
            f"{self.writer} {self.id}"
        )


class Redelivery:
    """Plans the redelivery of dead letters of one pipeline."""

    def __init__(self, positions: Positions, log: PublishedLog, clock: Clock = wall_clock) -> None:
        self._positions, self._log, self._clock = positions, log, clock

    def plan(self, writer: Writer, letter: ListedLetter) -> ActionPlan:
        """The plan of redelivering one letter; raises ``NotPossible`` where that is not safe."""
        state = self._positions.load(writer.name)
        if state is None:
            raise self._refuse(writer, letter, "the writer is not registered any more.")
        refuse_held(state, REDELIVERING, self._clock())
        refuse_handed_back(state, self._positions.handed_back(state))
        self._refuse_decided(writer, letter, state)
        writer = self._bound(writer, state)
        refuse_other_shape(state, writer.shape)
        message = self._message(writer, letter)
        if refusal := writer.refuses_redelivery(message, self._later(state, letter.id)):
            raise self._refuse(writer, letter, refusal)
        in_place = writer.redelivers_in_place

        def execute(deed: AuditEntry) -> None:
            done = Redelivered(letter.id, deed.who, deed.reason, deed.at, in_place)
            with holding(take_as_seen(self._positions, state, REDELIVERING, self._clock)) as hold:
                mark = self._positions.redelivery_mark(writer.name, letter.id)
                try:
                    if mark is None:
                        fresh = writer.mark_redelivery(message)
                        hold.change(
                            lambda held, lease: self._positions.begin_redelivery(
                                held, letter.id, fresh, lease
                            )
                        )
                        mark = fresh
                    reach(FaultPoint.REDELIVER_MARKED)
                    ticket = hold.ticket(lambda: self._positions.load(writer.name))
                    ticket.check()
                    writer.redeliver(message, mark, ticket)
                except LeaseLost:
                    raise
                except Exception as error:
                    raise NotRedelivered(state.pipeline, state.name, letter.id, error_text(error)) from error
                reach(FaultPoint.REDELIVER_WRITTEN)
                hold.change(lambda held, lease: self._positions.end_redelivery(held, done, deed, lease))
                reach(FaultPoint.REDELIVER_RECORDED)

        where = "in its place" if in_place else "beside the regular output, which stays as it is"
        lines = (
            f"id {letter.id} ({letter.place}) is written after all, {where}",
            "position and gate stay as they are",
        )
        return ActionPlan(
            "redeliver",
            state.pipeline,
            state.name,
            lines,
            {"id": letter.id, "in_place": in_place},
            execute,
        )

    def _bound(self, writer: Writer, state: WriterState) -> Writer:
        """The writer bound to its target; raises ``TargetReplaced`` where that is another one."""
        present = writer.identify()
        if present is None:
            return writer
        if compare(state, present) is not TargetVerdict.SAME:
            raise replaced(state, present)
        return writer.bound_to(present)

    def _refuse_decided(self, writer: Writer, letter: ListedLetter, state: WriterState) -> None:
        """Raise ``NotPossible`` for a message that is no dead letter, or not one yet."""
        if letter.fate is Fate.REDELIVERED and letter.redelivered:
            raise self._refuse(writer, letter, f"{letter.redelivered.by} has redelivered it already.")
        if letter.fate is Fate.UNDECIDED:
            raise self._refuse(
                writer, letter, "it is not acknowledged: only its copy is there. The writer delivers it."
            )
        if letter.id > state.position:
            raise self._refuse(
                writer,
                letter,
                f"the writer is at {state.position} and has not passed it yet: deliver or resume first.",
            )

    def _message(self, writer: Writer, letter: ListedLetter) -> Mapping[str, Any]:
        """The message as the log holds it, with timestamp and headers."""
        for batch in self._read(letter.id, letter.id, None):
            for message in batch.to_pylist():
                return dict(message)
        raise self._refuse(
            writer,
            letter,
            "the log does not have it any more, compaction removed it; what is left is its copy: tidemark "
            f"dead-letters show {self._positions.pipeline} {writer.name} {letter.id}.",
        )

    def _later(self, state: WriterState, id_: int) -> Later:
        passed = self._positions.acknowledged(state.name)

        def batches() -> Iterable[pa.RecordBatch]:
            for batch in self._read(id_ + 1, state.position, COLUMNS):
                yield batch.filter(pa.array([one not in passed for one in batch["id"].to_pylist()]))

        return Later(id_ >= self._log.manifest.compacted_below, batches)

    def _read(self, first: int, last: int, columns: tuple[str, ...] | None) -> Iterable[pa.RecordBatch]:
        for binding, files in self._log.waiting(first - 1):
            if binding.base > last:
                return
            part = Part(binding, tuple(files), first_id=first, last_id=last)
            yield from read_messages(self._log.folder, part, (), columns)

    def _refuse(self, writer: Writer, letter: ListedLetter, problem: str) -> NotPossible:
        text = f"id {letter.id} cannot be redelivered: {problem}"
        return NotPossible(self._positions.pipeline, writer.name, text)
