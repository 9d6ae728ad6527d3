"""What can be wrong with pipeline files, as fields and as sentences.

A problem names the line it is about and says what to write instead. It never repeats the value of a key that
may hold a secret.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from tidemark.errors import TidemarkError, closest, with_fields

Place = tuple[str | int, ...]
"""Where a value stands in a file: keys and list positions from the top, as pydantic gives them."""


@dataclass(frozen=True, slots=True)
class FileProblem:
    """One thing that is wrong. ``line`` counts from 1; None when there is no file to point into."""

    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with the value at ``place``; ``text`` goes on where the key's name ends."""

    place: Place
    text: str


class Disagreement(ValueError):
    """Values that are right alone and wrong together; the places are relative to the model that noticed."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(finding.text for finding in self.findings))


class PipelineError(TidemarkError):
    """A pipeline that is asked for cannot be used."""


@with_fields
class PipelineRefused(PipelineError):
    """A pipeline file that cannot be used, with everything that is wrong with it; other files go on."""

    file: Path
    problems: Sequence[FileProblem]
    name: str | None = None

    def __str__(self) -> str:
        return "\n".join(
            f"{self.file}: {problem.text}"
            if problem.line is None
            else f"{self.file}:{problem.line}: {problem.text}"
            for problem in self.problems
        )


class Declared(Protocol):
    """What a file declares under a name."""

    @property
    def name(self) -> str:
        """The name."""


D = TypeVar("D", bound=Declared)


def declared_as(name: str, declared: Iterable[D], refused: Iterable[PipelineRefused]) -> D | None:
    """What is declared under a name; None where nothing is. Raises the refusal of a file that is about it."""
    for one in declared:
        if one.name == name:
            return one
    for refusal in refused:
        if name in (refusal.name, refusal.file.stem):
            raise refusal
    return None


@with_fields
class UnknownPipeline(PipelineError):
    """No pipeline file declares this name."""

    name: str
    known: Sequence[str]
    refused: Sequence[Path] = ()

    def __str__(self) -> str:
        said = [f"There is no pipeline `{self.name}`."]
        if meant := closest(self.name, self.known):
            said.append(f"Did you mean `{meant}`?")
        if self.known:
            said.append(f"Known pipelines: {', '.join(self.known)}.")
        else:
            said.append("No pipeline is declared.")
        if self.refused:
            said.append(f"Refused: {', '.join(map(str, self.refused))}.")
        return " ".join(said)


def quoted(value: object) -> str:
    """A value as a message shows it: short, on one line, without the content of lists and mappings."""
    match value:
        case None:
            return "empty"
        case bool():
            return f"`{str(value).lower()}`"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
    text = " ".join(str(value).split())
    return f"`{text if len(text) <= 60 else text[:59] + '…'}`"


def shortened(error: BaseException) -> str:
    """What an error of another package says, on one line and of bounded length."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:199] + "…"


def dotted(place: Place) -> str:
    """A place as people write it: ``writers[0].path``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return quoted(text.removeprefix("."))
