"""Dead letters without files or a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidemark.delivery.dead_letters.store import DeadLetter


@dataclass
class CountedLetters:
    """How many dead letters each writer has."""

    kept: dict[str, int] = field(default_factory=dict)

    def count(self, pipeline: str, writers: Sequence[str]) -> int:
        return sum(self.kept.get(name, 0) for name in writers)

    def remove(self, pipeline: str, writers: Sequence[str]) -> None:
        for name in writers:
            self.kept.pop(name, None)


class LetterList(list[DeadLetter]):
    """The dead letters that were kept, in their order."""

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        self.extend(letters)


class NoLetterTable:
    """A control plane without copies of dead letters: only their files are found."""

    def find(self, pipeline: str, writer: str) -> list[DeadLetter]:
        return []
