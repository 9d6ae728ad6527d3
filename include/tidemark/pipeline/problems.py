"""Problems of pipeline files, as structured values and as error texts.

A problem names its line and says what to write instead. It never repeats the value of a key that may hold a
secret.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from tidemark.errors import TidemarkError, closest, with_fields

Place = tuple[str | int, ...]
"""The path of a value in a file: keys and list positions from the top, as in pydantic's ``loc``."""


@dataclass(frozen=True, slots=True)
class FileProblem:
    """One problem of a file. ``line`` counts from 1; None where it concerns no line."""

    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of the value at ``place``; ``text`` continues a sentence that begins with the key's name."""

    place: Place
    text: str


class Disagreement(ValueError):
    """Values that are valid alone but not together; places are relative to the model that raises it."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(finding.text for finding in self.findings))


class PipelineError(TidemarkError):
    """A requested pipeline cannot be used."""


@with_fields
class PipelineRefused(PipelineError):
    """A pipeline file that cannot be used, with all its problems; other files are not affected."""

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
    """A declaration with a name."""

    @property
    def name(self) -> str:
        """The name."""


D = TypeVar("D", bound=Declared)


def declared_as(name: str, declared: Iterable[D], refused: Iterable[PipelineRefused]) -> D | None:
    """The declaration called ``name``; None where there is none.

    Raises the ``PipelineRefused`` of a file that declares the name or is named after it.
    """
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
        sentences = [f"There is no pipeline `{self.name}`."]
        if meant := closest(self.name, self.known):
            sentences.append(f"Did you mean `{meant}`?")
        if self.known:
            sentences.append(f"Known pipelines: {', '.join(self.known)}.")
        else:
            sentences.append("No pipeline is declared.")
        if self.refused:
            sentences.append(f"Refused: {', '.join(map(str, self.refused))}.")
        return " ".join(sentences)


def quoted(value: object) -> str:
    """A value for an error text: short, on one line, without the content of lists and mappings."""
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
    """The text of another package's error, on one line and at most 200 characters long."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:199] + "…"


def dotted(place: Place) -> str:
    """A place for an error text, such as ``writers[0].path``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return quoted(text.removeprefix("."))
