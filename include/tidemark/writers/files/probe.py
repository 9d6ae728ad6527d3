"""Probe of a files writer's folder: creates a file as a delivery does, and removes it.

The file is written under a staging name and renamed into the folder, because a folder may allow one of the
two only. Its name begins with an underscore, so that Spark's readers and Tidemark's never take it for output.
The name is unique, so nothing can be overwritten.
"""

from uuid import uuid4

from tidemark.log.files.folder import Folder

PREFIX = "_reachable-"
AREA = "reachable"


def try_folder(folder: Folder, suffix: str) -> None:
    """Raise the error that a delivery would get; leaves nothing behind."""
    name = f"{PREFIX}{uuid4().hex}.{suffix}"
    try:
        folder.write_once(name, b"", AREA)
    finally:
        folder.remove(name)
    # Left by probes that were killed. A concurrent probe tolerates the removal of its file.
    for left in folder.list_files("", f".{suffix}"):
        if left.startswith(PREFIX):
            folder.remove(left)
    folder.sweep(lambda area: area == AREA)
