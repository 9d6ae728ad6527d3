"""The id of this installation: random, made when it is first needed, and kept in its home.

Two installations may have the same home path, as all containers do, and share one Spark Connect server.
Nothing but the name of a session depends on it: an id that was deleted is replaced by another one.
"""

import os
from pathlib import Path
from uuid import uuid4

FILE = "installation-id"


def installation_id(folder: Path) -> str:
    """The id that is kept in ``folder``; the first of several processes decides it."""
    kept = folder / FILE
    try:
        return kept.read_text()
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
    staged = folder / f"{FILE}.{uuid4().hex}"
    staged.write_text(uuid4().hex)
    try:
        os.link(staged, kept)  # whole or not at all, and never over another one
    except FileExistsError:
        pass
    finally:
        staged.unlink()
    return kept.read_text()
