"""What a person does to a writer: acknowledge, rewind, stop, open, forget.

Each is a plan first: it is looked at, then done by the very same person with a reason, and kept in the
writer's audit rows. Nothing is done while a run has the writer, and nothing is created by a mistyped name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemark.consensus.objects import Outpaced
from tidemark.delivery.dead_letters import DeadLetter, DeadLetters
from tidemark.delivery.lease import Clock, LeaseHeld, wall_clock
from tidemark.delivery.positions import Positions
from tidemark.delivery.published import PublishedLog, read_messages
from tidemark.delivery.writer import Part, Writer
from tidemark.delivery.writer_state import Cause, Deed, Entry, OffsetEntry, WriterGate, WriterState
from tidemark.errors import TidemarkError
from tidemark.faults import FaultPoint, reach
from tidemark.log.binding import NOTHING_YET

MOST_ACKNOWLEDGED = 1_000
"""How many messages a person may let pass at once: more is a decision about the writer."""


class NotPossible(TidemarkError):
    """What was asked for cannot be done to this writer as it is."""

    needs_person = True

    def __init__(self, pipeline: str, writer: str, problem: str) -> None:
        super().__init__(f"{pipeline}/{writer}: {problem} Nothing was changed.")
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

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {
            "action": self.action,
            "pipeline": self.pipeline,
            "writer": self.writer,
            "plan": list(self.lines),
            **self.details,
        }


class Operator:
    """The actions of people on one pipeline's writers."""

    def __init__(self, positions: Positions, log: PublishedLog, clock: Clock = wall_clock) -> None:
        self._positions, self._log, self._clock = positions, log, clock

    def acknowledge(self, writer: Writer, first: int, last: int | None, letters: DeadLetters) -> Plan:
        """Let the next messages pass unwritten, up to ``last``; they are copied to the dead letters."""
        state = self._free(writer.name)
        last = first if last is None else last
        messages = self._messages(state, first, last)
        for message in messages:
            if refusal := writer.refuses_acknowledgement(message):
                raise self._refuse(state, f"id {message['id']} cannot be acknowledged: {refusal}")
        gate, position = state.gate, self._position_after(state, last)
        opens = gate is not None and gate.is_about_messages and not self._is_left(state, last, gate.through)
        error = gate.reason if gate else "none: the gate was open"
        ids = [int(message["id"]) for message in messages]

        def execute(deed: Deed) -> None:
            self._refuse_changed(state)
            kept = [
                DeadLetter(state.pipeline, state.name, message, error, deed.reason, deed.who, deed.at)
                for message in messages
            ]
            letters.keep(kept)
            reach(FaultPoint.ACKNOWLEDGE_COPIED)
            names = {message["namespace"]: int(message["id"]) for message in messages}
            entry = OffsetEntry(Entry.ACKNOWLEDGE, position, deed.at, deed.who, deed.reason, names)
            row = Positions.acknowledged_row(ids, deed.who)
            self._commit(state, position, entry, None if opens else gate, deed, row)
            reach(FaultPoint.ACKNOWLEDGE_COMMITTED)

        lines = [
            f"position {state.position} → {position}",
            *(f"{_place(message)} is never written" for message in messages),
            "the gate opens" if opens else "the gate stays as it is",
        ]
        if position < last:
            lines.insert(1, f"the next delivery finishes the binding and moves it to {last} and beyond")
        return self._plan("acknowledge", state, lines, {"ids": ids, "position": position}, execute)

    def _position_after(self, state: WriterState, last: int) -> int:
        """Where an acknowledgement leaves the writer: before the end of a binding that nobody has finished.

        Passing the end would leave out what finishing makes of the binding's other messages.
        """
        binding, _ = next(self._log.waiting(state.position))
        return min(last, binding.end - 1)

    def rewind(self, name: str, position: int) -> Plan:
        """Go back, so that everything after ``position`` is delivered again."""
        state = self._free(name)
        below = self._log.manifest.compacted_below
        if not NOTHING_YET <= position < state.position:
            problem = f"it is at {state.position}, so a rewind goes to an id from -1 to {state.position - 1}."
            raise self._refuse(state, problem)
        binding = next((binding for binding, _ in self._log.waiting(position)), None)
        if binding and binding.base < below:  # bindings are delivered whole
            problem = (
                f"the log is compacted below id {below}, and the binding with id {position + 1} begins at "
                f"{binding.base}: rebuild with a new writer and `start: earliest`."
            )
            raise self._refuse(state, problem)

        def execute(deed: Deed) -> None:
            moved, unfinished = self._namespaces_at(name, position)
            entry = OffsetEntry(Entry.REWIND, position, deed.at, deed.who, deed.reason, moved)
            self._commit(state, position, entry, state.gate, deed, unfinished=unfinished)
            reach(FaultPoint.REWIND_COMMITTED)

        again = state.position - position
        lines = [
            f"position {state.position} → {position}",
            f"{again} ids are delivered again by the next run",
        ]
        passed = sorted(id_ for id_ in self._positions.acknowledged(name) if id_ > position)
        if passed:
            lines.append(f"{len(passed)} of them, from id {passed[0]} on, were acknowledged: never written")
        return self._plan("rewind", state, lines, {"position": position, "again": again}, execute)

    def _namespaces_at(self, name: str, position: int) -> tuple[dict[str, int], list[str]]:
        """The last finished id of every namespace that goes back, and those that have none any more."""
        going_back = [space for space, id_ in self._positions.namespaces(name).items() if id_ > position]
        reached = self._log.last_ids(self._log.manifest.files, position)
        moved = {space: reached[space] for space in going_back if space in reached}
        return moved, [space for space in going_back if space not in reached]

    def stop(self, name: str) -> Plan:
        """Close the gate by hand."""
        state = self._free(name)
        if state.gate:
            raise self._refuse(state, f"its gate is closed already ({state.gate.reason}).")

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
        lines = (
            f"the gate opens ({state.gate.cause}: {state.gate.reason})",
            f"the next run delivers from id {state.position + 1} on, in bulk; nothing is skipped",
        )

        def execute(deed: Deed) -> None:
            self._commit(state, state.position, None, None, deed)

        return self._plan("open", state, lines, {"position": state.position}, execute)

    def forget(self, name: str, declared: Sequence[str]) -> Plan:
        """Remove a writer that is in no file any more: it stops holding compaction back."""
        state = self._free(name)
        if name in declared:
            raise self._refuse(state, "it is in the pipeline's file; remove it there first.")
        lines = (
            f"position {state.position}, gate and offset log are removed",
            "the output stays where it is",
        )

        def execute(deed: Deed) -> None:
            try:
                self._positions.forget(state, deed)
            except Outpaced:
                raise ChangedMeanwhile(state.pipeline, state.name) from None

        return self._plan("forget", state, lines, {"position": state.position}, execute)

    def _messages(self, state: WriterState, first: int, last: int) -> list[dict[str, Any]]:
        """The messages to let pass: exactly those after the position."""
        if last < first:
            raise self._refuse(state, f"{last} comes before {first}.")
        if last > self._log.end:
            raise self._refuse(state, f"the log ends at id {self._log.end}.")
        found: list[dict[str, Any]] = []
        for batch in self._waiting(state, state.position + 1, last):
            if len(found) + batch.num_rows > MOST_ACKNOWLEDGED:
                raise self._refuse(state, f"that is more than {MOST_ACKNOWLEDGED} messages at once.")
            found += batch.to_pylist()
        ids = [int(message["id"]) for message in found]
        if not ids or (ids[0], ids[-1]) != (first, last):
            following = next(self._waiting(state, state.position + 1, self._log.end), None)
            if following is None:
                raise self._refuse(state, "it waits for no message.")
            waited = f"it waits for id {following['id'][0]}"
            raise self._refuse(state, f"{waited}: an acknowledgement begins there and ends with a message.")
        return found

    def _is_left(self, state: WriterState, position: int, through: int) -> bool:
        """Whether there is a message to deliver beyond a position."""
        return any(batch.num_rows for batch in self._waiting(state, position + 1, through))

    def _waiting(self, state: WriterState, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The messages of a range that nobody has acknowledged yet."""
        passed = self._positions.acknowledged(state.name)
        for binding, files in self._log.waiting(first - 1):
            if binding.base > last:
                break
            part = Part(binding, tuple(files), first_id=first, last_id=last)
            yield from read_messages(self._log.folder, part, passed)

    def _free(self, name: str) -> WriterState:
        """The writer, if it exists and nobody has it."""
        state = self._positions.load(name)
        if state is None:
            raise self._unknown(name)
        if held := state.held_at(self._clock()):
            raise LeaseHeld(state.pipeline, state.name, held)
        return state

    def _refuse_changed(self, state: WriterState) -> None:
        """Look again before anything is done that cannot be taken back with the commit."""
        newer = self._positions.load(state.name)
        if newer is None or newer.version != state.version:
            raise ChangedMeanwhile(state.pipeline, state.name)

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
        row: Mapping[str, str] | None = None,
        unfinished: Sequence[str] = (),
    ) -> None:
        further = {**(row or {}), **self._positions.audit_row(state, deed)}
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
