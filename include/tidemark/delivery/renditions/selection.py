"""Which renditions of a writer are delivered to, and in which order: the active one first.

A rendition is delivered to while it is active, building or verified, and for a time after it was superseded,
so that readers can return to it: the ``soak`` of the handover, else of the writer in the file. A frozen one
gets nothing, unless it is active: its gate then says why. Nothing here builds a writer or takes a lease.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidemark.clock import SECOND
from tidemark.consensus.objects import Consensus
from tidemark.delivery.renditions.output import FIRST
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.outputs.model.consumer_name import consumer_name, split_consumer
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.model.rendition import Rendition, RenditionState
from tidemark.outputs.state.output_store import OutputStore
from tidemark.pipeline.writers import WriterDeclaration

_GROWING = (RenditionState.BUILDING, RenditionState.VERIFIED)


@dataclass(frozen=True, slots=True)
class ConsumerChoice:
    """One rendition that is delivered to.

    Attributes:
        declared: The writer in the file.
        rendition: The rendition; None where the writer has no output yet.
        is_active: Whether readers use it.
    """

    declared: WriterDeclaration
    rendition: Rendition | None = None
    is_active: bool = True

    @property
    def number(self) -> int:
        """The rendition's number."""
        return self.rendition.number if self.rendition else FIRST

    @property
    def name(self) -> str:
        """The consumer's name."""
        return consumer_name(self.declared.name, self.number)

    @property
    def is_building(self) -> bool:
        """Whether it is being built."""
        return self.rendition is not None and self.rendition.state is RenditionState.BUILDING


def superseded_by(output: Output, number: int) -> Handover | None:
    """The handover by which readers left a rendition last; None where they use it, or never did."""
    used = [place for place, one in enumerate(output.handovers) if one.rendition == number]
    if not used or used[-1] + 1 == len(output.handovers):
        return None
    return output.handovers[used[-1] + 1]


def soak_until(output: Output, number: int, declared: WriterDeclaration) -> int | None:
    """Until when (µs, wall clock) a superseded rendition is still delivered to; None for others."""
    left = superseded_by(output, number)
    if left is None or output.rendition(number).state is not RenditionState.SUPERSEDED:
        return None
    soak = int(declared.soak.total_seconds() * SECOND) if left.soak is None else left.soak
    return left.signed.at + soak


def renditions_delivered(output: Output, declared: WriterDeclaration, now: int) -> list[Rendition]:
    """The renditions that are delivered to at ``now``, the active one first."""
    others = []
    for one in output.renditions:
        until = soak_until(output, one.number, declared)
        if one.state in _GROWING or (until is not None and now < until):
            others.append(one)
    return [output.active, *others]


def consumers_of(output: Output | None, declared: WriterDeclaration, now: int) -> list[ConsumerChoice]:
    """The consumers of one writer that are delivered to at ``now``, the active one first."""
    if output is None:
        return [ConsumerChoice(declared)]
    active = output.active.number
    found = renditions_delivered(output, declared, now)
    return [ConsumerChoice(declared, one, one.number == active) for one in found]


def consumers_of_all(
    outputs: Mapping[str, Output | None], declared: Iterable[WriterDeclaration], now: int
) -> list[ConsumerChoice]:
    """The consumers of several writers that are delivered to: all active ones in the order of the file, then
    the others."""
    found = [one for writer in declared for one in consumers_of(outputs[writer.name], writer, now)]
    return sorted(found, key=lambda one: not one.is_active)


def outputs_of(
    consensus: Consensus, pipeline: str, declared: Iterable[WriterDeclaration]
) -> dict[str, Output | None]:
    """The outputs of writers, by name; None for one that was never delivered to."""
    return {one.name: OutputStore(consensus, pipeline, one.name).load() for one in declared}


def active_state(positions: Positions, writer: str) -> WriterState | None:
    """The state of the consumer of a writer's active rendition; None where it was never registered."""
    return positions.load(active_name(positions, writer))


def active_name(positions: Positions, writer: str) -> str:
    """The name of the consumer of a writer's active rendition."""
    output = OutputStore(positions.consensus, positions.pipeline, writer).load()
    return consumer_name(writer, output.active.number if output else FIRST)


def operators_name(positions: Positions, consumer: str) -> str:
    """The name that commands take for a consumer: ``accounts.r1`` for the first one where it is not active,
    because ``accounts`` means the active one."""
    writer, number = split_consumer(consumer)
    is_active = number is None and active_name(positions, writer) == consumer
    return consumer if number or is_active else f"{writer}.r{FIRST}"


def resolved_name(positions: Positions, name: str) -> str:
    """The name of the consumer that an operator means: ``accounts`` is the active rendition, ``accounts.r1``
    the first one."""
    writer, number = split_consumer(name)
    return active_name(positions, writer) if number is None else consumer_name(writer, number)
