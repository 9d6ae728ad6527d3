"""Acknowledge messages: pass over them without writing them, with a copy of each in the dead letters.

Only a message that has failed may be acknowledged; others need ``untried``. Where the target failed none may
be: no message is at fault. The same command continues an acknowledgement that was interrupted.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.binding_steps import error_text
from tidemark.delivery.dead_letters.store import NOT_TRIED, DeadLetter, DeadLetters
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.operator.action_plan import ActionPlan, load_free, plan_for, refusal, take_as_seen
from tidemark.delivery.published_log import PublishedLog, read_messages
from tidemark.delivery.state.handed_back import refuse_handed_back
from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, OffsetEntry, OffsetEntryKind, WriterGate, WriterState
from tidemark.delivery.writer import Check, Part, Writer
from tidemark.delivery.writer_topics import WriterTopics
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach

ACKNOWLEDGING = "an acknowledgement"
"""The lease holder's name. All acknowledgements share it, so that one can take over from one that crashed."""
MOST_ACKNOWLEDGED = 1_000
"""The most messages of one acknowledgement: more is a decision about the writer, not about messages."""


@with_fields
class NotSettled(DeliveryError):
    """The target failed while a message was acknowledged."""

    pipeline: str
    writer: str
    problem: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}/{self.writer}: the message is acknowledged and its copy is kept, but the "
            f"target failed: {self.problem.rstrip('.')}. The position is as it was; the next resume goes "
            "on from there."
        )


