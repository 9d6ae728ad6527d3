"""Advice about a writer's closed gate, from its cause, the writer's position and the number of failures.

Pure: one function for commands, task logs and the question of ``resume``. It offers to acknowledge a message
only if that message has failed and was not acknowledged yet, and never for a failure of the target.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidemark.delivery.state.handed_back import take_over_command
from tidemark.delivery.state.writer_state import Cause, HandedBack, WriterGate, WriterState
from tidemark.outputs.model.consumer_name import split_consumer

SURE = 2
"""Failures of one message before acknowledging it is advised: the first may be transient."""
IN_BULK = "go on in bulk"
BUILD_NEXT = "build the next rendition from the log, beside what readers have"


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing that an operator can do.

    Attributes:
        what: What it achieves.
        command: The command, or what to do instead of one.
    """

    what: str
    command: str

    def to_dict(self) -> dict[str, str]:
        """The form of ``--json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Advice:
    """The state of a writer's gate, and the remedies.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        where: Where and why its gate is closed; empty where it is open.
        hints: The remedies, best first; none where the gate is open.
        acknowledgeable: The message that may be acknowledged because it failed; None where there is no such
            message.
        is_failure: Whether the gate was closed by a failure, not by an operator.
        note: A remark after the writer's name, such as that no file declares its pipeline.
    """

    pipeline: str
    writer: str
    where: str = ""
    hints: tuple[Remedy, ...] = ()
    acknowledgeable: int | None = None
    is_failure: bool = False
    note: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """For output: the situation, then a line for every remedy."""
        width = max((len(hint.what) for hint in self.hints), default=0)
        situation = f"stopped {self.where}" if self.where else "open"
        return (
            f"{self.pipeline}/{self.writer}{self.note}: {situation}",
            *(f"  {hint.what + ':':<{width + 1}}  {hint.command}" for hint in self.hints),
        )

    @property
    def sentence(self) -> str:
        """The same in one line, for task logs and errors."""
        if not self.where:
            return f"{self.pipeline}/{self.writer}: the gate is open"
        ways = "; ".join(f"{hint.what}: {hint.command}" for hint in self.hints)
        end = " " if self.where.endswith(".") else "; "
        return f"{self.pipeline}/{self.writer}: the gate is closed {self.where}{end}{ways}"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {
            "situation": f"stopped {self.where}" if self.where else "open",
            "acknowledgeable": self.acknowledgeable,
            "hints": [hint.to_dict() for hint in self.hints],
        }


def advise(
    state: WriterState, acknowledged: Collection[int], handed_back: HandedBack | None = None
) -> Advice:
    """The advice for a registered writer; ``acknowledged`` are the ids that an operator acknowledged for
    it."""
    gate, place = state.gate, (state.pipeline, state.name)
    if gate is None:
        return Advice(*place)
    name = f"{state.pipeline} {state.name}"
    resume, in_bulk = f"tidemark resume {name}", f"tidemark gate open {name}"
    where = f"at {gate.where} ({gate.cause}): {gate.reason}"
    if handed_back or gate.cause is Cause.REPLICATOR:
        take_over = Remedy("when the replicator is stopped", take_over_command(*place))
        return Advice(*place, where, (take_over,), is_failure=gate.cause is Cause.REPLICATOR)
    match gate.cause:
        case Cause.MESSAGE if gate.first_id <= state.position or gate.first_id in acknowledged:
            ways = (
                Remedy("deliver what follows, one message at a time", resume),
                Remedy(IN_BULK, in_bulk),
            )
            return Advice(*place, _passed(gate, state.position, acknowledged), ways, is_failure=True)
        case Cause.MESSAGE:
            return Advice(*place, where, _about_message(state, gate), gate.first_id, is_failure=True)
        case Cause.TARGET:
            mend = f"mend the target{_so_often(gate)}, then go on one message at a time"
            return Advice(*place, where, (Remedy(mend, resume), Remedy(IN_BULK, in_bulk)), is_failure=True)
        case Cause.HAND:
            return Advice(*place, where, (Remedy("let it go on", in_bulk),))
        case Cause.REPLACED if not state.expects_anything:
            again = Remedy("make the target again and empty, then go on", resume)
            return Advice(*place, where, (again,), is_failure=True)
        case Cause.REPLACED:
            send = Remedy(
                "make the target again and empty, then send everything to it",
                f"tidemark offsets rewind {name} -1",
            )
            return Advice(*place, where, (send,), is_failure=True)
        case Cause.TAINTED:
            return Advice(*place, where, (Remedy(BUILD_NEXT, _build(state)),), is_failure=True)
        case Cause.CODE:
            restore = Remedy("install the code again that it was registered with, then go on", resume)
            build = Remedy(f"or {BUILD_NEXT}", _build(state))
            return Advice(*place, where, (restore, build), is_failure=True)
        case Cause.VERIFICATION:
            again = Remedy("verify again; a clean one opens the gate", resume)
            forced = Remedy("go on without a clean verification", in_bulk)
            return Advice(*place, where, (again, forced), is_failure=True)


def without_file(advice: Advice, note: str) -> Advice:
    """The advice for a writer of a pipeline that no file declares: nothing can be delivered to it."""
    name = f"{advice.pipeline} {advice.writer}"
    ways = (
        Remedy("go on", "put its file back into the folder of the pipelines"),
        Remedy("forget this writer", f"tidemark offsets forget {name}"),
        Remedy("forget the pipeline", f"tidemark pipelines forget {advice.pipeline}"),
    )
    return replace(advice, hints=ways if advice.where else (), acknowledgeable=None, note=note)


def _about_message(state: WriterState, gate: WriterGate) -> tuple[Remedy, ...]:
    name, id_ = f"{state.pipeline} {state.name}", gate.first_id
    hints = (
        Remedy("look at it", f"tidemark log show {state.pipeline} --from {id_} --to {id_} --json"),
        Remedy("try it again", f"tidemark resume {name}"),
    )
    if gate.failures < SURE:
        return hints
    pass_ = f"let it pass unwritten, with a copy{_so_often(gate)}"
    return (*hints, Remedy(pass_, f"tidemark offsets ack {name} {id_}"))


def _passed(gate: WriterGate, position: int, acknowledged: Collection[int]) -> str:
    done = "acknowledged" if gate.first_id in acknowledged else "finished"
    first = max(position, gate.first_id) + 1
    left = f"ids {first} to {gate.through} are left" if first < gate.through else f"id {first} is left"
    if first > gate.through:
        left = "its binding is left"
    return f"after {gate.where}, which is {done}: {left} to be delivered, then the gate opens."


def _build(state: WriterState) -> str:
    return f"tidemark renditions build {state.pipeline} {split_consumer(state.name)[0]}"


def _so_often(gate: WriterGate) -> str:
    return f" (failed {gate.failures} times)" if gate.failures > 1 else ""
