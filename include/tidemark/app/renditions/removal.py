"""What a rendition has outside of the output, and its removal: first its consumer ends, then its place goes.

A place is dropped only where the kind allows it or an operator has asked for it, where no other rendition,
writer, pipeline or log has a part of it, and where it holds nothing of others. Both are judged right before
the drop, when no process delivers to the rendition any more; a place that must stay raises ``PlaceKept`` and
the rendition stays ``retiring``, so that the operator decides.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from tidemark.app.renditions.neighbours import PlaceShared, place_of, refuse_shared_place
from tidemark.app.renditions.opened import WriterRenditions
from tidemark.delivery.state.ended_consumer import end_consumer
from tidemark.errors import TidemarkError, with_fields
from tidemark.outputs.model.rendition import Rendition
from tidemark.writers.removal import DropOption, PlaceContents, PlaceRemoval, removal_of


@with_fields
class PlaceKept(TidemarkError):
    """The place of a rendition that is retired holds something of others."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    what: str
    problem: str

    text = (
        "{pipeline}/{writer}: {what}, the place of rendition {number}, was not dropped: {problem}. Readers "
        "and deliveries have left the rendition. Retire it without dropping its place: tidemark renditions "
        "retire {pipeline} {writer} {number}, without --drop-tables and --drop-topic"
    )


@dataclass(frozen=True)
class ConsumerAndPlace:
    """The ``RenditionRemoval`` of one writer.

    Attributes:
        renditions: The renditions of the writer.
        holder: The process that removes, for the consumers' audit entries.
        options: What the operator has asked for.
    """

    renditions: WriterRenditions
    holder: str
    options: Collection[DropOption] = field(default=frozenset())

    def end_consumer(self, rendition: Rendition) -> None:
        """See ``RenditionRemoval.end_consumer``."""
        of = self.renditions
        end_consumer(of.opened.positions, of.control, of.consumer(rendition.number), self.holder, of.clock)

    def drop_place(self, rendition: Rendition) -> None:
        """See ``RenditionRemoval.drop_place``."""
        removal = self.removal(rendition)
        if removal is None or not self.is_allowed(removal):
            return
        contents = removal.look()
        if not contents.is_there:
            return
        if problem := self.problem(rendition, contents):
            of = self.renditions
            raise PlaceKept(of.pipeline, of.writer, rendition.number, contents.what, problem)
        removal.drop()

    def removal(self, rendition: Rendition) -> PlaceRemoval | None:
        """How the place of a rendition is dropped; None where its kind does not say."""
        opened = self.renditions.opened
        declared = place_of(self.renditions, rendition)
        topics = {topic for topic, _ in self.renditions.control.bindings_head().reached}
        return removal_of(opened.pipeline, opened.connections, declared, topics)

    def is_allowed(self, removal: PlaceRemoval) -> bool:
        """Whether such a place is dropped."""
        return removal.option is None or removal.option in self.options

    def problem(self, rendition: Rendition, contents: PlaceContents) -> str | None:
        """Why the place must stay, as a clause; None where it may go."""
        try:
            refuse_shared_place(self.renditions, rendition)
        except PlaceShared as shared:
            return f"it belongs to {shared.other} too"
        return contents.foreign

    def line(self, rendition: Rendition) -> str:
        """What becomes of the place, for plans."""
        removal = self.removal(rendition)
        if removal is None:
            return f"{rendition.place} stays: its kind of writer does not say how it is removed"
        contents = removal.look()
        if not contents.is_there:
            return f"{contents.what}: nothing is there"
        size = f" ({contents.details})" if contents.details else ""
        if not self.is_allowed(removal):
            return f"{contents.what} stays{size}; drop it with {removal.option}"
        if problem := self.problem(rendition, contents):
            return f"{contents.what} must stay: {problem}"
        return f"dropped for good: {contents.what}{size}"

    def refusal(self, rendition: Rendition) -> TidemarkError | None:
        """The error of a drop that was asked for and must not be; for plans."""
        removal = self.removal(rendition)
        if removal is None or not self.is_allowed(removal):
            return None
        contents, of = removal.look(), self.renditions
        problem = self.problem(rendition, contents) if contents.is_there else None
        if problem is None:
            return None
        return PlaceKept(of.pipeline, of.writer, rendition.number, contents.what, problem)
