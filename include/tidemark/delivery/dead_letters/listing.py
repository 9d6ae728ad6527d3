"""The dead letters of a pipeline, each with its present state. Read-only.

The copies hold the messages; the control plane holds the acknowledgements. A copy without an acknowledgement
was left by a command that crashed before it recorded one. An acknowledgement without a copy is listed too.
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
    """The state of a dead letter.

    Attributes:
        DEAD: Acknowledged: the writer never writes it.
        REDELIVERED: Written later, by a redelivery.
        UNDECIDED: Copied by a command that crashed before it recorded the acknowledgement, or by a writer
            that was forgotten since.
    """

    DEAD = "dead"
    REDELIVERED = "redelivered"
    UNDECIDED = "undecided"


@with_fields
class NoSuchLetter(DeliveryError):
    """There is no dead letter with this id."""

    pipeline: str
    writer: str
    id: int
    known: Sequence[int]

    def __str__(self) -> str:
        known = ", ".join(map(str, self.known[:20])) or "none"
        return (
            f"{self.pipeline}/{self.writer} has no dead letter {self.id}; there is: "
            f"{known}{' …' * (len(self.known) > 20)}. Nothing was changed."
        )


class LetterFinder(Protocol):
    """A second place to read copies from that are not in the files any more."""

    def find(self, pipeline: str, writer: str) -> list[DeadLetter]:
        """The dead letters of a writer."""


@dataclass(frozen=True, slots=True)
class ListedLetter:
    """One dead letter with its present state.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        id: The message's id.
        fate: Its state.
        letter: The copy; None where all copies are gone.
        redelivered: The redelivery, if there was one.
    """

    pipeline: str
    writer: str
    id: int
    fate: Fate
    letter: DeadLetter | None
    redelivered: Redelivered | None = None

    @property
    def place(self) -> str:
        """The message's topic, partition and offset, for output."""
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
        """The writers that may have letters: declared ones first, then those that only have copies."""
        return [*declared, *(name for name in self.files.find_writers() if name not in declared)]

    def letters(self, writer: str) -> list[ListedLetter]:
        """All letters of a writer, in id order."""
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
        """One letter of a writer; raises ``NoSuchLetter`` for an unknown id."""
        known = self.letters(writer)
        for one in known:
            if one.id == id_:
                return one
        raise NoSuchLetter(self.positions.pipeline, writer, id_, [one.id for one in known])
