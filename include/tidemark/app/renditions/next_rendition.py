"""Declares the next rendition of a writer: with the settings that the file has now, at a place of its own.

A rendition with these settings that is not finished yet is continued, so a build that was killed goes on with
the same one, and two builds at once make one. Settings of an earlier rendition are allowed where an operator
asks for them, such as to replace a damaged target; a build that starts by itself never returns to them.
Nothing is delivered here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.app.renditions.estimate import BuildSize, size_of
from tidemark.app.renditions.neighbours import refuse_shared_place
from tidemark.app.renditions.opened import UNFINISHED, WriterRenditions
from tidemark.app.renditions.plan import RenditionAction, RenditionPlan
from tidemark.app.renditions.topics import ensure_topic
from tidemark.delivery.renditions.building import since_of_next
from tidemark.delivery.renditions.declared import code_now
from tidemark.errors import TidemarkError
from tidemark.log.model.binding import NOTHING_YET
from tidemark.outputs.errors import ReasonMissing, SettingsUsedBefore
from tidemark.outputs.model.consumer_name import consumer_name
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import GONE, Rendition, RenditionState, Signature
from tidemark.outputs.settings import SettingChange
from tidemark.outputs.state.lifecycle import declare
from tidemark.writers.renditions import sibling_place

_LEFT = frozenset({*GONE, RenditionState.ABANDONED})


@dataclass(frozen=True)
class NextRendition:
    """A build of the next rendition.

    Attributes:
        renditions: The renditions of the writer.
        is_automatic: Whether no operator asked for it: then settings of an earlier rendition are refused.
    """

    renditions: WriterRenditions
    is_automatic: bool = False

    def plan(self) -> RenditionPlan:
        """What would be built, from where, and how long it may take. Read-only."""
        of, output = self.renditions, self.renditions.output
        known, changes = self._unfinished(output), of.changes(output.active)
        rendition, refused = self._judged(output, known)
        number = rendition.number if rendition else output.next_number
        size = self._size(output, known)
        acknowledged = self._acknowledged(output)
        place = rendition.place if rendition else None
        lines = [
            *_settings_lines(changes, output.active.number, known),
            *([f"place: {place}"] if place else []),
            f"delivers: {size}",
            *_acknowledged_lines(acknowledged),
            *self._unfinished_lines(output, number),
            f"readers stay with rendition {output.active.number} until a handover",
        ]
        details: dict[str, Any] = {
            "place": place,
            "continues": known is not None,
            "active": output.active.number,
            "changes": [{"key": one.key, "before": one.before, "now": one.now} for one in changes],
            "acknowledged": {str(number): list(ids) for number, ids in acknowledged.items()},
            **size.to_dict(),
        }
        action = RenditionAction.BUILD
        return RenditionPlan(action, of.pipeline, of.writer, number, tuple(lines), details, refused)

    def register(self, signed: Signature) -> Rendition:
        """Declare the rendition, or return the unfinished one with these settings; prepares its topic.

        Raises what the plan showed as refused, and what has become impossible since.
        """
        of = self.renditions
        if not signed.is_complete:
            raise ReasonMissing(of.pipeline, of.writer, "build")
        output = of.output
        rendition = next((one for one in output.renditions if one.signed == signed), None)
        if rendition is None:
            _, refused = self._judged(output, self._unfinished(output))
            if refused is not None:
                raise refused
            rendition = declare(
                of.store,
                lambda found: self._proposal(found, signed),
                known=self._unfinished,
                is_automatic=self.is_automatic,
            )
        ensure_topic(of, rendition)
        return rendition

    def _unfinished(self, output: Output) -> Rendition | None:
        """The newest rendition with these settings that is being built or was verified."""
        waiting = (one for one in reversed(output.renditions) if one.state in UNFINISHED)
        return next((one for one in waiting if not self.renditions.changes(one)), None)

    def _judged(
        self, output: Output, known: Rendition | None
    ) -> tuple[Rendition | None, TidemarkError | None]:
        """The rendition that is built, as it would be declared, and why it cannot be."""
        rendition = known
        try:
            if rendition is None:
                rendition = self._proposed(output)
                refuse_shared_place(self.renditions, rendition)
        except TidemarkError as refused:
            return rendition, refused
        return rendition, None

    def _unfinished_lines(self, output: Output, number: int) -> list[str]:
        of = self.renditions
        return [
            f"rendition {one.number} is not finished either, with other settings; where it is not needed: "
            f"tidemark renditions abandon {of.pipeline} {of.writer} {one.number}"
            for one in output.renditions
            if one.state in UNFINISHED and one.number != number
        ]

    def _refuse_used_before(self, output: Output) -> None:
        if not self.is_automatic:
            return
        for one in output.renditions:
            if not self.renditions.changes(one):
                raise SettingsUsedBefore(output.pipeline, output.writer, one.number)

    def _proposal(self, output: Output, signed: Signature) -> RenditionProposal:
        of = self.renditions
        self._refuse_used_before(output)
        settings, number = of.settings_now(), output.next_number
        place = sibling_place(of.opened.pipeline, of.declared, number)
        since = since_of_next(of.of_the_file, of.opened.log, of.opened.positions)
        return RenditionProposal(settings, place, since, signed, code_now(settings))

    def _proposed(self, output: Output) -> Rendition:
        """The rendition as it would be declared; for plans."""
        proposal = self._proposal(output, Signature("", "", 0))
        return proposal.rendition(output.next_number, RenditionState.BUILDING)

    def _size(self, output: Output, known: Rendition | None) -> BuildSize:
        of, positions = self.renditions, self.renditions.opened.positions
        state = positions.load(of.consumer(known.number)) if known else None
        history = positions.history(of.consumer(output.active.number))
        return size_of(of.opened.log, state.position if state else NOTHING_YET, history)

    def _acknowledged(self, output: Output) -> dict[int, tuple[int, ...]]:
        """The ids that were acknowledged for other renditions, by number."""
        of, positions = self.renditions, self.renditions.opened.positions
        found = {
            one.number: tuple(sorted(positions.acknowledged(consumer_name(of.writer, one.number))))
            for one in output.renditions
            if one.state not in _LEFT
        }
        return {number: ids for number, ids in found.items() if ids}


def _settings_lines(changes: Sequence[SettingChange], active: int, known: Rendition | None) -> Sequence[str]:
    goes_on = [f"rendition {known.number} has these settings already and is continued"] if known else []
    if not changes:
        return [*goes_on, f"settings: those of the active rendition {active}, so its rows should be the same"]
    return [*goes_on, *(f"settings: {one}" for one in changes)]


def _acknowledged_lines(acknowledged: Mapping[int, Sequence[int]]) -> Sequence[str]:
    return [
        f"acknowledged for rendition {number}: id {', '.join(map(str, ids))}. They are tried again: the "
        "build stops at those that fail again, and those that can be written now are differences to explain"
        for number, ids in acknowledged.items()
    ]
