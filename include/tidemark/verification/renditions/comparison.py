"""What a comparison of two renditions is about, what it gives, and where its pieces of work are done.

Every kind of writer divides its output into pieces that are compared independently, each in bounded memory:
ranges of the token ring, bindings, partitions. ``Here`` does them one after the other in this process; Spark
does them in tasks, with the same functions. Nothing is decided here.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.verification.renditions.errors import NotComparable
from tidemark.verification.renditions.matching import DifferenceTally, RuleMatcher
from tidemark.writers.journal.writer import JournalWriter
from tidemark.writers.renditions import RenditionWriter

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")
Show = Callable[[str], object]
"""Prints a line for the operator."""
MOST_LINES = 20
"""How many lines tell the progress of one step."""


class Engine(Protocol):
    """Where the pieces of a comparison are computed."""

    def run(self, what: str, work: Callable[[Piece], Answer], pieces: Sequence[Piece]) -> Iterable[Answer]:
        """What ``work`` returns for each piece, in their order. ``what`` names them in lines of progress."""

    def journals(
        self, old: JournalWriter, new: JournalWriter, topics: frozenset[str], matcher: RuleMatcher
    ) -> DifferenceTally:
        """The differences of all entities of these topics."""


@dataclass(frozen=True)
class Comparing:
    """What a comparison is about.

    Attributes:
        pipeline: The pipeline's name.
        name: The writer's name.
        old: The active rendition.
        new: The rendition that is verified.
        log: The published log.
        positions: The writers of the pipeline.
        last: The last binding that both have finished; None for none.
        since: The first time that both can answer for.
        mode: How they are compared.
        matcher: Which differences are meant.
        engine: Where the pieces are computed.
    """

    pipeline: str
    name: str
    old: RenditionWriter
    new: RenditionWriter
    log: PublishedLog
    positions: Positions
    last: Binding | None
    since: int
    mode: VerificationMode
    matcher: RuleMatcher
    engine: Engine

    @property
    def t(self) -> int:
        """The last time that is compared; 0 for none."""
        return self.last.t if self.last else 0

    @property
    def last_id(self) -> int:
        """The last id that is compared; −1 for none."""
        return self.last.end if self.last else NOTHING_YET

    def incomparable(self, problem: str) -> NotComparable:
        """The error for renditions whose rows cannot be matched."""
        return NotComparable(self.pipeline, self.name, self.new.number, self.old.number, problem)


@dataclass(frozen=True)
class Compared:
    """The result of a comparison.

    Attributes:
        tally: The counts.
        looked_at: What was compared.
        not_compared: How much could not be compared, by reason.
        is_by_id: Whether messages were compared by their ids, so that an id which was acknowledged for one
            rendition only needs no difference of its own.
    """

    tally: DifferenceTally
    looked_at: Mapping[str, int]
    not_compared: Mapping[str, int] = field(default_factory=dict)
    is_by_id: bool = False


Compare = Callable[[Comparing], Compared]
"""The type of the function that ``Writer.compared_by`` names."""


def progress(what: str, total: int, show: Show) -> Callable[[int], None]:
    """A function that is told how many of ``total`` pieces are done, and shows some of it."""
    step = max(-(-total // MOST_LINES), 1)

    def tell(done: int) -> None:
        if total > 1 and (done % step == 0 or done == total):
            show(f"{done:,} of {total:,} {what} compared")

    return tell


def chunks_of(items: Collection[Piece], size: int) -> list[list[Piece]]:
    """The items in groups of at most ``size``, in their order."""
    listed: list[Any] = list(items)
    return [listed[start : start + size] for start in range(0, len(listed), size)]
