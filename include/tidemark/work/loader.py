"""Loads the files of work journals, and reports a file that is not valid with its lines and a suggestion.

The rules and functions are those of pipeline files. An invalid file does not hide the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tidemark.pipeline.files.refusals import explain
from tidemark.pipeline.files.yaml import FileKind, NotYaml, read_mapping
from tidemark.pipeline.problems import FileProblem, declared_as
from tidemark.settings import Settings
from tidemark.work.errors import JournalRefused, UnknownJournal
from tidemark.work.model.declaration import WorkDeclaration

SUFFIXES = (".yaml", ".yml")
KIND = FileKind("work journal", "include/work/pages.yaml", "docs/work-journal.md")


@dataclass(frozen=True, slots=True)
class LoadedJournals:
    """Every valid journal, in the order of their files, and every file that is not valid."""

    journals: tuple[WorkDeclaration, ...]
    refused: tuple[JournalRefused, ...]


def load_journals(settings: Settings | None = None) -> LoadedJournals:
    """All work journals of the installation. Never raises for a bad file: see ``refused``."""
    accepted: dict[str, WorkDeclaration] = {}
    refused: list[JournalRefused] = []
    for file in sorted(_files(settings or Settings.read())):
        try:
            declared = load_journal(file)
            if declared.name in accepted:
                raise JournalRefused(
                    file,
                    [
                        FileProblem(
                            1, f"`name` is `{declared.name}`, as another file's is. Choose another name."
                        )
                    ],
                    declared.name,
                )
            accepted[declared.name] = declared
        except JournalRefused as refusal:
            refused.append(refusal)
    return LoadedJournals(tuple(accepted.values()), tuple(refused))


def find_journal(name: str, settings: Settings | None = None) -> WorkDeclaration:
    """The declared journal of this name. Raises ``UnknownJournal``, or ``JournalRefused`` for its file."""
    loaded = load_journals(settings)
    if found := declared_as(name, loaded.journals, loaded.refused):
        return found
    raise UnknownJournal(name, [declared.name for declared in loaded.journals])


def load_journal(file: Path) -> WorkDeclaration:
    """The journal of one file. Raises ``JournalRefused``."""
    try:
        document = read_mapping(file, KIND)
    except NotYaml as error:
        raise JournalRefused(file, error.problems) from None
    declared, problems = None, list(document.problems)
    try:
        declared = WorkDeclaration.model_validate(document.data)
    except ValidationError as error:
        found = explain(error, WorkDeclaration, KIND.page)
        problems += [FileProblem(document.line_of(finding.place), finding.text) for finding in found]
    if declared is None or problems:
        name = document.data.get("name")
        by_line = sorted(problems, key=lambda problem: problem.line or 0)
        raise JournalRefused(file, by_line, name if isinstance(name, str) else None)
    return declared


def _files(settings: Settings) -> Iterator[Path]:
    for folder in settings.work_folders:
        if folder.is_dir():
            yield from (
                file for file in folder.iterdir() if file.suffix in SUFFIXES and not file.name.startswith(".")
            )
