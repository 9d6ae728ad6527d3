"""Compares the pieces of two renditions one after the other in this process, without Spark."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidemark.verification.renditions.comparison import Show, progress
from tidemark.verification.renditions.journal import KeyspaceComparison
from tidemark.verification.renditions.matching import DifferenceTally, RuleMatcher
from tidemark.writers.journal.writer import JournalWriter

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")


def silent(_: str) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Here:
    """``Engine`` in this process.

    Attributes:
        show: Shows the progress.
    """

    show: Show = silent

    def run(self, what: str, work: Callable[[Piece], Answer], pieces: Sequence[Piece]) -> Iterator[Answer]:
        """See ``Engine``."""
        tell = progress(what, len(pieces), self.show)
        for number, piece in enumerate(pieces, start=1):
            yield work(piece)
            tell(number)

    def journals(
        self, old: JournalWriter, new: JournalWriter, topics: frozenset[str], matcher: RuleMatcher
    ) -> DifferenceTally:
        """See ``Engine``: heads are scanned, and rows are read by key."""
        keyspaces = KeyspaceComparison(old, new, topics, matcher)
        return DifferenceTally.sum(self.run("ranges of heads", keyspaces.compare, keyspaces.pieces()))