@dataclass(frozen=True)
class AcknowledgementPlanner:
    """Plans the acknowledgement of one writer's next messages.

    Attributes:
        positions: The state of the writers.
        log: The published log.
        writer: The writer.
        letters: Where the copies are stored.
        clock: The time of leases.
        holder: The name under which the caller has the writer's lease already.
    """

    positions: Positions
    log: PublishedLog
    writer: Writer
    letters: DeadLetters
    clock: Clock = wall_clock
    holder: str = ""

    @cached_property
    def state(self) -> WriterState:
        """The writer as the plan sees it."""
        return load_free(self.positions, self.writer.name, self.clock(), self.holder or ACKNOWLEDGING)

    @cached_property
    def topics(self) -> WriterTopics:
        """The topics that the writer takes of each binding."""
        return WriterTopics(self.writer, self.log, self.positions, self.state)

    def plan(self, first: int, last: int | None, *, untried: bool = False) -> ActionPlan:
        """Pass over the messages from ``first`` to ``last`` (left out: only ``first``).

        ``untried`` allows messages that have not failed.
        """
        state = self.state
        refuse_handed_back(state, self.positions.handed_back(state))
        last = first if last is None else last
        if state.gate and state.gate.cause is Cause.TARGET:
            raise refusal(state, _not_the_message(state, state.gate))
        messages = self._messages(first, last)
        unfailed = [id_ for message in messages if not _has_failed(state.gate, id_ := int(message["id"]))]
        if unfailed and not untried:
            raise refusal(state, _never_tried(state, unfailed))
        for t in {message["t"] for message in messages if message["id"] <= state.reached}:
            if self.positions.digests(state.name, t) is not None:
                raise refusal(state, _finished_before(first, t))
        for message in messages:
            if refused := self.writer.refuses_acknowledgement(message):
                raise refusal(state, f"id {message['id']} cannot be acknowledged: {refused}")
        gate, position = state.gate, self._position_after(last)
        opens = gate is not None and gate.is_about_messages and not self._is_left(last, gate.through)

        def execute(deed: AuditEntry) -> None:
            self._execute(deed, messages, unfailed, position, None if opens else gate)

        lines = [
            f"position {state.position} → {position}",
            *(
                f"{_place(message)} is never written"
                + ("; it has not failed" if message["id"] in unfailed else "")
                for message in messages
            ),
            "the gate opens" if opens else "the gate stays as it is",
        ]
        if position < last:
            lines.insert(1, f"the next delivery finishes the binding and moves it to {last} and beyond")
        ids = [int(message["id"]) for message in messages]
        return plan_for("acknowledge", state, lines, {"ids": ids, "position": position}, execute)

    def _execute(
        self,
        deed: AuditEntry,
        messages: Sequence[dict[str, Any]],
        unfailed: Sequence[int],
        position: int,
        gate: WriterGate | None,
    ) -> None:
        """Copy the messages, record the acknowledgement, make the target agree, move the position."""
        state, positions = self.state, self.positions
        ids = [int(message["id"]) for message in messages]
        names = {message["namespace"]: int(message["id"]) for message in messages}
        entry = OffsetEntry(OffsetEntryKind.ACKNOWLEDGE, position, deed.at, deed.who, deed.reason, names)
        # The lease keeps deliveries away while the target is made to agree.
        with holding(take_as_seen(positions, state, ACKNOWLEDGING, self.clock)) as hold:
            self.letters.keep([self._letter(message, deed, unfailed) for message in messages])
            reach(FaultPoint.ACKNOWLEDGE_COPIED)
            # Recorded before the target reports to its readers that it is past the message: after a crash in
            # between, no record would account for that report.
            hold.change(
                lambda held, lease: positions.acknowledge(held, ids, deed.who, lease, deed.reason, deed.at)
            )
            reach(FaultPoint.ACKNOWLEDGE_RECORDED)
            self._settle(messages, position, hold.ticket(lambda: positions.load(state.name)))
            reach(FaultPoint.ACKNOWLEDGE_SETTLED)
            left = self._left_out(state.position, position)
            hold.change(
                lambda held, _: positions.commit(
                    held, position, entry, gate, None, {**positions.audit_row(held, deed), **left}
                )
            )
            reach(FaultPoint.ACKNOWLEDGE_COMMITTED)

    def _letter(self, message: dict[str, Any], deed: AuditEntry, unfailed: Sequence[int]) -> DeadLetter:
        """The copy of a message for the dead letters."""
        failed = message["id"] not in unfailed
        gate = self.state.gate
        error = gate.reason if gate and failed else NOT_TRIED
        place = (self.state.pipeline, self.state.name, message)
        return DeadLetter(*place, error, deed.reason, deed.who, deed.at, failed=failed)

    def _settle(self, messages: Sequence[Mapping[str, Any]], position: int, lease: Check) -> None:
        """Make the target agree that these messages will never be written."""
        try:
            for message in messages:
                self.writer.discard(message)
            for binding, files in self.log.waiting(int(messages[0]["id"]) - 1):
                if binding.base <= position:
                    writer = self.topics.take(binding, files).writer
                    writer.settle(binding, min(position, binding.end), lease)
        except LeaseLost:
            raise
        except Exception as error:
            raise NotSettled(self.positions.pipeline, self.writer.name, error_text(error)) from error

    def _left_out(self, before: int, position: int) -> dict[str, str]:
        """The rows about topics that are left out by a move of the position."""
        rows: dict[str, str] = {}
        for binding, files in self.log.waiting(before):
            if binding.base <= position:
                rows |= self.topics.count(binding, files, position).rows
        return rows

    def _position_after(self, last: int) -> int:
        """The position after the acknowledgement: before the end of a binding that is not finished.

        At the end, the delivery would skip finishing the binding, which its other messages need.
        """
        binding, _ = next(self.log.waiting(self.state.position))
        return min(last, binding.end - 1)

    def _messages(self, first: int, last: int) -> list[dict[str, Any]]:
        """The messages to acknowledge; they must be the next ones after the position."""
        state = self.state
        if last < first:
            raise refusal(state, f"{last} comes before {first}.")
        if last > self.log.end:
            raise refusal(state, f"the log ends at id {self.log.end}.")
        # Messages that an interrupted command acknowledged are still to be passed, so they count here.
        known = self.positions.acknowledged(state.name)
        found: list[dict[str, Any]] = []
        before = [id_ for id_ in known if id_ < first]
        for batch in self._waiting(state.position + 1, last, before):
            if len(found) + batch.num_rows > MOST_ACKNOWLEDGED:
                raise refusal(state, f"that is more than {MOST_ACKNOWLEDGED} messages at once.")
            found += batch.to_pylist()
        ids = [int(message["id"]) for message in found]
        is_done = known.issuperset(ids) and (state.gate is None or state.gate.first_id not in ids)
        if is_done or (ids[0], ids[-1]) != (first, last):
            following = next(self._waiting(state.position + 1, self.log.end, known), None)
            if following is None:
                raise refusal(state, "it waits for no message.")
            waited = f"it waits for id {following['id'][0]}"
            raise refusal(state, f"{waited}: an acknowledgement begins there and ends with a message.")
        return found

    def _is_left(self, position: int, through: int) -> bool:
        """Whether there is a message to deliver beyond a position."""
        known = self.positions.acknowledged(self.state.name)
        return any(batch.num_rows for batch in self._waiting(position + 1, through, known))

    def _waiting(self, first: int, last: int, passed: Collection[int]) -> Iterator[pa.RecordBatch]:
        """The messages of a range, without those that were acknowledged."""
        for binding, files in self.log.waiting(first - 1):
            if binding.base > last:
                break
            own = self.topics.take(binding, files).files
            part = Part(binding, tuple(own), first_id=first, last_id=last)
            yield from read_messages(self.log.folder, part, passed)


def _place(message: Mapping[str, Any]) -> str:
    return f"id {message['id']} ({message['topic']}/{message['partition']}, offset {message['offset']})"


def _has_failed(gate: WriterGate | None, id_: int) -> bool:
    """Whether a message was tried and could not be processed: the gate names exactly that one."""
    return gate is not None and gate.cause is Cause.MESSAGE and gate.first_id == id_


def _not_the_message(state: WriterState, gate: WriterGate) -> str:
    return (
        f"its target failed at {gate.where}, not a message ({gate.reason.rstrip('.')}), so there is nothing "
        f"to acknowledge. Mend the target, then: tidemark resume {state.pipeline} {state.name}."
    )


def _finished_before(first: int, t: int) -> str:
    return (
        f"id {first} was delivered before: the binding at {t} is finished, and readers may have read it. "
        "What they have read never changes. Resume: it is computed again and compared."
    )


def _never_tried(state: WriterState, unfailed: Sequence[int]) -> str:
    which = f"id {unfailed[0]} has" if len(unfailed) == 1 else f"ids {unfailed[0]} to {unfailed[-1]} have"
    return (
        f"{which} not failed: the next delivery may well write {'it' if len(unfailed) == 1 else 'them'}. "
        f"Look first: tidemark gate show {state.pipeline} {state.name}. To let unwritten pass what was never "
        "tried, add --untried."
    )
