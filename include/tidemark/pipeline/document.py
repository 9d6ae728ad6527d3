"""A declared file's bytes as a YAML document: bounded before it is parsed, and parsed once per change.

A file that is too large to be a declaration is refused by its size alone, and one with too many values as
soon as they are counted: no file keeps a process busy that reads all of them. Within a process a content is
parsed once; further callers get the same document and do not change it.

What it refuses to do: read anything but a regular file (a pipe would never end); trust a file's times.
Contents are compared, because reading a megabyte takes less than a millisecond. There is no cache on disk: an
ordinary file is parsed in three milliseconds, and every DAG file is loaded by a process of its own that takes
a hundred times as long to import Airflow.
"""

from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from tidemark.pipeline.problems import Problem
from tidemark.pipeline.yaml import PIPELINE, Document, Kind, NotYaml, read_document

MOST_BYTES = 1_000_000
"""A generous bound: a pipeline with a hundred writers takes a few kilobytes."""
CACHED_FILES = 256


def read_declared(file: Path, kind: Kind = PIPELINE) -> Document:
    """The document of a file. Raises ``NotYaml`` for its content, ``OSError`` where it cannot be read."""
    found = file.stat()
    if not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)):  # a folder says so itself
        raise NotYaml(Problem(None, f"this is not a regular file. Put the {kind.what} into one."))
    if found.st_size > MOST_BYTES:
        raise _too_large(found.st_size, kind)
    with file.open("rb") as opened:
        content = opened.read(MOST_BYTES + 1)  # it may have grown since
    if len(content) > MOST_BYTES:
        raise _too_large(len(content), kind)
    parsed = _parsed(content, kind)
    if isinstance(parsed, Document):
        return parsed
    raise NotYaml(*parsed)


def _too_large(size: int, kind: Kind) -> NotYaml:
    return NotYaml(
        Problem(
            None,
            f"the file has {size:,} bytes, and a {kind.what} may have {MOST_BYTES:,}. It was not read. "
            "Take out what does not belong there, or move the file away.",
        )
    )


@lru_cache(maxsize=CACHED_FILES)
def _parsed(content: bytes, kind: Kind) -> Document | tuple[Problem, ...]:
    """The document, or what is wrong with it: a broken file is not parsed again and again either."""
    try:
        return read_document(content, kind)
    except NotYaml as error:
        return error.problems
