"""Whether a files writer could deliver into its folder: tried with a file that is gone afterwards.

The file is written under a staging name and renamed into the folder, as a binding's is: a folder that takes
the one may refuse the other. Its name begins with an underscore, so that Spark's readers and this product's
never take it for output; it is new every time, so nothing that is there can be overwritten.
"""

from uuid import uuid4

from tidemark.log.files.folder import Folder

PREFIX = "_reachable-"
AREA = "reachable"


def try_folder(folder: Folder, suffix: str) -> None:
    """Raise what a delivery would meet; leave nothing behind."""
    name = f"{PREFIX}{uuid4().hex}.{suffix}"
    try:
        folder.write_once(name, b"", AREA)
    finally:
        folder.remove(name)
    # What probes that were killed have left; one that is at work elsewhere does not mind.
    for left in folder.list_files("", f".{suffix}"):
        if left.startswith(PREFIX):
            folder.remove(left)
    folder.sweep(lambda area: area == AREA)
