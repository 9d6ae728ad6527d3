"""What a person does to a writer: acknowledge, rewind, stop, open, forget.

Each is a plan first: it is looked at, then done by the very same person with a reason, and kept in the
writer's audit rows. Nothing is done while a run has the writer, and nothing is created by a mistyped name.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tidemark.consensus.lease import Clock, lease_of_another, new_lease, wall_clock
from tidemark.consensus.objects import Outpaced
from tidemark.delivery.dead_letters.store import NOT_TRIED, DeadLetter, DeadLetters
from tidemark.delivery.deliver import said
from tidemark.delivery.operator.rewind_effect import NotEmpty, is_as_planned, look_ahead
from tidemark.delivery.published_log import PublishedLog, read_messages
from tidemark.delivery.redeliver import require_history
from tidemark.delivery.state.handed_back import refuse_handed_back
from tidemark.delivery.state.lease import Hold, LeaseHeld, LeaseLost, holding
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import forget_writer
from tidemark.delivery.state.writer_state import Cause, Deed, Entry, OffsetEntry, WriterGate, WriterState
from tidemark.delivery.writer import Check, Part, Writer
from tidemark.delivery.writer_topics import WriterTopics
from tidemark.errors import TidemarkError
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.log.state.registered_writers import Enrolled, enrol, enrolled

ACKNOWLEDGING = "an acknowledgement"
"""Who has the writer meanwhile: one that died is taken up by the same command at once."""
REBUILD = (
    "Go back to an id from there on; for a journal, rebuild with a new writer, an empty keyspace and "
    "`start: earliest`."
)
MOST_ACKNOWLEDGED = 1_000
"""How many messages a person may let pass at once: more is a decision about the writer."""


class NotPossible(TidemarkError):
    """What was asked for cannot be done to this writer as it is."""

    needs_person = True

    def __init__(self, pipeline: str, writer: str, problem: str) -> None:
        super().__init__(f"{pipeline}/{writer}: {problem} Nothing was changed.")
        self.pipeline, self.writer, self.problem = pipeline, writer, problem


class NotSettled(TidemarkError):
    """The target failed when a message was let pass."""

    def __init__(self, pipeline: str, writer: str, problem: str) -> None:
        super().__init__(
            f"{pipeline}/{writer}: the message is acknowledged and its copy is kept, but the target failed: "
            f"{problem.rstrip('.')}. The position is as it was; the next resume goes on from there."
        )
        self.pipeline, self.writer, self.problem = pipeline, writer, problem


class ChangedMeanwhile(TidemarkError):
    """The writer is not any more as the plan saw it."""

    def __init__(self, pipeline: str, writer: str) -> None:
        super().__init__(
            f"{pipeline}/{writer}: it was changed while you looked at the plan. Nothing was done; look again."
        )
        self.pipeline, self.writer = pipeline, writer


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done, and how."""

    action: str
    pipeline: str
    writer: str
    lines: tuple[str, ...]
    """For people."""
    details: dict[str, Any]
    execute: Callable[[Deed], None]
    changes: bool = True
    """Whether there is anything to do: what is as it was asked for already is no failure."""

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {
            "action": self.action,
            "pipeline": self.pipeline,
            "writer": self.writer,
            "plan": list(self.lines),
            **self.details,
        }


def refuse_held(state: WriterState, holder: str, now: int) -> None:
    """Refuse to plan anything for a writer that somebody else has."""
    if other := lease_of_another(state.lease, holder, now):
        raise LeaseHeld(state.pipeline, state.name, other)


def take_as_seen(positions: Positions, state: WriterState, holder: str, clock: Clock) -> Hold:
    """Take a writer, if it is still as the plan saw it."""
    try:
        return Hold(positions, positions.lend(state, new_lease(state.token, holder, clock())), clock)
    except Outpaced:
        raise ChangedMeanwhile(state.pipeline, state.name) from None


def plan_forget(
    positions: Positions,
    control: LogControl,
    name: str,
    declared: Sequence[str],
    clock: Clock = wall_clock,
) -> Plan:
    """Remove a writer that is in no file any more: it stops holding compaction back.

    Needs no log, so that it works for pipelines that only the control plane knows.
    """
    pipeline = positions.pipeline
    if name in declared:
        raise NotPossible(pipeline, name, "it is in the pipeline's file; remove it there first.")
    state = positions.load(name)
    if state is None and name in enrolled(control):
        # What is left of a writer whose first run, or whose removal, was interrupted.
        lines: tuple[str, ...] = ("it was never delivered to; the log does not wait for it any more",)
        return Plan(
            "forget",
            pipeline,
            name,
            lines,
            {"position": NOTHING_YET},
            lambda _: forget_writer(control, positions, name),
        )
    if state is None:
        raise NotPossible(pipeline, name, "no writer of this name was ever registered.")
    refuse_held(state, "", clock())
    lines = (f"position {state.position}, gate and offset log are removed", "the output stays where it is")

    def execute(deed: Deed) -> None:
        try:
            positions.forget(state, deed)
        except Outpaced:
            raise ChangedMeanwhile(state.pipeline, state.name) from None
        reach(FaultPoint.FORGOTTEN)
        forget_writer(control, positions, name)

    return Plan("forget", pipeline, name, lines, {"position": state.position}, execute)


