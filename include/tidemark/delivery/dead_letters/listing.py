"""The dead letters of a pipeline, each with what became of it. Read-only.

The copies say what the messages were, the control plane what was decided about them. A copy without a
decision was left by a command that died before it had decided; a decision without a copy is listed too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from tidemark.delivery.dead_letters.store import DeadLetter, DeadLetterFiles
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Redelivered
from tidemark.errors import with_fields


class Fate(StrEnum):
    """What became of a dead letter."""

    DEAD = "dead"
    """Acknowledged: the writer never writes it."""
    REDELIVERED = "redelivered"
    """Written after all."""
    UNDECIDED = "undecided"
    """Copied by a command that died before anything was decided, or by a writer that was forgotten since."""


@with_fields
class NoSuchLetter(DeliveryError):
    """There is no dead letter with this id."""

    pipeline: str
    writer: str
    id: int
    known: Sequence[int]

    def __str__(self) -> str:
        there = ", ".join(map(str, self.known[:20])) or "none"
        return (
            f"{self.pipeline}/{self.writer} has no dead letter {self.id}; there is: "
            f"{there}{' …' * (len(self.known) > 20)}. Nothing was changed."
        )


class LetterFinder(Protocol):
    """Where copies are looked for that are not in the files any more."""

    def find(self, pipeline: str, writer: str) -> list[DeadLetter]:
        """The letters of a writer."""


@dataclass(frozen=True, slots=True)
class ListedLetter:
    """One dead letter as it is now."""

    pipeline: str
    writer: str
    id: int
    fate: Fate
    letter: DeadLetter | None
    """None where its copies are gone."""
    redelivered: Redelivered | None = None

    @property
    def place(self) -> str:
        """Where the message comes from, for people."""
        if self.letter is None:
            return "its copies are gone"
        message = self.letter.message
        return f"{message['topic']}/{message['partition']}@{message['offset']}"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        copy: Mapping[str, Any] = self.letter.to_dict() if self.letter else {}
        done = self.redelivered
        return {
            **copy,
            "pipeline": self.pipeline,
            "writer": self.writer,
            "id": self.id,
            "fate": self.fate.value,
            "redelivered": {"by": done.by, "reason": done.reason, "at": done.at} if done else None,
        }


@dataclass(frozen=True, slots=True)
class LetterBox:
    """The dead letters of one pipeline."""

    positions: Positions
    files: DeadLetterFiles
    table: LetterFinder

    def writers(self, declared: Sequence[str]) -> list[str]:
        """Those that may have letters: declared ones first, then those that only have copies."""
        return [*declared, *(name for name in self.files.find_writers() if name not in declared)]

    def letters(self, writer: str) -> list[ListedLetter]:
        """All letters of a writer, in the order of their ids."""
        pipeline = self.positions.pipeline
        decided = {id_ for one in self.positions.acknowledgements(writer) for id_ in one.ids}
        done = self.positions.redelivered(writer)
        copies = {letter.id: letter for letter in self.files.find(writer)}
        if decided - copies.keys():
            copies = {letter.id: letter for letter in self.table.find(pipeline, writer)} | copies
        found = []
        for id_ in sorted(decided | copies.keys()):
            fate = Fate.DEAD if id_ in decided else Fate.UNDECIDED
            fate = Fate.REDELIVERED if id_ in done else fate
            found.append(ListedLetter(pipeline, writer, id_, fate, copies.get(id_), done.get(id_)))
        return found

    def letter(self, writer: str, id_: int) -> ListedLetter:
        """One of them; refuses an id that is none."""
        known = self.letters(writer)
        for one in known:
            if one.id == id_:
                return one
        raise NoSuchLetter(self.positions.pipeline, writer, id_, [one.id for one in known])
