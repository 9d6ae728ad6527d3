"""The id of a log's folder: random, made when it is first needed, and kept in the folder.

Tells two folders with the same path apart, such as two volumes that a container has mounted at the same place
one after the other. Nothing in the log depends on it: an id that was deleted is replaced by another one.
"""

from uuid import uuid4

from tidemark.log.errors import FileMissing
from tidemark.log.files.folder import Folder

FOLDER_ID = "folder-id"


def folder_id(folder: Folder) -> str:
    """The id that is kept in ``folder``. Of several processes that make one at once, the last decides."""
    try:
        return folder.read(FOLDER_ID).decode()
    except FileMissing:
        folder.replace(FOLDER_ID, uuid4().hex.encode(), FOLDER_ID)
    return folder.read(FOLDER_ID).decode()
