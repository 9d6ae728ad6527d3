"""Declares the next rendition of a writer: with the settings that the file has now, at a place of its own.

A rendition with these settings that is not finished yet is continued, so a build that was killed goes on with
the same one, and two builds at once make one. Settings of an earlier rendition are allowed where an operator
asks for them, such as to replace a damaged target; a build that nobody asked for never returns to them.
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
from tidemark.delivery.compacted_history import BEGIN_ANEW, require_history
from tidemark.delivery.renditions.declared import code_now
from tidemark.delivery.renditions.output import WriterOutput
from tidemark.errors import TidemarkError
from tidemark.log.model.binding import NOTHING_YET
from tidemark.outputs.errors import ReasonMissing, SettingsUsedBefore
from tidemark.outputs.model.consumer_name import consumer_name
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import GONE, Rendition, RenditionState, Signature
from tidemark.outputs.settings import SettingChange
from tidemark.outputs.state.lifecycle import declare
from tidemark.writers.renditions import build_rendition, sibling_place

_LEFT = frozenset({*GONE, RenditionState.ABANDONED})


@dataclass(frozen=True)
class Build:
    """One build.

    Attributes:
        renditions: The renditions of the writer.
        is_automatic: Whether no operator asked for it: then settings of an earlier rendition are refused.
    """

    renditions: WriterRenditions
    is_automatic: bool = False

    def plan(self) -> RenditionPlan:
        """What would be built, from where, and how long it may take. Read-only."""
        output, of = self.renditions.output, self.renditions
        known = self._unfinished(output)
        changes = of.changes(output.active)
        rendition = known or self._proposed(output)
        refused = self._refusal(output, known)
        size = self._size(output, rendition, known)
        acknowledged = self._acknowledged(output)
        lines = [
            *_settings_lines(changes, output.active.number, known),
            f"place: {rendition.place}",
            f"delivers: {size}",
            *_acknowledged_lines(acknowledged),
            *(
                f"rendition {one.number} is not finished either, with other settings; where it is not needed: "
                f"tidemark renditions abandon {of.pipeline} {of.writer} {one.number}"
                for one in output.renditions
                if one.state in UNFINISHED and one.number != rendition.number
            ),
            f"readers stay with rendition {output.active.number} until a handover",
        ]
        details: dict[str, Any] = {
            "place": rendition.place,
            "continues": known is not None,
            "active": output.active.number,
            "changes": [{"key": one.key, "before": one.before, "now": one.now} for one in changes],
            "acknowledged": {str(number): list(ids) for number, ids in acknowledged.items()},
            **size.to_dict(),
        }
        return RenditionPlan(
            RenditionAction.BUILD, of.pipeline, of.writer, rendition.number, tuple(lines), details, refused
        )

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
            if (refused := self._refusal(output, self._unfinished(output))) is not None:
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

    def _refusal(self, output: Output, known: Rendition | None) -> TidemarkError | None:
        try:
            if known is None:
                self._refuse_used_before(output)
                rendition = self._proposed(output)
                refuse_shared_place(self.renditions, rendition)
                self._require_history(rendition)
        except TidemarkError as refused:
            return refused
        return None

    def _refuse_used_before(self, output: Output) -> None:
        if not self.is_automatic:
            return
        for one in output.renditions:
            if not self.renditions.changes(one):
                raise SettingsUsedBefore(output.pipeline, output.writer, one.number)

    def _require_history(self, rendition: Rendition) -> None:
        opened, of = self.renditions.opened, self.renditions
        built = build_rendition(opened.pipeline, opened.connections, of.writer, rendition)
        require_history(built.writer, built.consumer, opened.log, 0, BEGIN_ANEW, is_new=True)

    def _proposal(self, output: Output, signed: Signature) -> RenditionProposal:
        of = self.renditions
        self._refuse_used_before(output)
        settings, number = of.settings_now(), output.next_number
        place = sibling_place(of.opened.pipeline, of.declared, number)
        return RenditionProposal(settings, place, self._since(number), signed, code_now(settings))

    def _proposed(self, output: Output) -> Rendition:
        """The rendition as it would be declared; for plans."""
        proposal = self._proposal(output, Signature("", "", 0))
        return Rendition(
            output.next_number,
            RenditionState.BUILDING,
            proposal.settings,
            proposal.place,
            proposal.since,
            proposal.signed,
            proposal.code,
        )

    def _since(self, number: int) -> int:
        of = self.renditions
        writer, log = of.opened.writer(of.writer), of.opened.log
        return WriterOutput(of.writer, number, writer, log, of.opened.positions, of.clock).since()

    def _size(self, output: Output, rendition: Rendition, known: Rendition | None) -> BuildSize:
        of, positions = self.renditions, self.renditions.opened.positions
        state = positions.load(of.consumer(rendition.number)) if known else None
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


def _settings_lines(
    changes: Sequence[SettingChange], active: int, known: Rendition | None
) -> Sequence[str]:
    goes_on = [f"rendition {known.number} has these settings already and is continued"] if known else []
    if not changes:
        return [*goes_on, f"settings: those of the active rendition {active}, so its rows should be the same"]
    return [*goes_on, *(f"settings: {one}" for one in changes)]


def _acknowledged_lines(acknowledged: Mapping[int, Sequence[int]]) -> Sequence[str]:
    return [
        f"acknowledged for rendition {number}: id {', '.join(map(str, ids))}. They are tried again: the build "
        "stops at those that fail again, and those that can be written now are differences to explain"
        for number, ids in acknowledged.items()
    ]
