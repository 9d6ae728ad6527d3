"""Counts and removes the files of a log: only where the whole pipeline is forgotten.

A folder is recognised as a pipeline's log by the manifest that the control plane names. Only files of
Tidemark are removed; others stay and are reported. Manifests are removed first, so that a partly removed
folder cannot be read as a log. Removal is idempotent.
"""

from dataclasses import dataclass

from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.files.folder import STAGING, Folder
from tidemark.log.files.folder_id import FOLDER_ID
from tidemark.log.files.parquet import LogFolder
from tidemark.log.state.control import LogHead
from tidemark.log.sweep import CONDEMNED

AREAS = (
    "manifests",
    "lists",
    "bindings",
    "captured",
    "audits",
    "plans",
    "reconciliations",
    "renditions",
    "outputs",
    "expiry",
    "dead_letters",
    STAGING,
    "files",
)
"""All folders that Tidemark creates in a log's folder, in the order of their removal."""
FILES = (CONDEMNED, FOLDER_ID)
"""All files that Tidemark creates directly in a log's folder."""


@with_fields
class NotThisLog(LogError):
    """A folder cannot be recognised as this pipeline's log."""

    pipeline: str
    problem: str
    advice: str

    text = "{pipeline}: {problem}. Nothing was removed. {advice}"


@with_fields
class FilesLeft(LogError):
    """Some of a log's files cannot be removed."""

    needs_person = True

    pipeline: str
    root: str
    reason: str

    text = (
        "{pipeline}: not all of the log's files in {root} could be removed ({reason}). Make the folder "
        "writable for this user and run the same command again: it goes on where it stopped."
    )


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The content of a log's folder.

    Attributes:
        root: The folder.
        files: The number of Tidemark's files in it.
        bytes: Their size.
        others: The names of other files and folders, which are not removed.
    """

    root: str
    files: int
    bytes: int
    others: tuple[str, ...]


def find_log(pipeline: str, head: LogHead, given: str | None) -> str:
    """The folder of a pipeline's log: ``given``, else the one that the control plane names.

    Raises ``NotThisLog`` where it does not have the current manifest.
    """
    root = given or head.root
    if head.manifest is None or head.digest is None:
        raise NotThisLog(
            pipeline,
            "nothing of it was ever published, so no folder can be told to be its log",
            "Leave out --log, and remove what captures have left by hand.",
        )
    if root is None:
        raise NotThisLog(
            pipeline,
            "the control plane does not know where its log lies: it was published last by an older version",
            "Say where with --log-path, or leave out --log.",
        )
    try:
        LogFolder(pipeline, root).read_manifest(head.manifest, head.digest)
    except (LogError, OSError, ValueError) as error:
        raise NotThisLog(
            pipeline,
            f"{root} does not have the manifest {head.manifest} that is this log ({error})",
            "Give the log's folder with --log-path, or leave out --log.",
        ) from None
    return root


def count_files(pipeline: str, root: str) -> LogFiles:
    """The files that would be removed, and those that would stay. Read-only."""
    folder = Folder(pipeline, root)
    entries = folder.entries()
    stored = [file.bytes for area in AREAS for file in folder.walk(area)]
    stored += [folder.size(name) for name in entries if name in FILES]
    others = tuple(name for name in entries if name not in AREAS and name not in FILES)
    return LogFiles(root, len(stored), sum(stored), others)


def remove_files(pipeline: str, root: str) -> None:
    """Remove a log's files, and its folder where it is empty afterwards."""
    folder = Folder(pipeline, root)
    try:
        for area in AREAS:
            folder.remove_area(area)
        for name in FILES:
            folder.remove(name)
        if not folder.entries():
            folder.remove_area("")
    except OSError as error:
        raise FilesLeft(pipeline, root, error.strerror or str(error)) from error