class Operator:
    """The actions of people on one pipeline's writers."""

    def __init__(self, positions: Positions, log: PublishedLog, clock: Clock = wall_clock) -> None:
        self._positions, self._log, self._clock = positions, log, clock
        self._topics: WriterTopics | None = None
        """What the writer takes of bindings, where the action is about its messages."""

    def acknowledge(
        self,
        writer: Writer,
        first: int,
        last: int | None,
        letters: DeadLetters,
        *,
        untried: bool = False,
    ) -> Plan:
        """Let the next messages pass unwritten, up to ``last``; they are copied to the dead letters.

        Only a message that has failed may pass, others where ``untried`` says so. Where the target failed,
        none may: the messages are not to blame.
        """
        state = self._free(writer.name, ACKNOWLEDGING)
        refuse_handed_back(state, self._positions.handed_back(state))
        self._topics = topics = WriterTopics(writer, self._log, self._positions, state)
        last = first if last is None else last
        if state.gate and state.gate.cause is Cause.TARGET:
            raise self._refuse(state, _not_the_message(state, state.gate))
        messages = self._messages(state, first, last)
        unfailed = [id_ for message in messages if not _has_failed(state.gate, id_ := int(message["id"]))]
        if unfailed and not untried:
            raise self._refuse(state, _never_tried(state, unfailed))
        for message in messages:
            if refusal := writer.refuses_acknowledgement(message):
                raise self._refuse(state, f"id {message['id']} cannot be acknowledged: {refusal}")
        gate, position = state.gate, self._position_after(state, last)
        opens = gate is not None and gate.is_about_messages and not self._is_left(state, last, gate.through)
        error = gate.reason if gate else NOT_TRIED
        ids = [int(message["id"]) for message in messages]

        def execute(deed: Deed) -> None:
            kept = [
                DeadLetter(
                    state.pipeline,
                    state.name,
                    message,
                    NOT_TRIED if message["id"] in unfailed else error,
                    deed.reason,
                    deed.who,
                    deed.at,
                    failed=message["id"] not in unfailed,
                )
                for message in messages
            ]
            names = {message["namespace"]: int(message["id"]) for message in messages}
            entry = OffsetEntry(Entry.ACKNOWLEDGE, position, deed.at, deed.who, deed.reason, names)
            # Nobody else may write while the target is made to agree.
            with holding(take_as_seen(self._positions, state, ACKNOWLEDGING, self._clock)) as hold:
                letters.keep(kept)
                reach(FaultPoint.ACKNOWLEDGE_COPIED)
                # Before the target promises its readers to be past the message: should we die in between,
                # the promise would be nobody's.
                hold.change(
                    lambda held, lease: self._positions.acknowledge(
                        held, ids, deed.who, lease, deed.reason, deed.at
                    )
                )
                reach(FaultPoint.ACKNOWLEDGE_RECORDED)
                ticket = hold.ticket(lambda: self._positions.load(state.name))
                self._let_pass(topics, messages, position, ticket)
                reach(FaultPoint.ACKNOWLEDGE_SETTLED)
                after = None if opens else gate
                left = self._left_out(topics, state.position, position)
                hold.change(
                    lambda held, _: self._positions.commit(
                        held, position, entry, after, None, {**self._positions.audit_row(held, deed), **left}
                    )
                )
                reach(FaultPoint.ACKNOWLEDGE_COMMITTED)

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
        return self._plan("acknowledge", state, lines, {"ids": ids, "position": position}, execute)

    def _let_pass(
        self, topics: WriterTopics, messages: Sequence[Mapping[str, Any]], position: int, lease: Check
    ) -> None:
        """Make the target agree that these messages will never be there."""
        try:
            for message in messages:
                topics.writer.discard(message)
            for binding, files in self._log.waiting(int(messages[0]["id"]) - 1):
                if binding.base <= position:
                    topics.take(binding, files).writer.settle(binding, min(position, binding.end), lease)
        except LeaseLost:
            raise
        except Exception as error:
            raise NotSettled(self._positions.pipeline, topics.writer.name, said(error)) from error

    def _left_out(self, topics: WriterTopics, before: int, position: int) -> dict[str, str]:
        """The rows about topics that are left out by a move of the position."""
        rows: dict[str, str] = {}
        for binding, files in self._log.waiting(before):
            if binding.base <= position:
                rows |= topics.count(binding, files, position).rows
        return rows

    def _position_after(self, state: WriterState, last: int) -> int:
        """Where an acknowledgement leaves the writer: before the end of a binding that nobody has finished.

        Passing the end would leave out what finishing makes of the binding's other messages.
        """
        binding, _ = next(self._log.waiting(state.position))
        return min(last, binding.end - 1)

    def rewind(self, name: str, position: int, writer: Writer | None = None) -> Plan:
        """Go back, so that everything after ``position`` is delivered again.

        Without a writer, because the file does not have it any more, not into what is compacted.
        """
        state = self._free(name)
        first = state.first_position
        if not first <= position < state.position:
            goes = f"a rewind goes to an id from {first} to {state.position - 1}."
            raise self._refuse(state, f"it is at {state.position}, so {goes}")
        binding = next((binding for binding, _ in self._log.waiting(position)), None)
        if binding:  # bindings are delivered whole
            require_history(writer, name, self._log, binding.base, REBUILD)
        acknowledged = self._positions.acknowledged(name)
        try:
            outlook = look_ahead(writer, state, position, self._log, acknowledged)
        except NotEmpty as problem:
            raise self._refuse(state, str(problem)) from None
        gate = None if outlook.opens else state.gate

        def execute(deed: Deed) -> None:
            if not is_as_planned(writer, outlook):
                raise ChangedMeanwhile(state.pipeline, state.name)
            # The log is told first, so that no compaction passes by what is delivered again.
            going_back = Enrolled(name, state.version, position)
            enrol(self._log.control, going_back, self._clock(), "a rewind is refused")
            reach(FaultPoint.REWIND_ANNOUNCED)
            moved, unfinished = self._namespaces_at(name, position)
            entry = OffsetEntry(Entry.REWIND, position, deed.at, deed.who, deed.reason, moved)
            self._commit(outlook.state, position, entry, gate, deed, unfinished=unfinished)
            reach(FaultPoint.REWIND_COMMITTED)

        again = state.position - position
        lines = [
            f"position {state.position} → {position}",
            f"{again} ids are delivered again by the next run",
        ]
        passed = sorted(id_ for id_ in acknowledged if id_ > position)
        if passed:
            lines.append(f"{len(passed)} of them, from id {passed[0]} on, were acknowledged: never written")
        details = {"position": position, "again": again, **outlook.details}
        return self._plan("rewind", state, [*lines, *outlook.lines], details, execute)

    def _namespaces_at(self, name: str, position: int) -> tuple[dict[str, int], list[str]]:
        """The last finished id of every namespace that goes back, and those that have none any more."""
        going_back = [space for space, id_ in self._positions.namespaces(name).items() if id_ > position]
        reached = self._log.last_ids(self._log.manifest.files, position)
        moved = {space: reached[space] for space in going_back if space in reached}
        return moved, [space for space in going_back if space not in reached]

    def stop(self, name: str) -> Plan:
        """Close the gate by hand; a closed one stays as it is."""
        state = self._free(name)
        if state.gate:
            lines = (
                f"it is stopped already, at {state.gate.where} ({state.gate.cause}): {state.gate.reason}",
            )
            plan = self._plan("stop", state, lines, {"position": state.position}, lambda deed: None)
            return replace(plan, changes=False)

        def execute(deed: Deed) -> None:
            place = (state.position + 1, state.position + 1, state.position)
            gate = WriterGate(Cause.HAND, *place, f"stopped by {deed.who}: {deed.reason}", deed.at)
            self._commit(state, state.position, None, gate, deed)

        return self._plan("stop", state, (f"the gate closes at position {state.position}",), {}, execute)

    def open(self, name: str) -> Plan:
        """Open the gate without redelivering one at a time: the next run goes on in bulk."""
        state = self._free(name)
        if state.gate is None:
            raise self._refuse(state, "its gate is open.")
        refuse_handed_back(state, self._positions.handed_back(state))
        lines = (
            f"the gate opens ({state.gate.cause}: {state.gate.reason})",
            f"the next run delivers from id {state.position + 1} on, in bulk; nothing is skipped",
        )

        def execute(deed: Deed) -> None:
            self._commit(state, state.position, None, None, deed)

        return self._plan("open", state, lines, {"position": state.position}, execute)

    def forget(self, name: str, declared: Sequence[str]) -> Plan:
        """Remove a writer that is in no file any more: it stops holding compaction back."""
        return plan_forget(self._positions, self._log.control, name, declared, self._clock)

    def _messages(self, state: WriterState, first: int, last: int) -> list[dict[str, Any]]:
        """The messages to let pass: exactly those after the position."""
        if last < first:
            raise self._refuse(state, f"{last} comes before {first}.")
        if last > self._log.end:
            raise self._refuse(state, f"the log ends at id {self._log.end}.")
        # One that was acknowledged by a command that died is here still.
        known = self._positions.acknowledged(state.name)
        found: list[dict[str, Any]] = []
        before = [id_ for id_ in known if id_ < first]
        for batch in self._waiting(state, state.position + 1, last, before):
            if len(found) + batch.num_rows > MOST_ACKNOWLEDGED:
                raise self._refuse(state, f"that is more than {MOST_ACKNOWLEDGED} messages at once.")
            found += batch.to_pylist()
        ids = [int(message["id"]) for message in found]
        is_done = known.issuperset(ids) and (state.gate is None or state.gate.first_id not in ids)
        if is_done or (ids[0], ids[-1]) != (first, last):
            following = next(self._waiting(state, state.position + 1, self._log.end, known), None)
            if following is None:
                raise self._refuse(state, "it waits for no message.")
            waited = f"it waits for id {following['id'][0]}"
            raise self._refuse(state, f"{waited}: an acknowledgement begins there and ends with a message.")
        return found

    def _is_left(self, state: WriterState, position: int, through: int) -> bool:
        """Whether there is a message to deliver beyond a position."""
        known = self._positions.acknowledged(state.name)
        return any(batch.num_rows for batch in self._waiting(state, position + 1, through, known))

    def _waiting(
        self, state: WriterState, first: int, last: int, passed: Collection[int]
    ) -> Iterator[pa.RecordBatch]:
        """The messages of a range, without those that were let pass."""
        for binding, files in self._log.waiting(first - 1):
            if binding.base > last:
                break
            own = self._topics.take(binding, files).files if self._topics else files
            part = Part(binding, tuple(own), first_id=first, last_id=last)
            yield from read_messages(self._log.folder, part, passed)

    def _free(self, name: str, holder: str | None = None) -> WriterState:
        """The writer, if it exists and nobody else has it."""
        state = self._positions.load(name)
        if state is None:
            raise self._unknown(name)
        refuse_held(state, holder or "", self._clock())
        return state

    def _unknown(self, name: str) -> NotPossible:
        return NotPossible(self._positions.pipeline, name, "no writer of this name was ever registered.")

    def _refuse(self, state: WriterState, problem: str) -> NotPossible:
        return NotPossible(state.pipeline, state.name, problem)

    def _commit(
        self,
        state: WriterState,
        position: int,
        entry: OffsetEntry | None,
        gate: WriterGate | None,
        deed: Deed,
        unfinished: Sequence[str] = (),
    ) -> None:
        further = self._positions.audit_row(state, deed)
        try:
            self._positions.commit(state, position, entry, gate, None, further, unfinished)
        except Outpaced:
            raise ChangedMeanwhile(state.pipeline, state.name) from None

    def _plan(
        self,
        action: str,
        state: WriterState,
        lines: Sequence[str],
        details: dict[str, Any],
        execute: Callable[[Deed], None],
    ) -> Plan:
        return Plan(action, state.pipeline, state.name, tuple(lines), details, execute)


def _place(message: Mapping[str, Any]) -> str:
    return f"id {message['id']} ({message['topic']}/{message['partition']}, offset {message['offset']})"


def _has_failed(gate: WriterGate | None, id_: int) -> bool:
    """Whether a message was tried and could not be understood: the gate names exactly that one."""
    return gate is not None and gate.cause is Cause.MESSAGE and gate.first_id == id_


def _not_the_message(state: WriterState, gate: WriterGate) -> str:
    return (
        f"its target failed at {gate.where}, not a message ({gate.reason.rstrip('.')}), so there is nothing "
        f"to acknowledge. Mend the target, then: tidemark resume {state.pipeline} {state.name}."
    )


def _never_tried(state: WriterState, unfailed: Sequence[int]) -> str:
    which = f"id {unfailed[0]} has" if len(unfailed) == 1 else f"ids {unfailed[0]} to {unfailed[-1]} have"
    return (
        f"{which} not failed: the next delivery may well write {'it' if len(unfailed) == 1 else 'them'}. "
        f"Look first: tidemark gate show {state.pipeline} {state.name}. To let unwritten pass what was never "
        "tried, add --untried."
    )
