"""The library as one zip archive, so that executors run the same code as the driver.

The archive's name contains the digest of its content: an unchanged library reuses its archive, a changed one
gets another. A process that has loaded the library from an archive tells its digest by that name; every other
process takes the digest of the sources when it starts, and refuses to send others to executors.
"""

import os
import re
import zipfile
from functools import cache
from pathlib import Path

import tidemark
from tidemark.module_digests import digest_of, read_sources
from tidemark.spark.errors import CodeChanged

_FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""The modification time of every entry, so that equal libraries make equal archives."""
_ARCHIVE = re.compile(r"tidemark-([0-9a-f]{16})\.zip")


@cache
def library_digest() -> str:
    """The digest of the library, by its archive's name or by its sources when this was first asked.

    So that it is that of the loaded code, a process asks as soon as it has loaded the library, before it does
    anything with it.
    """
    root = _root()
    archive = _ARCHIVE.fullmatch(root.parent.name)
    return archive[1] if archive else digest_of(read_sources(root))


def is_library_changed() -> bool:
    """Whether the sources are not those any more that this process has loaded. Never in an archive.

    A module that is imported later would be the new one beside the old ones.
    """
    root = _root()
    if _ARCHIVE.fullmatch(root.parent.name):
        return False
    try:
        return digest_of(read_sources(root)) != library_digest()
    except OSError:  # a file went away while it was looked at
        return True


def ensure_package(folder: Path) -> Path:
    """The path of the archive in ``folder``, which is created where it is missing."""
    sources = read_sources(_root())
    archive = folder / f"tidemark-{digest_of(sources)}.zip"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        staged = archive.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(staged, "w", zipfile.ZIP_DEFLATED) as package:
            for name, text in sources.items():
                entry = zipfile.ZipInfo(f"tidemark/{name}", _FIXED_TIME)
                package.writestr(entry, text, zipfile.ZIP_DEFLATED)
        staged.rename(archive)
    return archive


def ensure_loaded_package(folder: Path) -> Path:
    """``ensure_package`` for the library that this process has loaded.

    Raises ``CodeChanged`` where the sources were changed since: executors would get other code than the
    process has that divides their work.
    """
    archive = ensure_package(folder)
    found = _ARCHIVE.fullmatch(archive.name)
    if found is None or found[1] != library_digest():
        raise CodeChanged(library_digest(), found[1] if found else archive.name)
    return archive


def _root() -> Path:
    return Path(tidemark.__file__).parent
